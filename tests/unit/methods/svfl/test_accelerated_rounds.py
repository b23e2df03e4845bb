"""Accelerated rounds of SVFL: against other solvers, against MTCD with a cluster for each client,
and what they send."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import mtcd
from compared_iterates import iterates
from mtcd.config.build import build
from mtcd.config.read import read_config
from mtcd.core.errors import ConfigError
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.planned import PlanSetting, planned
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tours.acceleration import ACCELERATIONS, Acceleration
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.model import Glm
from mtcd.network.changes import with_changes
from mtcd.privacy.masked.masked import with_masks
from problems import MODELS, Case, cases, make_data

KINDS = sorted(
    name for name, made in ACCELERATIONS.usable().items() if issubclass(made, Acceleration)
)
SIZES = [2, 3, 1, 2]
RIDGE = Glm("ridge", alpha=0.7)


def of_clusters(method: SVFL, clients: int) -> MTCD:
    """MTCD with a cluster for each client, and the same settings."""
    return MTCD(
        hops=1,
        local_updates=method.local_updates,
        stepsize=method.stepsize,
        clusters=[[k] for k in range(clients)],
        walk="tour",
        acceleration=method.acceleration,
        depth=method.depth,
        adaptive=method.adaptive,
        local_solver=method.local_solver,
    )


@given(cases(), st.integers(1, 3), st.integers(1, 4), st.sampled_from(KINDS))
@settings(max_examples=40)
def test_iterates_are_those_of_a_cluster_for_each_client(
    case: Case, Q: int, depth: int, kind: str
) -> None:
    assume(not (ACCELERATIONS[kind].smooth_only and case.model.l1))
    rounds = SVFL(Q, 2e-3, acceleration=kind, depth=depth)
    ours = iterates(case, rounds, 8)
    theirs = iterates(case, of_clusters(rounds, case.network.size), 8)
    for here, there in zip(ours, theirs, strict=True):
        for a, b in zip(here, there, strict=True):
            assert a.tobytes() == b.tobytes()


def trained(method: SVFL, model: Glm, data: Any, **stop: Any) -> mtcd.Run:
    return mtcd.train(data, model, "empty", method, mtcd.Stop(**stop))


def theta_of(run: mtcd.Run) -> np.ndarray:
    """The parameters of all clients, one after the other."""
    return np.concatenate(list(run.parameters.values()))


@pytest.mark.parametrize("kind", KINDS)
def test_ridge_reaches_the_solution_of_the_normal_equations(kind: str) -> None:
    data = make_data(RIDGE, 30, SIZES, seed=4)
    run = trained(SVFL(acceleration=kind), RIDGE, data, gap=1e-11, iterations=3000)
    assert run.status == "converged"

    X = np.hstack(data.blocks)
    exact = np.linalg.solve(X.T @ X + RIDGE.alpha * np.eye(X.shape[1]), X.T @ data.labels)
    np.testing.assert_allclose(theta_of(run), exact, atol=1e-4)


@pytest.mark.parametrize("solver", ["gradient", "majorise"])
def test_logistic_regression_reaches_the_minimum_of_a_quasi_newton_method(solver: str) -> None:
    model = Glm("logistic", l2=0.3)
    data = make_data(model, 40, SIZES, seed=1)
    method = SVFL(acceleration="conjugate", local_solver=solver)
    run = trained(method, model, data, gap=1e-11, iterations=500)
    assert run.status == "converged"

    X, y = np.hstack(data.blocks), np.asarray(data.labels, dtype=float)

    def objective(theta: np.ndarray) -> float:
        z = X @ theta
        return float(np.sum(np.logaddexp(0.0, z) - y * z) + 0.15 * theta @ theta)

    found = minimize(objective, np.zeros(X.shape[1]), options={"gtol": 1e-9})
    np.testing.assert_allclose(theta_of(run), found.x, atol=1e-4)


def test_acceleration_takes_far_fewer_rounds() -> None:
    data = mtcd.synthetic("ridge", samples=200, features=400, clients=20)
    model = Glm("ridge", alpha=10.0)
    plain = trained(SVFL(20), model, data, gap=1e-4, iterations=20_000)
    quick = trained(SVFL(acceleration="conjugate"), model, data, gap=1e-4, iterations=20_000)
    assert plain.status == quick.status == "converged"
    assert 8 * quick.final.iteration < plain.final.iteration


def sent(method: SVFL, rounds: int, samples: int = 12) -> mtcd.Run:
    return trained(method, RIDGE, make_data(RIDGE, samples, SIZES, seed=2), iterations=rounds)


def test_the_messages_of_momentum_by_hand() -> None:
    # Two weights travel from the third round on: before, there is no change to go further along.
    ledger = sent(SVFL(1, 0.01, acceleration="momentum"), rounds=3).ledger
    K, N = len(SIZES), 12
    one_way = K * (N + N + (N + 2))
    for account in ("sent", "charged"):
        assert ledger.messages(account) == {
            "client_client": 0,
            "uplink": 3 * K,
            "downlink": 3 * K,
        }
        assert ledger.floats(account) == {
            "client_client": 0,
            "uplink": one_way,
            "downlink": one_way,
        }


def test_the_messages_of_conjugate_rounds_by_hand() -> None:
    # Round 1: one start is kept, 2*1 + 1 inner products. Round 2: two weights, and 2*2 + 1 products;
    # round 3: three weights (two earlier starts, and the end), and 2*3 + 1 products.
    ledger = sent(SVFL(1, 0.01, acceleration="conjugate"), rounds=3).ledger
    K, N = len(SIZES), 12
    one_way = K * (N + 3 + (N + 2 + 5) + (N + 3 + 7))
    for account in ("sent", "charged"):
        assert ledger.messages(account)["client_client"] == 0
        assert ledger.messages(account)["uplink"] == 3 * K
        assert ledger.floats(account)["uplink"] == one_way
        assert ledger.floats(account)["downlink"] == one_way


def test_a_round_costs_two_messages_for_each_client() -> None:
    data = make_data(RIDGE, 12, SIZES, seed=2)
    for method in (SVFL(1, 0.01), SVFL(1, 0.01, acceleration="conjugate")):
        costs = mtcd.Costs(ratio=20)
        run = mtcd.train(data, RIDGE, "empty", method, mtcd.Stop(iterations=7), costs)
        assert run.final.cost == 7 * 2 * len(SIZES)
        network = mtcd.make_network("empty", data.clients)
        assert method.prices(network).iteration(costs) == 2 * len(SIZES)


@pytest.mark.parametrize("kind", ["momentum", "anderson"])
def test_masked_sums_train_the_same(kind: str) -> None:
    data = make_data(RIDGE, 30, SIZES, seed=4)
    method = SVFL(1, 0.004, acceleration=kind)
    plain = trained(method, RIDGE, data, iterations=60)
    masked = trained(with_masks(method), RIDGE, data, iterations=60)
    # sums are rounded to integers, which the weights of a mix enlarge
    np.testing.assert_allclose(theta_of(masked), theta_of(plain), atol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_clients_leave_and_join_as_in_clusters_of_one(kind: str) -> None:
    data = make_data(RIDGE, 20, SIZES, seed=4)
    changes = [mtcd.Change(5, leave=("c1",)), mtcd.Change(12, join=("c1",))]
    network = with_changes(mtcd.make_network("complete", data.clients), changes)
    rounds = SVFL(1, 0.01, acceleration=kind)
    case = Case(data, RIDGE, network, 3)
    ours, theirs = (
        iterates(case, method, 20) for method in (rounds, of_clusters(rounds, len(SIZES)))
    )
    for here, there in zip(ours, theirs, strict=True):
        for a, b in zip(here, there, strict=True):
            assert a.tobytes() == b.tobytes()
    away = [moment[1] for moment in ours[6:12]]
    assert all(np.array_equal(away[0], theta) for theta in away)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"depth": 3}, "method.depth of svfl is for accelerated rounds"),
        ({"local_solver": "majorise"}, "local_solver of svfl is for accelerated rounds"),
        ({"adaptive": True}, "adaptive of svfl is for accelerated rounds"),
        ({"acceleration": "conjugate", "batch": 5}, "the full batch"),
        ({"acceleration": "conjugat"}, "nothing is called 'conjugat'"),
        ({"acceleration": "conjugate", "depth": 0}, "method.depth"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        SVFL(**settings)


def test_masks_that_would_round_too_much_are_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="acceleration: conjugate computes with small differenc"):
        with_masks(SVFL(acceleration="conjugate"))
    with pytest.raises(ConfigError, match="use svfl without acceleration"):
        with_masks(SVFL(acceleration="momentum"), "double-masked")


def test_l1_needs_momentum() -> None:
    model = Glm("linear", l1=0.3)
    data = make_data(model, 30, SIZES, seed=4)
    with pytest.raises(ConfigError, match="conjugate needs a smooth penalty: use momentum"):
        trained(SVFL(1, 0.01, acceleration="conjugate"), model, data, iterations=3)
    run = trained(SVFL(1, acceleration="momentum"), model, data, gap=1e-8, iterations=5000)
    assert run.status == "converged"


def test_the_text_of_plain_rounds_is_that_of_earlier_checkpoints() -> None:
    assert repr(SVFL(2, 0.5)) == (
        "SVFL(local_updates=2, stepsize=0.5, batch=None, schedule=None, fusion_updates=None, "
        "transport='float64', aggregation='plain')"
    )
    assert "acceleration='momentum'" in repr(SVFL(acceleration="momentum"))


def test_legends_say_what_is_accelerated() -> None:
    assert SVFL(5).describe() == "SVFL, Q=5"
    assert SVFL(5, 0.1, acceleration="conjugate").describe() == "SVFL, Q=5, conjugate (M=5)"
    chosen = SVFL(acceleration="conjugate", local_solver="majorise")
    assert chosen.describe() == "SVFL, Q=auto, conjugate, majorise"
    assert chosen.with_stepsize(1e-3).describe() == chosen.describe()


@pytest.mark.parametrize("model", [MODELS[0], Glm("linear", l1=0.3)], ids=["ridge", "lasso"])
def test_the_planner_tries_those_that_suit_the_penalty(model: Glm) -> None:
    data = make_data(model, 20, SIZES, seed=3)
    network = mtcd.make_network("complete", data.clients)
    smoothness = BlockSmoothness(model.problem(data))
    setting = PlanSetting(network, smoothness, SVFL(1, 0.1), 1, 0)
    tried = {method.acceleration for method in planned(SVFL()).candidates(setting)}
    assert tried == {None, "momentum", "anderson" if model.l1 else "conjugate"} | (
        {"anderson"} if model.l1 else set()
    )
    batches = PlanSetting(network, smoothness, SVFL(1, 0.1, 4), 1, 0)
    assert {method.acceleration for method in planned(SVFL()).candidates(batches)} == {None}


def test_a_config_makes_them_and_is_written_back(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(
        "data: {synthetic: ridge, samples: 30, features: 8, clients: 4}\n"
        "model: {kind: ridge, alpha: 1}\nnetwork: {kind: empty}\n"
        "method: {kind: svfl, acceleration: anderson, depth: 3, stepsize: 0.001}\n"
        "stop: {iterations: 4}\n"
    )
    setup = build(read_config(file))
    assert setup.method == SVFL(1, 0.001, acceleration="anderson", depth=3)
