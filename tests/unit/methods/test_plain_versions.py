"""The plain versions of the methods beside the parties: settings left out, walks that look back,
clients that leave."""

from __future__ import annotations

from itertools import islice, pairwise

import numpy as np
import pytest

import mtcd
from compared_iterates import assert_same, iterates
from compared_tours import check_against_reference
from mtcd.engines.local import LocalEngine
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.dcpa.reference import dcpa
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.optimal_sync.reference import weights_of_optimal_sync
from mtcd.methods.tours.reference import accelerated_mtcd, accelerated_stcd
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.testing.references import mtcd as reference
from problems import Case, make_data

RIDGE, LASSO = Glm("ridge", l2=0.5), Glm("linear", l1=0.3)


def problem_of(model: Glm) -> tuple[LinearProblem, mtcd.Network]:
    data = make_data(model, 12, [2, 1, 3], seed=5)
    problem = model.problem(data)
    assert isinstance(problem, LinearProblem)
    return problem, mtcd.make_network("path", data.clients)


def test_without_a_number_of_tokens_there_is_one() -> None:
    problem, network = problem_of(Glm("ridge", l2=0.5))
    one, none = (
        reference.mtcd(problem, network, MTCD(tokens, 4, 2, 0.01), 3, 3) for tokens in (1, None)
    )
    for theta, other in zip(one, none, strict=True):
        np.testing.assert_array_equal(np.concatenate(theta), np.concatenate(other))
    assert np.abs(np.concatenate(one[-1])).max() > 0


