"""The methods against the plain reference, and against each other where they must coincide."""

import itertools
import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from compared_iterates import assert_same, iterates
from mtcd.core.errors import ConfigError, NetworkError
from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.reference import svfl as plain_svfl
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import LinearProblem
from mtcd.network.topology import Network, make_network
from mtcd.network.walks import WALKS
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.testing.references import mtcd as reference
from problems import MODELS, Case, cases, make_data, mtcd_settings


@dataclass(frozen=True)
class Warm:
    """A model whose problems start from random parameters."""

    model: mtcd.Glm
    seed: int

    def problem(self, data: mtcd.VerticalData) -> LinearProblem:
        problem, rng = self.model.problem(data), np.random.default_rng(self.seed)
        shapes = [problem.client(k).initial().shape for k in range(len(problem.blocks))]
        return replace(problem, start=tuple(0.3 * rng.standard_normal(shape) for shape in shapes))


def started(case: Case, warm: bool) -> Case:
    return replace(case, model=Warm(case.model, case.seed)) if warm else case


@given(st.data(), st.booleans())
@settings(max_examples=120)
def test_mtcd_follows_the_reference(data: st.DataObject, warm: bool) -> None:
    case = data.draw(cases())
    method = data.draw(mtcd_settings(case))
    case = started(case, warm)
    expected = reference.mtcd(case.model.problem(case.data), case.network, method, case.seed, T=4)
    assert_same(iterates(case, method, 5), expected)


@given(
    cases(connected=True),
    st.booleans(),
    st.integers(1, 4),
    st.integers(0, 30),
    st.sampled_from(sorted(WALKS)),
)
@settings(max_examples=90)
def test_stcd_follows_the_reference(
    case: Case, warm: bool, local_updates: int, hops: int, walk: str
) -> None:
    case = started(case, warm)
    method = STCD(local_updates, 3e-3, walk=walk)
    expected = reference.stcd(
        case.model.problem(case.data), case.network, method, case.seed, S=hops
    )
    assert_same(iterates(case, method, hops + 1)[-1:], [expected])


@given(cases(), st.booleans(), st.integers(1, 4), st.sampled_from([None, 2, 5]))
@settings(max_examples=70)
def test_svfl_follows_the_reference(
    case: Case, warm: bool, local_updates: int, batch: int | None
) -> None:
    case = started(case, warm)
    method = SVFL(local_updates, 2e-3, batch)
    expected = plain_svfl(case.model.problem(case.data), method, case.seed, rounds=4)
    assert_same(iterates(case, method, 5), expected)


@given(cases(), st.integers(1, 4), st.sampled_from([None, 4]))
@settings(max_examples=40)
def test_mtcd_without_edges_and_a_token_each_is_svfl(
    case: Case, local_updates: int, batch: int | None
) -> None:
    alone = Case(case.data, case.model, make_network("empty", case.network.clients), case.seed)
    tokens = MTCD(
        tokens=case.network.size,
        hops=1,
        local_updates=local_updates,
        stepsize=2e-3,
        batch=batch,
        combine="cluster",
    )
    server = SVFL(local_updates, 2e-3, batch)
    assert_same(iterates(alone, tokens, 8), iterates(alone, server, 8), tolerance=1e-12)


@given(
    cases(connected=True),
    st.integers(1, 4),
    st.integers(1, 40),
    st.sampled_from(["average", "cluster", "visitors"]),
)
@settings(max_examples=40)
def test_one_token_with_one_long_roam_is_stcd(
    case: Case, local_updates: int, hops: int, combine: str
) -> None:
    one = MTCD(tokens=1, hops=hops, local_updates=local_updates, stepsize=2e-3, combine=combine)
    after_one_sync = iterates(case, one, 2)[-1:]
    assert_same(
        after_one_sync, iterates(case, STCD(local_updates, 2e-3), hops + 1)[-1:], tolerance=0
    )


