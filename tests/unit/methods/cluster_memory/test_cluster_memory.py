"""A weight for each cluster and sync: the optimum, the lowest point of the span, the invariant, the
messages, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import mtcd
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.engines.local import LocalEngine
from mtcd.methods.cluster_memory.parties import SYNCS
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.ledger.ledger import Ledger
from problems import make_data

CLUSTERS = [[0, 1, 2], [3, 4], [5]]
SIZES = [2, 3, 1, 2, 2, 3]
RIDGE = Glm("ridge", alpha=0.5, intercept=True)
LOGISTIC = Glm("logistic", l2=0.2)
MULTINOMIAL = Glm("multinomial", l2=0.3)


def memory(**settings: Any) -> MTCD:
    given = {"hops": 4, "local_updates": 3, "stepsize": 0.01, "clusters": CLUSTERS, "walk": "tour"}
    return MTCD(**(given | settings), combine="memory")


def train(method: MTCD, model: Glm = RIDGE, samples: int = 40, **stop: Any) -> mtcd.Run:
    data = make_data(model, samples, SIZES, seed=2)
    return mtcd.train(data, model, "complete", method, mtcd.Stop(**stop))


def test_ridge_reaches_the_normal_equations() -> None:
    data = make_data(RIDGE, 40, SIZES, seed=2)
    run = train(memory(), gap=1e-9, iterations=2000)
    assert run.status == "converged"
    X = np.hstack([*data.blocks, np.ones((40, 1))])
    free = np.diag([1.0] * sum(SIZES) + [0.0])
    exact = np.linalg.solve(X.T @ X + 0.5 * free, X.T @ data.labels)
    np.testing.assert_allclose(run.coefficients, exact[:-1], atol=1e-4)


@pytest.mark.parametrize("model", [LOGISTIC, MULTINOMIAL, Glm("huber", l2=0.1)], ids=str)
def test_other_losses_reach_the_optimum(model: Glm) -> None:
    assert train(memory(), model, gap=1e-8, iterations=4000).status == "converged"


def moments(model: Glm, count: int) -> list[tuple[list[np.ndarray], Any]]:
    """Model and progress at the first syncs."""
    data = make_data(model, 30, SIZES, seed=5)
    network = make_network("complete", data.clients)
    parties = memory().parties(model.problem(data), network, 3)
    told = itertools.islice(LocalEngine(parties, Ledger()).run(), count)
    return [([np.array(theta) for theta in parties.parameters()], one) for one in told]


@pytest.mark.parametrize("model", [RIDGE, LOGISTIC, MULTINOMIAL], ids=str)
def test_what_the_server_knows_is_what_the_clients_hold(model: Glm) -> None:
    problem = model.problem(make_data(model, 30, SIZES, seed=5))
    values = []
    for theta, progress in moments(model, SYNCS + 6):  # also after changes were dropped
        np.testing.assert_allclose(progress.aggregate, problem.aggregate(theta), atol=1e-8)
        known = problem.read_off(progress.aggregate, progress.penalty)
        assert known == pytest.approx(problem.evaluate(theta), rel=1e-9)
        values.append(known)
    assert all(after <= before * (1 + 1e-12) for before, after in itertools.pairwise(values))


def test_a_sync_ends_at_the_lowest_point_of_what_the_clusters_changed() -> None:
    """By another minimiser, over all changes of the first three syncs."""
    problem = LOGISTIC.problem(make_data(LOGISTIC, 30, SIZES, seed=5))
    network = make_network("complete", [f"c{k}" for k in range(len(SIZES))])
    held = [theta for theta, _ in moments(LOGISTIC, 4)]
    changes: list[list[np.ndarray]] = []
    for t, (start, end) in enumerate(itertools.pairwise(held)):
        changes += toured(problem, network, start, t)

        def f(w: np.ndarray, start=start, changes=tuple(changes)) -> float:
            mixed = list(start)
            for weight, change in zip(w, changes, strict=True):
                mixed = [one + weight * d for one, d in zip(mixed, change, strict=True)]
            return problem.evaluate(mixed)

        lowest = minimize(f, np.zeros(len(changes)), options={"gtol": 1e-9}).fun
        assert problem.evaluate(end) <= lowest * (1 + 1e-7)
        assert problem.evaluate(end) < problem.evaluate(start)


def toured(problem: Any, network: Any, start: list[np.ndarray], t: int) -> list[list[np.ndarray]]:
    """What each token changes in sync t from this model on: gradient steps, in the order in which
    the tokens of the package visit the clients."""
    plan = memory().plan(problem.samples, 1, network, 3)
    found = []
    for token in range(len(CLUSTERS)):
        theta, client, previous = [one.copy() for one in start], plan.roaming.first(token, t), -1
        for hop in range(1, 5):
            for _ in range(3):
                slope = problem.fit.gradient(problem.aggregate(theta))
                gradient = problem.blocks[client].T @ slope + 0.2 * theta[client]
                theta[client] = theta[client] - 0.01 * gradient
            following = plan.roaming.next(token, t, hop, client, previous)
            client, previous = following, client
        found.append([new - old for new, old in zip(theta, start, strict=True)])
    return found


def test_the_messages_by_hand() -> None:
    """In sync t the token of each cluster goes down with N numbers, 2t + 2 sums and t weights; it
    makes S - 1 hops, and returns as it is."""
    run = train(memory(), samples=20, iterations=12)
    G, N, S = len(CLUSTERS), 20, 4
    assert run.ledger.messages("sent")["uplink"] == 3 * G
    assert run.ledger.messages("sent")["downlink"] == 3 * G
    floats = run.ledger.floats("sent")
    assert floats["downlink"] == floats["uplink"] == G * sum(N + 3 * t + 2 for t in range(3))
    assert run.ledger.messages("charged")["client_client"] == 3 * G * S


def test_it_takes_fewer_syncs_than_one_weight_for_each_token() -> None:
    data = mtcd.synthetic("ridge", samples=300, features=120, clients=12, seed=1)
    model, clusters = Glm("ridge", alpha=1.0), [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(4)]
    syncs = {}
    for rule in ("memory", "optimal"):
        method = MTCD(hops=3, local_updates=100, clusters=clusters, walk="tour", combine=rule)
        run = mtcd.train(data, model, "complete", method, mtcd.Stop(gap=1e-6, iterations=3000))
        assert run.status == "converged"
        syncs[rule] = run.final.syncs
    assert 1.5 * syncs["memory"] < syncs["optimal"]


def test_steps_beyond_all_bounds_end_as_diverged_or_where_they_began() -> None:
    run = train(memory(stepsize=1e6, local_updates=60), iterations=80)
    assert run.status in ("diverged", "iterations")


@pytest.mark.parametrize(
    ("settings", "model", "says"),
    [
        ({"walk": "lazy"}, RIDGE, "memory needs a walk that visits every client"),
        ({"hops": 2}, RIDGE, "method.hops is 2, but the longest tour"),
        ({}, Glm("linear", l1=0.2), "memory needs a smooth penalty"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    settings: dict[str, Any], model: Glm, says: str
) -> None:
    with pytest.raises(MtcdError, match=says):
        train(memory(**settings), model, iterations=8)


def test_what_rests_on_other_rules_is_refused() -> None:
    with pytest.raises(ConfigError, match="memory needs mtcd and the full batch"):
        memory(batch=5)
    with pytest.raises(ConfigError, match="masked is for syncs that need the sum"):
        with_masks(memory())
    data = make_data(RIDGE, 20, SIZES, seed=2)
    leaving = mtcd.with_changes(
        make_network("complete", data.clients), [mtcd.Change(8, leave=("c1",))]
    )
    with pytest.raises(ConfigError, match=r"leave network\.changes out"):
        mtcd.train(data, RIDGE, leaving, memory(), mtcd.Stop(iterations=8))


def test_a_server_that_was_restarted_sends_the_same_tokens() -> None:
    data = make_data(RIDGE, 30, SIZES, seed=5)
    network = make_network("complete", data.clients)

    def made() -> Any:
        return memory().parties(RIDGE.problem(data), network, 3)

    parties, again = made(), made().server
    for progress in LocalEngine(parties, Ledger()).run():
        if progress is not None and progress.t == 3:
            break

    again.restore(unpack(pack(parties.server.state())))
    for index in range(len(CLUSTERS)):
        one, other = parties.server.token(index), again.token(index)
        assert one.slots["cluster_weights"].any()
        assert one.slots.keys() == other.slots.keys()
        for name, value in one.slots.items():
            assert np.array_equal(value, other.slots[name])
        assert np.array_equal(one.aggregate, other.aggregate)
