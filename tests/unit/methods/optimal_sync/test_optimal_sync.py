"""Optimal sync: the weights against another solver, the plain twin, the invariant, and that f never
rises."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.optimal_sync.parties import OptimalServer
from mtcd.methods.optimal_sync.reference import weights_of_optimal_sync
from mtcd.methods.optimal_sync.tally import SyncTally
from mtcd.methods.optimal_weights import Along, optimal_weights
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import LinearProblem
from mtcd.network.topology import make_network
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import LocalUpdates
from mtcd.protocol.token import Token
from mtcd.testing.references import mtcd as reference
from problems import MODELS, Case, cases, make_data, mtcd_settings

SMOOTH = [model for model in MODELS if not model.l1 and model.l2_weight]


def some_models(model: mtcd.Glm, tokens: int, seed: int) -> tuple[LinearProblem, list, list[list]]:
    """A problem, a model, and what tokens have made of it, each at two of the clients."""
    problem = model.problem(make_data(model, 12, [2, 3, 1, 2], seed))
    rng = np.random.default_rng(seed)
    start = [0.1 * rng.standard_normal(problem.client(k).initial().shape) for k in range(4)]
    ends = []
    for token in range(tokens):
        ends.append(list(start))
        for k in (token % 4, (token + 1) % 4):
            client = problem.client(k)
            ends[-1][k] = client.local_update(
                start[k], problem.aggregate(ends[-1]), LocalUpdates(5, 1e-2)
            )
    return problem, start, ends


def at(start: list, ends: list[list], w: np.ndarray) -> list:
    return [
        theta + sum(w[i] * (end[k] - theta) for i, end in enumerate(ends))
        for k, theta in enumerate(start)
    ]


def chosen(problem: LinearProblem, start: list, ends: list[list]) -> np.ndarray:
    visited = [{token % 4, (token + 1) % 4} for token in range(len(ends))]
    return weights_of_optimal_sync(problem, start, ends, visited)


@pytest.mark.parametrize("model", SMOOTH, ids=lambda m: f"{m.kind}-{m.l2}")
@pytest.mark.parametrize("tokens", [1, 3])
def test_the_weights_are_those_that_another_solver_finds(model: mtcd.Glm, tokens: int) -> None:
    for seed in range(4):
        problem, start, ends = some_models(model, tokens, seed)
        found = problem.evaluate(at(start, ends, chosen(problem, start, ends)))
        best = minimize(
            lambda w, p=problem, s=start, e=ends: p.evaluate(at(s, e, w)),
            np.zeros(tokens),
            tol=1e-12,
        )
        assert found == pytest.approx(best.fun, rel=1e-7)


@pytest.mark.parametrize(
    "model", [model for model in MODELS if model.l1], ids=lambda m: f"{m.kind}-{m.l1}"
)
def test_with_l1_they_are_the_best_of_the_bound(model: mtcd.Glm) -> None:
    """Tokens 0 and 1 both visit client 1, so that weights go up to 1/2; the bound is evaluated on a
    fine grid."""
    for seed in range(4):
        problem, start, ends = some_models(model, 2, seed)
        w = chosen(problem, start, ends)
        assert w.min() >= 0
        assert w.max() <= 0.5
        smooth = [mtcd.models.glm.penalty.Penalty(0.0, r.l2, r.free) for r in problem.penalties]
        kinks = [
            sum(r.kink(t) for r, t in zip(problem.penalties, theta, strict=True))
            for theta in (start, *ends)
        ]

        def bound(w, problem=problem, start=start, ends=ends, smooth=smooth, kinks=kinks) -> float:
            theta = at(start, ends, w)
            rest = sum(r.value(t) for r, t in zip(smooth, theta, strict=True))
            linear = kinks[0] + sum(
                v * (kink - kinks[0]) for v, kink in zip(w, kinks[1:], strict=True)
            )
            return problem.fit.objective(problem.aggregate(theta), rest + linear)

        steps = np.linspace(0, 0.5, 41)
        lowest = min(bound(np.array(pair)) for pair in itertools.product(steps, steps))
        assert bound(w) <= lowest * (1 + 1e-9)
        assert problem.evaluate(at(start, ends, w)) <= bound(w) * (1 + 1e-12)


@given(st.data())
@settings(max_examples=60)
def test_the_parties_follow_the_plain_version(data: st.DataObject) -> None:
    case = data.draw(cases())
    method = data.draw(mtcd_settings(case, ("optimal",)))
    problem = case.model.problem(case.data)
    expected = reference.mtcd(
        problem, case.network, method, case.seed, T=5, choose=weights_of_optimal_sync
    )
    parties = method.parties(problem, case.network, case.seed)
    for _, theta in zip(LocalEngine(parties, Ledger()).run(), expected, strict=False):
        assert problem.evaluate(parties.parameters()) == pytest.approx(
            problem.evaluate(theta), rel=1e-4
        )


@given(st.data(), st.sampled_from([1e-3, 3e-2, 1.0, 1e60, 1e200]))
@settings(max_examples=80)
def test_f_never_rises_whatever_the_step_size(data: st.DataObject, stepsize: float) -> None:
    case: Case = data.draw(cases())
    method = data.draw(mtcd_settings(case, ("optimal",))).with_stepsize(stepsize)
    problem = case.model.problem(case.data)
    parties = method.parties(problem, case.network, case.seed)
    values = []
    with np.errstate(all="ignore"):
        for told in itertools.islice(LocalEngine(parties, Ledger()).run(), 8):
            values.append(problem.evaluate(parties.parameters()))
            if told.aggregate is not None and not np.isfinite(told.aggregate).all():
                break
    values = list(itertools.takewhile(np.isfinite, values))  # until every token has been driven off
    assert all(after <= before + 1e-9 * abs(before) for before, after in itertools.pairwise(values))


@pytest.fixture(scope="module")
def ridge() -> mtcd.data.vertical.VerticalData:
    return mtcd.synthetic("ridge", samples=150, features=300, clients=12)


def syncs(data: mtcd.data.vertical.VerticalData, method: MTCD, gap: float = 1e-3) -> int:
    run = mtcd.train(
        data, mtcd.Glm("ridge", alpha=10), "cycle", method, mtcd.Stop(gap=gap, iterations=60_000)
    )
    assert run.status == "converged"
    return run.final.syncs


def test_it_needs_fewer_syncs_than_averaging(ridge: mtcd.data.vertical.VerticalData) -> None:
    average, optimal = (MTCD(4, 12, 20, combine=rule) for rule in ("average", "optimal"))
    assert syncs(ridge, optimal) < 0.6 * syncs(ridge, average)


def test_it_converges_where_adding_diverges(ridge: mtcd.data.vertical.VerticalData) -> None:
    adding = MTCD(4, 8, 100, 3e-4, clusters="auto", walk="tour")
    stop = mtcd.Stop(gap=1e-3, iterations=60_000)
    assert (
        mtcd.train(ridge, mtcd.Glm("ridge", alpha=10), "cycle", adding, stop).status == "diverged"
    )
    assert syncs(ridge, MTCD(4, 8, 100, 3e-4, clusters="auto", walk="tour", combine="optimal")) > 0


def test_what_the_tokens_carry_is_on_the_ledger(ridge: mtcd.data.vertical.VerticalData) -> None:
    """N numbers; a product per token, the slope and whom it met; the weights of syncs that some
    have not heard of."""
    method = MTCD(3, 2, 1, combine="optimal", walk="non-backtracking", start=[0, 4, 8])
    run = mtcd.train(ridge, mtcd.Glm("ridge"), "complete", method, mtcd.Stop(iterations=4))
    N, tokens, ids, told = 150, 3, (1, 2), (0, 3)
    hops = sum(tokens * (N + tokens + 1 + met + weights) for met in ids for weights in told)
    assert run.ledger.floats()["client_client"] == hops
    assert run.ledger.floats()["downlink"] == sum(
        tokens * (N + tokens + 1 + weights) for weights in told
    )


def test_tokens_that_have_gone_the_same_way_do_no_harm() -> None:
    problem, start, ends = some_models(SMOOTH[0], 1, 0)
    twice = [ends[0], ends[0]]
    alone, both = chosen(problem, start, ends), chosen(problem, start, twice)
    assert both.sum() == pytest.approx(alone.sum())


@pytest.mark.parametrize("seed", [3, 14, 31])
def test_weights_at_their_bounds_are_the_best_also_of_tokens_that_went_the_same_way(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight tokens at six clients take short steps. With seeds 14 and 31 bvls alone ended 0.06% and
    0.09% above."""

    def compared(along: Along, most: None) -> np.ndarray:
        w = optimal_weights(along, most)
        best = minimize(
            along.value, w, jac=along.gradient, bounds=[(-100.0, 100.0)] * len(w), tol=1e-13
        )
        assert along.value(w) <= best.fun * (1 + 1e-8)
        return w

    monkeypatch.setattr("mtcd.methods.optimal_sync.parties.optimal_weights", compared)
    model = mtcd.Glm("logistic", l2=0.2)
    problem = model.problem(make_data(model, 13, [5, 1, 1, 5, 1, 2], seed))
    network = mtcd.make_network("complete", [f"c{k}" for k in range(6)])
    parties = MTCD(8, 1, 1, 0.005, combine="optimal").parties(problem, network, seed)
    assert len(list(itertools.islice(LocalEngine(parties, Ledger()).run(), 6))) == 6


