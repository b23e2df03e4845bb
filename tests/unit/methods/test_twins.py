"""Every method beside its plain version, on small fixed cases: in milliseconds, before the many
random ones elsewhere."""

from itertools import islice
from typing import Any

import numpy as np
import pytest

from compared_iterates import assert_same, iterates, plain_iterates
from compared_tours import check_against_reference
from mtcd.engines.local import LocalEngine
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.dcpa.reference import dcpa
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tree_cg.reference import tree_cg
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import Glm
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.protocol.ledger.ledger import Ledger
from problems import Case, make_data

RIDGE, LASSO = Glm("ridge", l2=0.5), Glm("linear", l1=0.3)
LOGISTIC, SPARSE = Glm("logistic", l2=0.5), Glm("logistic", l1=0.02, l2=0.1, intercept=True)
CLUSTERS = [["c0", "c1", "c2"], ["c3", "c4"]]


def case_of(
    model: Glm,
    network: str = "cycle",
    changes: tuple[Change, ...] = (),
    widths: tuple[int, ...] = (3, 1, 2, 5, 4),
) -> Case:
    data = make_data(model, 17, list(widths), seed=4)
    links = with_changes(make_network(network, data.clients), changes)
    return Case(data, model, links, seed=6)


METHODS: dict[str, Method] = {
    "averages": MTCD(2, 4, 3, 3e-3),
    "batches": MTCD(2, 3, 2, 3e-3, batch=5),
    "visitors": MTCD(3, 3, 1, 3e-3, combine="visitors", start=["c1", "c3", {"c0": 1.0, "c4": 2.0}]),
    "batches of visitors": MTCD(2, 4, 2, 0.01, batch=5, combine="visitors"),
    "tours of clusters": MTCD(None, 5, 2, 3e-3, clusters=CLUSTERS, walk="tour"),
    "batches of clusters": MTCD(None, 4, 2, 3e-3, clusters=CLUSTERS, batch=4),
    "averages, not back": MTCD(3, 4, 2, 0.01, walk="non-backtracking"),
    "visitors, not back": MTCD(3, 4, 2, 0.01, walk="non-backtracking", combine="visitors"),
    "optimal, not back": MTCD(2, 5, 2, 0.01, combine="optimal", walk="non-backtracking"),
    "rounds": SVFL(3, 2e-3),
    "rounds of batches": SVFL(3, 2e-3, 5),
}


@pytest.mark.parametrize("model", [RIDGE, LASSO, SPARSE], ids=["ridge", "lasso", "sparse"])
@pytest.mark.parametrize("name", METHODS)
def test_a_method_with_a_server_gives_the_iterates_of_its_plain_version(
    name: str, model: Glm
) -> None:
    case = case_of(model)
    tolerance = 1e-6 if name.startswith("optimal") else 1e-10
    expected = plain_iterates(case, METHODS[name], 6)
    assert_same(iterates(case, METHODS[name], 6), expected, tolerance)


COMES_AND_GOES = (
    Change(5, leave=["c1", "c2"]),
    Change(15, join=["c2"]),
    Change(22, join=["c1"]),
)


@pytest.mark.parametrize("changes", [(), COMES_AND_GOES], ids=["all stay", "two leave and return"])
@pytest.mark.parametrize("start", [None, ["c1"], "c3"])
@pytest.mark.parametrize("walk", ["lazy", "tour", "random-tour", "non-backtracking", "metropolis"])
def test_a_lone_token_gives_the_iterates_of_its_plain_version(
    walk: str, start: Any, changes: tuple[Change, ...]
) -> None:
    case, method = case_of(SPARSE, changes=changes), STCD(2, 3e-3, walk=walk, start=start)
    assert_same(iterates(case, method, 31), plain_iterates(case, method, 31))