@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{m.kind}-{m.l1}-{m.l2}-{m.intercept}")
def test_same_seed_same_run_another_seed_another(model) -> None:
    data = make_data(model, 12, [2, 3, 1, 2], seed=1)
    network = make_network("cycle", data.clients)
    method = MTCD(tokens=2, hops=3, local_updates=2, stepsize=1e-3)
    runs = [iterates(Case(data, model, network, seed), method, 4)[-1] for seed in (5, 5, 6)]
    for a, b in zip(runs[0], runs[1], strict=True):
        assert np.array_equal(a, b)
    assert any(not np.array_equal(a, b) for a, b in zip(runs[0], runs[2], strict=True))


SCRIPT = """
import hashlib, mtcd
data = mtcd.synthetic("logistic", samples=40, features=12, clients=6, seed=3)
run = mtcd.train(data, mtcd.Glm("logistic", l2=0.1), "cycle",
                 mtcd.MTCD(tokens=3, hops=5, local_updates=2, stepsize=1e-2, batch=8), mtcd.Stop(iterations=60),
                 seed=11)
print(hashlib.sha256(run.coefficients.tobytes()).hexdigest(), run.ledger)
"""


def test_same_seed_same_run_across_processes() -> None:
    printed = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert printed[0] == printed[1] != ""


def test_tokens_start_where_they_are_told_and_only_there() -> None:
    model = MODELS[0]
    data = make_data(model, 10, [1, 1, 1, 1], seed=0)
    network = make_network("path", data.clients)
    method = MTCD(
        tokens=2, hops=3, stepsize=1e-3, start=["c0", {"c2": 1.0, "c3": 3.0}], combine="average"
    )
    starts = [method.parties(model.problem(data), network, seed).opening[1:] for seed in range(400)]
    first = {messages[0].to for messages in starts}
    second = np.bincount([messages[1].to for messages in starts], minlength=4) / 400
    assert first == {0}
    assert second[:2].sum() == 0
    assert abs(second[3] - 0.75) < 0.1


def test_clusters_confine_their_tokens() -> None:
    model = MODELS[0]
    data = make_data(model, 10, [1] * 6, seed=0)
    network = make_network("cycle", data.clients)
    method = MTCD(hops=30, stepsize=1e-3, clusters=[["c0", "c1", "c2"], ["c3", "c4", "c5"]])
    parties = method.parties(model.problem(data), network, 0)
    list(itertools.islice(LocalEngine(parties, Ledger()).run(), 2))
    assert [set(client.copies) for client in parties.clients] == [{0}] * 3 + [{1}] * 3


def networks_in_two() -> Network:
    return Network(("c0", "c1", "c2"), ((1,), (0,), ()))


def test_stcd_refuses_a_network_in_pieces_and_names_a_client_it_cannot_reach() -> None:
    model = MODELS[0]
    data = make_data(model, 10, [1, 1, 1], seed=0)
    with pytest.raises(
        NetworkError, match="connected.*2 pieces .client 'c2' cannot be reached from 'c0'"
    ):
        STCD(1, 1e-3).parties(model.problem(data), networks_in_two(), 0)
    MTCD(hops=2, stepsize=1e-3, clusters="auto").parties(model.problem(data), networks_in_two(), 0)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: MTCD(stepsize=0.0), "stepsize.*above 0"),
        (lambda: MTCD(stepsize=-1.0), "stepsize.*above 0"),
        (lambda: MTCD(stepsize=float("nan")), "stepsize"),
        (lambda: MTCD(stepsize="automatic"), "'auto'"),
        (lambda: MTCD(tokens=0), "tokens"),
        (lambda: MTCD(hops=0), "hops"),
        (lambda: MTCD(batch=0), "batch"),
        (lambda: MTCD(combine="averge"), "average"),
        (lambda: SVFL(local_updates=0), "local_updates"),
        (lambda: STCD(stepsize=-2.0), "stepsize"),
        (lambda: MTCD(tokens=2, hops=None), "stcd"),
        (lambda: MTCD(tokens=1.5), "tokens must be a whole number"),
        (lambda: MTCD(hops="4"), "hops must be a whole number"),
        (lambda: SVFL(local_updates=2.5), "local_updates must be a whole number"),
        (lambda: STCD(stepsize=None), "stepsize must be a number"),
    ],
)
def test_settings_that_cannot_work_are_refused(make, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make()


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (MTCD(tokens=9, stepsize=1e-3, combine="cluster"), "9"),
        (MTCD(tokens=3, stepsize=1e-3, clusters=[["c0", "c1"], ["c2"]]), "tokens is 3.*2 clusters"),
        (MTCD(tokens=10**9, stepsize=1e-3), "far more"),
        (MTCD(stepsize=1e-3, batch=11), "batch is 11.*10 samples"),
        (MTCD(stepsize=1e-3, start="c9"), "c9"),
        (MTCD(tokens=2, stepsize=1e-3, start=["c0"]), "1 starts for 2 tokens"),
        (MTCD(stepsize=1e-3, walk="lasy"), "lazy"),
    ],
)
def test_settings_that_do_not_fit_the_problem_are_refused(method: MTCD, says: str) -> None:
    model = MODELS[0]
    data = make_data(model, 10, [1, 1, 1], seed=0)
    with pytest.raises((ConfigError, NetworkError), match=says):
        method.parties(model.problem(data), make_network("path", data.clients), 0)