def test_nothing_changes_where_no_token_changed_anything() -> None:
    problem, start, _ = some_models(SMOOTH[0], 1, 0)
    Z = problem.aggregate(start)
    w = optimal_weights(Along.of(problem.fit, Z, [Z, Z], np.zeros(2), np.zeros((2, 2))), None)
    assert np.array_equal(w, [0.0, 0.0])


@pytest.mark.parametrize("times", [0.5, 2.2, 3.0, 8.0, 40.0])
@pytest.mark.parametrize("walk", ["lazy", "tour"])
def test_what_is_reported_is_f_of_the_model_whatever_the_step_size(times: float, walk: str) -> None:
    data, model = mtcd.synthetic("ridge", samples=60, features=40, clients=10), mtcd.Glm("ridge")
    problem = model.problem(data)
    step = times / float(BlockSmoothness(problem).blocks.max())
    for seed in range(3):
        method = MTCD(4, 20, 10, step, combine="optimal", walk=walk)
        run = mtcd.train(
            data, model, "path", method, mtcd.Stop(gap=1e-4, iterations=600), seed=seed
        )
        if run.status == "diverged":  # every token was driven off
            assert times > 2
            continue
        thetas = np.split(run.coefficients, 10)
        assert run.objective == pytest.approx(problem.evaluate(thetas), rel=1e-9)
        assert run.objective <= run.history.rows[0].objective


