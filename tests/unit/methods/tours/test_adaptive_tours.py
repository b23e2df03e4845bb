"""Conjugate tours that choose their steps: the plain twin, conjugate gradients, the survey, and
what it saves."""

import itertools
from collections import Counter
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import mtcd
from compared_tours import at_sync, check_against_reference, check_invariant
from mtcd.engines.local import LocalEngine
from mtcd.methods.method import resolve_stepsize
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.tours.survey import ALIKE_WITHIN, INDEPENDENT, RELATED, WIDE, WIDE_RELATED
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import LinearClient
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import LocalUpdates
from problems import Case, cases

RIDGE = mtcd.Glm("ridge", l2=10.0)
# where f is flat, rounding, which small steps enlarge, decides on parameters; f itself agrees to
# 1e-5
FLAT = 1e-2


def settled(case: Case, method: MTCD) -> MTCD:
    problem = case.model.problem(case.data)
    assume(any(abs(block).sum() for block in problem.blocks))
    found = resolve_stepsize(replace(method, stepsize="auto"), BlockSmoothness(problem))[0]
    assert found.adaptive
    return found


@pytest.mark.long
@given(cases(connected=True))
@settings(max_examples=20)
def test_they_follow_the_plain_version(case: Case) -> None:
    assume(not case.model.l1)
    method = settled(case, STCD(walk="tour", acceleration="conjugate"))
    check_against_reference(case, method, FLAT)


@pytest.mark.long
@given(cases(), st.data())
@settings(max_examples=20)
def test_so_they_do_at_the_sync(case: Case, data: st.DataObject) -> None:
    assume(not case.model.l1)
    method = settled(case, at_sync(case, 1, None, "conjugate", data))
    check_against_reference(case, method, FLAT)


@given(cases(connected=True))
@settings(max_examples=20)
def test_the_token_is_at_every_hop_what_the_clients_are_about_to_hold(case: Case) -> None:
    """Where there is an optimum: of separable classes without a penalty, the extrapolation goes on
    for ever."""
    assume(not case.model.l1)
    assume(case.model.l2_weight or case.model.loss.example == "ridge")
    check_invariant(case, settled(case, STCD(walk="tour", acceleration="conjugate")), drift=1e-5)


def made(kind: str, samples: int, features: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, features))
    if kind == "alike":  # neighbouring columns
        for j in range(1, features):
            X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1 - 0.95**2) * X[:, j]
    if kind == "factors":  # all columns
        X = 0.3 * X + rng.standard_normal((samples, 5)) @ rng.standard_normal((5, features))
    return X, X @ rng.standard_normal(features) + rng.standard_normal(samples)


NETWORKS = {"path": nx.path_graph(12), "star": nx.star_graph(11), "cycle": nx.cycle_graph(12)}


def adaptive_run(X: np.ndarray, y: np.ndarray, graph: nx.Graph, gap: float = 1e-6) -> mtcd.Run:
    data = mtcd.split(X, y, clients=len(graph))
    named = nx.relabel_nodes(graph, dict(enumerate(data.clients)))
    method = STCD(walk="tour", acceleration="conjugate")
    return mtcd.train(data, RIDGE, named, method, mtcd.Stop(gap=gap, iterations=20_000))


def conjugate_gradients(X: np.ndarray, y: np.ndarray, l2: float, gap: float) -> int:
    """Iterations of the textbook's method to the gap."""
    A, b = X.T @ X + l2 * np.eye(X.shape[1]), X.T @ y

    def value(theta: np.ndarray) -> float:
        return float(np.sum((X @ theta - y) ** 2) / 2 + l2 * theta @ theta / 2)

    best = value(np.linalg.solve(A, b))
    theta, r = np.zeros(len(b)), b.copy()
    p = r.copy()
    for iteration in itertools.count(1):
        step = (r @ r) / (p @ A @ p)
        theta, after = theta + step * p, r - step * A @ p
        p, r = after + (after @ after) / (r @ r) * p, after
        if (value(theta) - best) / best <= gap:
            return iteration
    raise AssertionError


@pytest.mark.parametrize(
    ("kind", "features"),
    [("independent", 40), ("alike", 150), ("factors", 100), ("factors", 400), ("wide", 400)],
)
@pytest.mark.parametrize("network", NETWORKS)
def test_they_need_no_more_messages_than_conjugate_gradients_along_a_tree(
    kind: str, features: int, network: str
) -> None:
    X, y = made(kind, 150, features)
    run, K = adaptive_run(X, y, NETWORKS[network]), 12
    assert run.status == "converged"
    iterations = conjugate_gradients(X, y, 10.0, 1e-6)
    # a tour more, for the last mix has to be told to all
    assert run.final.messages["client_client"] <= (iterations + 1) * 2 * (K - 1)
    if kind != "wide":
        assert run.final.messages["client_client"] <= 0.95 * iterations * 2 * (K - 1)
    if network == "cycle":
        assert run.final.messages["client_client"] <= 0.6 * iterations * 2 * (K - 1) + K


@pytest.mark.parametrize("network", NETWORKS)
def test_with_small_steps_a_tour_is_a_step_of_conjugate_gradients(network: str) -> None:
    X, y = made("independent", 60, 48)
    data = mtcd.split(X, y, clients=12)
    problem, links = RIDGE.problem(data), mtcd.make_network(network, data.clients)
    method = STCD(1, 1e-6, walk="tour", acceleration="conjugate", depth=3)
    parties = method.parties(problem, links, 0)
    roaming = method.plan(60, 1, links, 0).roaming
    ends = (told for told in LocalEngine(parties, Ledger()).run() if roaming.ends_tour(told.hop))
    A, b = X.T @ X + 10.0 * np.eye(48), X.T @ y
    theta, r = np.zeros(48), b.copy()
    p = r.copy()
    # the start, and the first tour, which has only gone a little way along the gradient
    next(ends), next(ends)
    for _, _ in zip(range(8), ends, strict=False):
        step = (r @ r) / (p @ A @ p)
        theta, after = theta + step * p, r - step * A @ p
        p, r = after + (after @ after) / (r @ r) * p, after
        ours = np.concatenate([client.parameters() for client in parties.clients])
        np.testing.assert_allclose(ours, theta, atol=1e-3 * np.abs(theta).max())