@pytest.mark.parametrize(
    "clusters", [["c0", "c1"], [["c0"], "c1"], [0, 1], "none", 3, {"c0": ["c1"]}]
)
def test_clusters_are_lists_of_lists_or_chosen_here(clusters: object) -> None:
    with pytest.raises(ConfigError, match="'auto', 'balanced' or a list of lists of clients"):
        MTCD(hops=3, clusters=clusters)
    assert MTCD(hops=3, clusters=[["c0"], ("c1", "c2")]).clusters is not None


@pytest.mark.parametrize(
    ("method", "words"),
    [
        (mtcd.SVFL(3), "SVFL, Q=3"),
        (mtcd.SVFL(3, batch=5), "SVFL, Q=3, B=5"),
        (mtcd.DCPA(), "DCPA (B)"),
        (mtcd.DCPA(stepsize=0.5, dual_stepsize=0.25), "DCPA (B), μ_w=0.5, μ_y=0.25"),
        (mtcd.STCD(2), "STCD, Q=2"),
        (mtcd.STCD(2, walk="tour"), "STCD, Q=2, tour"),
        (mtcd.STCD(2, local_solver="majorise"), "STCD, Q=2, majorise"),
        (
            mtcd.STCD(2, stepsize=0.1, walk="tour", acceleration="anderson", depth=3),
            "STCD, Q=2, tour, anderson (M=3)",
        ),
        (
            mtcd.STCD(2, stepsize=0.1, walk="tour", acceleration="momentum"),
            "STCD, Q=2, tour, momentum",
        ),
        (mtcd.STCD(walk="tour", acceleration="conjugate"), "STCD, Q=auto, tour, conjugate"),
        (
            mtcd.STCD(walk="tour", acceleration="anderson", stepsize=0.1),
            "STCD, Q=1, tour, anderson (M=5)",
        ),
        (mtcd.MTCD(2, 3, 4), "MTCD, Γ=2, S=3, Q=4, average"),
        (mtcd.MTCD(3, 4, 2, batch=6), "MTCD, Γ=3, S=4, Q=2, B=6, average"),
        (mtcd.MTCD(clusters="auto", hops=4), "MTCD, Γ=auto, S=4, Q=1, cluster"),
        (mtcd.MTCD(hops=3), "MTCD, Γ=1, S=3, Q=1, average"),
        (
            mtcd.MTCD(hops=3, batch=7, clusters=[["a"], ["b"], ["c"]]),
            "MTCD, Γ=3, S=3, Q=1, B=7, cluster",
        ),
        (mtcd.MTCD(hops=3, combine="cluster"), "MTCD, Γ=auto, S=3, Q=1, cluster"),
    ],
)
def test_methods_in_a_few_words(method: Method, words: str) -> None:
    assert method.describe() == words