def test_a_token_that_was_driven_off_does_not_count_and_if_all_were_that_is_seen() -> None:
    problem, _, ends = some_models(SMOOTH[0], 1, 0)

    def synced(*aggregates: np.ndarray) -> OptimalServer:
        method = MTCD(len(aggregates), 2, 5, 1e-2, combine="optimal")
        server = method.parties(
            problem, mtcd.make_network("complete", [f"c{k}" for k in range(4)]), 0
        ).server
        tokens = [Token(i, 0, 2, aggregate, 0.0) for i, aggregate in enumerate(aggregates)]
        for token in tokens:
            token.put("tally", SyncTally(np.zeros(len(tokens)), visited={0}))
        server.combine(tokens)
        return server

    good = problem.aggregate(ends[0])
    away = np.random.default_rng(1).standard_normal(len(good)) * np.linalg.norm(problem.labels)
    assert synced(good, away).past[0].all()  # ten times the objective of the start is not far off
    assert np.array_equal(synced(good, 1e3 * away).past[0] == 0, [False, True])
    np.testing.assert_array_equal(synced(good, 1e3 * away).aggregate, synced(good).aggregate)
    assert np.isnan(synced(1e3 * away, -1e3 * away).aggregate).all()


DATA = make_data(MODELS[0], 12, [2, 1, 3], seed=3)


NETWORK = make_network("path", DATA.clients)


METHODS: list[Method] = [
    mtcd.STCD(stepsize=0.01),
    mtcd.MTCD(2, 3, stepsize=0.01),
    mtcd.MTCD(2, 3, stepsize=0.01, combine="optimal"),
    mtcd.SVFL(stepsize=0.01),
]


def test_copies_whose_sync_is_not_known_do_not_count() -> None:
    """Of optimal sync: a client that has no weights for its copies keeps the parameters from before
    the visits."""
    parties: Any = METHODS[2].parties(MODELS[0].problem(DATA), NETWORK, 0)
    client = parties.clients[0]
    before = client.theta[0].copy()
    client.copies = {0: (before + 1.0, 0.0), 1: (before + 3.0, 0.0)}
    np.testing.assert_array_equal(client.after_sync({}), before)
    np.testing.assert_array_equal(client.after_sync({client.t + 1: np.ones(2)}), before)
    np.testing.assert_allclose(
        client.after_sync({client.t: np.array([0.5, 2.0])}), before + 0.5 + 6.0
    )
    client.copies = {}
    np.testing.assert_array_equal(client.after_sync({client.t: np.ones(2)}), before)