@pytest.mark.parametrize("variant", ["A", "B"])
@pytest.mark.parametrize(
    "model",
    [
        Glm("linear"),
        Glm("linear", l1=0.2),
        Glm("linear", l2=0.3),
        Glm("linear", l2=0.3, intercept=True),
    ],
    ids=["none", "l1", "l2", "l2 but for the intercept"],
)
def test_dcpa_extrapolates_where_the_penalty_is_not_strongly_convex(
    model: Glm, variant: str
) -> None:
    problem, network = problem_of(model)
    method = DCPA(0.02, 0.03, 0.1 if variant == "A" else None, variant)
    plain = dcpa(problem, network, method, 6)
    told = islice(LocalEngine(method.parties(problem, network, 0), Ledger()).run(), 7)
    for progress, theta in zip(told, plain, strict=True):
        np.testing.assert_allclose(
            np.concatenate(progress.parameters), np.concatenate(theta), rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize("variant", ["A", "B"])
@pytest.mark.parametrize(
    ("widths", "network"), [([2], "path"), ([2, 1], "path"), ([2, 1, 3, 1], "star")]
)
def test_dcpa_mixes_by_the_degrees_of_the_network(
    widths: list[int], network: str, variant: str
) -> None:
    """In A the step of the correction is 1/(4 mu_y) by the largest degree; one client alone mixes
    nothing."""
    model = Glm("ridge", l2=0.5)
    data = make_data(model, 12, widths, seed=5)
    problem, method = model.problem(data), DCPA(0.02, 0.03, None, variant)
    links = mtcd.make_network(network, data.clients)
    plain = dcpa(problem, links, method, 6)
    told = list(islice(LocalEngine(method.parties(problem, links, 0), Ledger()).run(), 7))
    assert [progress.hop for progress in told] == list(range(7))
    for progress, theta in zip(told, plain, strict=True):
        np.testing.assert_allclose(
            np.concatenate(progress.parameters), np.concatenate(theta), rtol=1e-8, atol=1e-10
        )


def case_of(
    model: Glm,
    network: str,
    widths: tuple[int, ...] = (2, 3, 1, 2, 1),
    changes: tuple[Change, ...] = (),
) -> Case:
    data = make_data(model, 14, list(widths), seed=6)
    return Case(data, model, with_changes(mtcd.make_network(network, data.clients), changes), 4)


@pytest.mark.parametrize("model", [RIDGE, LASSO], ids=["ridge", "lasso"])
@pytest.mark.parametrize(
    "method",
    [
        MTCD(3, 4, 2, 0.01, walk="non-backtracking"),
        MTCD(3, 4, 2, 0.01, walk="non-backtracking", combine="visitors"),
        MTCD(2, 4, 2, 0.01, batch=5, combine="visitors"),
        MTCD(2, 5, 2, 0.01, combine="optimal", walk="non-backtracking"),
    ],
    ids=["average", "visitors", "batches", "optimal"],
)
def test_tokens_on_a_cycle(method: MTCD, model: Glm) -> None:
    case = case_of(model, "cycle")
    choose = weights_of_optimal_sync if method.combine == "optimal" else None
    plain = reference.mtcd(model.problem(case.data), case.network, method, case.seed, 5, choose)
    assert_same(iterates(case, method, 6), plain, 1e-6 if method.combine == "optimal" else 1e-10)


LEAVE = (Change(6, leave=["c0", "c1"]), Change(12, join=["c0", "c1"]))


@pytest.mark.parametrize("rule", ["cluster", "optimal"])
def test_a_token_whose_clients_have_all_left_waits(rule: str) -> None:
    case = case_of(RIDGE, "path", changes=LEAVE)
    method = MTCD(None, 3, 2, 0.02, clusters=[["c0", "c1"], ["c2", "c3", "c4"]], combine=rule)
    problem = RIDGE.problem(case.data)
    choose = weights_of_optimal_sync if rule == "optimal" else None
    plain = reference.mtcd(problem, case.network, method, case.seed, 7, choose)
    assert_same(iterates(case, method, 8), plain, 1e-6)
    still = [np.array_equal(before[0], after[0]) for before, after in pairwise(plain)]
    assert still[2:4] == [True, True]
    assert not still[4]


@pytest.mark.parametrize("kind", ["momentum", "conjugate"])
def test_a_cluster_of_one_client_is_visited_in_a_row(kind: str) -> None:
    case = case_of(RIDGE, "path", (2, 3, 1, 2))
    method = MTCD(
        None,
        5,
        1,
        0.02,
        clusters=[["c0"], ["c1", "c2", "c3"]],
        walk="tour",
        acceleration=kind,
        depth=2,
    )
    check_against_reference(case, method, accelerated_mtcd, 1e-6)


@pytest.mark.parametrize("kind", ["anderson", "momentum", "conjugate"])
def test_tours_of_clusters_whose_clients_leave_and_return(kind: str) -> None:
    """The acceleration restarts with each view; where a whole cluster is away, the other goes
    on."""
    changes = (Change(12, leave=["c0", "c1"]), Change(24, join=["c0", "c1"], leave=["c4"]))
    case = case_of(RIDGE, "path", changes=changes)
    clusters = [["c0", "c1"], ["c2", "c3", "c4"]]
    method = MTCD(None, 4, 1, 0.02, clusters=clusters, walk="tour", acceleration=kind, depth=2)
    check_against_reference(case, method, accelerated_mtcd, 1e-6)


@pytest.mark.parametrize("kind", ["anderson", "momentum", "conjugate"])
@pytest.mark.parametrize(
    ("start", "changes"),
    [
        ("c1", (Change(20, leave=["c4", "c3"]), Change(33, join=["c3"], leave=["c0"]))),
        ("c0", (Change(40, leave=["c0"]), Change(60, leave=["c4"], join=["c0"]))),  # home itself
        (None, ()),  # from wherever the seed says
    ],
    ids=["others", "home", "nobody"],
)
def test_tours_of_a_lone_token_whose_clients_leave_and_return(
    kind: str, start: str | None, changes: tuple[Change, ...]
) -> None:
    case = case_of(RIDGE, "path", changes=changes)
    method = STCD(1, 0.02, walk="tour", acceleration=kind, depth=2, start=start)
    check_against_reference(case, method, accelerated_stcd, 1e-6)


@pytest.mark.parametrize("walk", ["lazy", "non-backtracking", "tour"])
def test_a_lone_token_that_starts_where_it_is_told_passes_absent_clients(walk: str) -> None:
    changes = (Change(5, leave=["c1", "c2"]), Change(15, join=["c2"]), Change(22, join=["c1"]))
    case = case_of(RIDGE, "cycle", changes=changes)
    problem = RIDGE.problem(case.data)
    for start in (["c1"], "c3"):
        method = STCD(2, 0.01, walk=walk, start=start)
        ours = iterates(case, method, 31)
        for hops in (1, 6, 14, 30):
            assert_same(
                ours[hops : hops + 1],
                [reference.stcd(problem, case.network, method, case.seed, hops)],
            )


def test_a_token_is_rounded_between_clients_only() -> None:
    problem = RIDGE.problem(case_of(RIDGE, "path").data)
    sent: list[np.ndarray] = []

    def rounded(Z: np.ndarray) -> np.ndarray:
        sent.append(Z)
        return np.round(Z, 1)

    f, theta, way = reference.Objective(problem, None), reference.zeros(problem), [1, 1, 0, 0]
    new, Z, k = reference.token_roaming(
        theta, f.token(theta), 0, f, 4, 2, 0.01, lambda s, k: way[s], rounded
    )
    assert len(sent) == 2
    assert k == 0
    steps = np.zeros(2)
    for _ in range(2):  # the first visit, by hand
        steps = steps - 0.01 * (
            problem.blocks[0].T @ (problem.blocks[0] @ steps - problem.labels) + 0.5 * steps
        )
    np.testing.assert_allclose(sent[0], problem.blocks[0] @ steps)
    assert 0 < np.abs(Z - f.token(new)).max() <= 0.1 + 1e-9  # two roundings
    assert not theta[0].any()


def test_a_plain_objective_is_that_of_its_batch() -> None:
    """N/B times the loss of the batch: the mean of its gradients over batches is that of all
    samples."""
    problem = RIDGE.problem(case_of(RIDGE, "path").data)
    theta = [np.ones(block.shape[1]) for block in problem.blocks]
    whole = reference.Objective(problem, None)
    halves = [reference.Objective(problem, np.arange(n, 14, 2)) for n in (0, 1)]
    one, *two = (f.step(1, theta[1], f.token(theta), 0.1) - theta[1] for f in (whole, *halves))
    np.testing.assert_allclose(np.mean(two, axis=0), one)