@pytest.mark.parametrize(
    ("kind", "features", "factor"),
    [
        ("independent", 40, INDEPENDENT),
        ("alike", 150, ALIKE_WITHIN),
        ("factors", 100, RELATED),
        ("factors", 400, WIDE_RELATED),
        ("wide", 400, WIDE),
    ],
)
def test_the_first_tour_tells_the_step_that_suits(kind: str, features: int, factor: float) -> None:
    X, y = made(kind, 150, features)
    data = mtcd.split(X, y, clients=12)
    problem = RIDGE.problem(data)
    method = resolve_stepsize(
        STCD(walk="tour", acceleration="conjugate"), BlockSmoothness(problem)
    )[0]
    parties = method.parties(problem, mtcd.make_network("path", data.clients), 0)
    # the end of the second tour
    next(told for told in LocalEngine(parties, Ledger()).run() if told.hop == 44)
    home = next(
        client.acceleration for client in parties.clients if client.acceleration is not None
    )
    g = X.T @ y
    L = np.sum((X @ g) ** 2) / (g @ g) + 10.0  # the curvature along the first gradient
    assert home.stepsize == pytest.approx(factor / L, rel=2e-2)


@pytest.mark.parametrize("network", NETWORKS)
def test_every_client_makes_two_updates_a_tour(
    network: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the tour comes by: with other numbers some blocks would count more than
    others."""
    counts: Counter[int] = Counter()
    plain = LinearClient.local_update

    def counted(self: LinearClient, theta, aggregate, updates: LocalUpdates):
        counts[id(self.X)] += updates.Q
        return plain(self, theta, aggregate, updates)

    monkeypatch.setattr(LinearClient, "local_update", counted)
    X, y = made("independent", 30, 24)
    data = mtcd.split(X, y, clients=12)
    method, links = (
        STCD(1, 1e-4, walk="tour", acceleration="conjugate"),
        mtcd.make_network(network, data.clients),
    )
    parties = method.parties(RIDGE.problem(data), links, 0)
    length = method.plan(30, 1, links, 0).roaming.walks[0].length
    next(told for told in LocalEngine(parties, Ledger()).run() if told.hop == 5 * length)
    # five tours, but for the last update at home
    assert sorted(counts.values()) == [9, *[10] * 11]


def test_a_given_step_is_taken_as_given() -> None:
    X, y = made("independent", 60, 24)
    method = STCD(3, 1e-4, walk="tour", acceleration="conjugate")
    run = mtcd.train(mtcd.split(X, y, clients=6), RIDGE, "path", method, mtcd.Stop(iterations=100))
    assert run.stepsize == 1e-4
    assert "Q=3" in run.method
    chosen = mtcd.train(
        mtcd.split(X, y, clients=6),
        RIDGE,
        "path",
        replace(method, stepsize="auto"),
        mtcd.Stop(iterations=100),
    )
    assert "Q=auto" in chosen.method
    assert any("first tour" in note for note in chosen.notes)


@pytest.mark.parametrize(
    "model", [mtcd.Glm("linear"), mtcd.Glm("ridge", l2=1e7), mtcd.Glm("logistic", intercept=True)]
)
def test_they_converge_without_a_penalty_with_a_huge_one_and_with_an_intercept(
    model: mtcd.Glm,
) -> None:
    X, y = made("independent", 90, 20, seed=3)
    if model.kind == "logistic":
        y = (np.random.default_rng(5).random(90) < 0.5).astype(float)
    data = mtcd.split(X, y, clients=5)
    method = STCD(walk="tour", acceleration="conjugate")
    run = mtcd.train(data, model, "star", method, mtcd.Stop(gap=1e-8, iterations=5000))
    assert run.status == "converged"


def test_a_block_without_curvature_keeps_its_parameters() -> None:
    data = mtcd.split(
        np.column_stack([np.arange(5.0), np.zeros(5)]), np.arange(5.0) ** 2, {"a": [0], "b": [1]}
    )
    method = mtcd.STCD(walk="tour", acceleration="conjugate")
    run = mtcd.train(data, mtcd.Glm("linear"), "path", method, mtcd.Stop(iterations=12))
    np.testing.assert_allclose(run.coefficients, [100 / 30, 0.0], rtol=1e-6)


@pytest.mark.parametrize("kind", ["linear", "logistic", "huber"])
def test_columns_in_units_of_their_own_are_no_obstacle(kind: str) -> None:
    """Against the same columns, scaled to one norm: the penalty is so weak that it does not
    matter. Without the survey of scales this takes more than 30 times the messages."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((150, 30))
    y = X @ rng.standard_normal(30) + 0.5 * rng.standard_normal(150)
    if kind == "logistic":
        y = (y > 0).astype(float)
    units = np.exp(rng.uniform(-4, 4, 30))
    model = mtcd.Glm(kind, l2=1e-4)
    method = STCD(walk="tour", acceleration="conjugate", local_solver="majorise")
    messages = []
    for table in (X, X * units):
        data = mtcd.split(table, y, clients=8)
        run = mtcd.train(data, model, "path", method, mtcd.Stop(gap=1e-6, iterations=20_000))
        assert run.status == "converged"
        messages.append(run.final.messages["client_client"])
    assert messages[1] <= 1.5 * messages[0]