AWAY = (Change(12, leave=["c3", "c4"]), Change(24, join=["c3", "c4"], leave=["c0"]))
OTHERS = (Change(20, leave=["c4", "c3"]), Change(33, join=["c3"], leave=["c0"]))
HOME = (Change(40, leave=["c0"]), Change(60, leave=["c4"], join=["c0"]))
LONE, TWO = {"local_updates": 1, "stepsize": 0.02}, {"hops": 6, "clusters": CLUSTERS}
TOURS: dict[str, tuple[Glm, str, tuple[Change, ...], dict[str, Any]]] = {
    "from anywhere": (RIDGE, "path", (), LONE),
    "two updates": (LOGISTIC, "cycle", (), {"local_updates": 2, "stepsize": 3e-3}),
    "others leave and return": (RIDGE, "path", OTHERS, {**LONE, "start": "c1"}),
    "home leaves and returns": (RIDGE, "path", HOME, {**LONE, "start": "c0"}),
    "two clusters": (LOGISTIC, "cycle", (), {**TWO, "local_updates": 2, "stepsize": 3e-3}),
    "two clusters of a path": (RIDGE, "path", (), {**TWO, "local_updates": 2, "stepsize": 0.02}),
    "a cluster that leaves and returns": (RIDGE, "path", AWAY, {**LONE, **TWO}),
    "a cluster of one": (RIDGE, "path", (), {**LONE, "hops": 6, "clusters": [[0], [1, 2, 3, 4]]}),
}


@pytest.mark.parametrize("kind", ["conjugate", "momentum", "anderson"])
@pytest.mark.parametrize("name", TOURS)
def test_accelerated_tours_give_the_iterates_of_their_plain_version(name: str, kind: str) -> None:
    """The acceleration restarts where somebody leaves or joins; where a whole cluster is away, the
    other goes on."""
    model, network, changes, settings = TOURS[name]
    case = case_of(model, network, changes)
    about = {**settings, "walk": "tour", "acceleration": kind, "depth": 2}
    method = MTCD(**about) if "hops" in about else STCD(**about)
    check_against_reference(case, method, apart=1e-4)


@pytest.mark.parametrize("network", ["path", "cycle"])
@pytest.mark.parametrize("model", [RIDGE, LOGISTIC], ids=["ridge", "logistic"])
def test_conjugate_tours_that_choose_their_steps(model: Glm, network: str) -> None:
    case = case_of(model, network)
    smoothness = BlockSmoothness(model.problem(case.data))
    method = resolve_stepsize(STCD(walk="tour", acceleration="conjugate"), smoothness)[0]
    assert method.adaptive
    check_against_reference(case, method, apart=1e-3)


@pytest.mark.parametrize("variant", ["A", "B"])
@pytest.mark.parametrize("step", [0.1, None])
@pytest.mark.parametrize(
    ("model", "widths", "network"),
    [
        (Glm("linear"), (2, 1, 3), "path"),
        (Glm("linear", l1=0.2), (2, 1, 3), "path"),
        (Glm("linear", l2=0.3), (2, 1, 3), "path"),
        (Glm("linear", l2=0.3, intercept=True), (2, 1, 3), "path"),
        (RIDGE, (2,), "path"),
        (RIDGE, (2, 1), "path"),
        (RIDGE, (2, 1, 3, 1), "star"),
    ],
    ids=str,
)
def test_dcpa(
    model: Glm, widths: tuple[int, ...], network: str, step: float | None, variant: str
) -> None:
    """It extrapolates where the penalty is not strongly convex, and mixes by degrees: in A the step
    of the correction is 1/(4 mu_y) by the largest of them, if none is given; one client alone mixes
    nothing."""
    case = case_of(model, network, widths=widths)
    method = DCPA(0.02, 0.03, step if variant == "A" else None, variant)
    problem = model.problem(case.data)
    parties = method.parties(problem, case.network, 0)
    told = list(islice(LocalEngine(parties, Ledger()).run(), 7))
    assert [progress.hop for progress in told] == list(range(7))
    ours = [progress.parameters for progress in told]
    assert_same(ours, dcpa(problem, case.network, method, 6), 1e-8)


@pytest.mark.parametrize("model", [RIDGE, LOGISTIC], ids=["ridge", "logistic"])
def test_conjugate_gradients_on_a_tree(model: Glm) -> None:
    case = case_of(model, "star", widths=(2, 3, 1, 2))
    problem = model.problem(case.data)
    parties = TreeCG().parties(problem, case.network, case.seed)
    expected = tree_cg(problem, 8)
    ours = [told.parameters for told in islice(LocalEngine(parties, Ledger()).run(), 9)]
    assert_same(ours, expected, 1e-6)
    if model is RIDGE:  # as many iterations as columns
        X = np.hstack(case.data.blocks)
        best = np.linalg.solve(X.T @ X + 0.5 * np.eye(8), X.T @ case.data.labels)
        np.testing.assert_allclose(np.concatenate(expected[-1]), best, rtol=1e-6)
