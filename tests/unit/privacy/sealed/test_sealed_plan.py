"""The plan and the settings of sealed tours, without a training: numbers that are
computed by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import mtcd
from mtcd.core.errors import ConfigError, DataError
from mtcd.methods.messages import reads_objective
from mtcd.models.glm.model import LinearProblem
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network
from mtcd.privacy.sealed.checks import check_columns
from mtcd.privacy.sealed.conditions import SealedSizes, sizes_of, start_bound
from mtcd.privacy.sealed.dp.mode import private_tours
from mtcd.privacy.sealed.mode import sealed_tours
from mtcd.privacy.sealed.plan import SealedPlan
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.party import SERVER
from problems import make_data

LOGISTIC, RIDGE = mtcd.Glm("logistic", l2=1.0), mtcd.Glm("ridge", l2=0.5)
CLEAR, ALONE = (
    SealedTours(scheme="clear", depth=2),
    SealedTours(scheme="clear", depth=2, server=False),
)
SAMPLES, WIDTHS = 40, (3, 7, 5)


def problem_of(model: mtcd.Glm = LOGISTIC, widths: tuple[int, ...] = WIDTHS) -> LinearProblem:
    return model.problem(make_data(model, SAMPLES, list(widths), seed=3))


def with_labels(*labels: float) -> LinearProblem:
    problem = problem_of(RIDGE)
    return replace(
        problem, labels=np.array(labels), blocks=tuple(X[: len(labels)] for X in problem.blocks)
    )


def network_of(kind: str = "path", clients: int = 3) -> Network:
    return mtcd.make_network(kind, [f"p{k}" for k in range(clients)])


def plan_of(
    method: SealedTours = CLEAR, model: mtcd.Glm = LOGISTIC, kind: str = "path"
) -> SealedPlan:
    problem = problem_of(model)
    return method.plan(problem, network_of(kind), 0, None)


@pytest.mark.parametrize("widest", [1, 5])
def test_the_cipher_has_room_for_the_token_the_widest_block_and_two_tokens_of_visits(
    widest: int,
) -> None:
    parameters = replace(plan_of(), columns=(1, widest, 1)).parameters()
    assert (parameters.samples, parameters.most_columns, parameters.visits) == (
        40 + 9,
        widest + 1,  # with the column that checks answers
        2 * (3 + 2),
    )


@pytest.mark.parametrize(("model", "finer"), [(LOGISTIC, 8.0), (RIDGE, 1.0)])
def test_the_scales_of_a_plan(model: mtcd.Glm, finer: float) -> None:
    plan = plan_of(model=model)
    scales = plan.scales(plan.parameters())
    assert (scales.samples, scales.curvature, scales.start) == (
        40,
        model.loss.curvature,
        plan.start,
    )
    assert (scales.visits, scales.finer, scales.extras) == (3, finer, 9)


def test_the_part_of_f_that_depends_on_labels_alone() -> None:
    """(z - y)^2 / 2 is z^2 / 2 - y z and |y|^2 / 2; log(1 + e^z) - y z has no such part."""
    labels = np.arange(40.0)
    ridge, logistic = plan_of(model=RIDGE), plan_of()
    assert ridge.constant_of(labels) == pytest.approx(39 * 40 * 79 / 6 / 2)
    assert ridge.constant == ridge.start
    assert logistic.constant_of(labels) == pytest.approx(0.0)
    assert logistic.start == 32.0  # 40 log 2 is 27.7
    assert logistic.constant == pytest.approx(32.0 - 40 * math.log(2))
    assert replace(logistic, start=0.5).constant == 0.0


def test_every_client_draws_other_numbers_in_every_tour() -> None:
    plan = plan_of()
    drawn = [
        one.draws(t, k) for one in (plan, replace(plan, seed=1)) for t in (1, 2) for k in (0, 1)
    ]
    assert len({tuple(draws) for draws in drawn}) == 8
    assert all(draws.shape == (40,) and (draws >= 0).all() and (draws < 1).all() for draws in drawn)
    np.testing.assert_array_equal(plan.draws(2, 1), drawn[3])


@pytest.mark.parametrize("walk", ["tour", "random-tour"])
def test_a_tour_leads_over_links_from_the_label_holder_to_all_clients_and_back(walk: str) -> None:
    network = network_from_edges([(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)], list("abcdef"))
    problem = problem_of(widths=(3, 3, 3, 3, 3, 3))
    plan = replace(CLEAR, walk=walk, holder=3).plan(problem, network, 5, None)
    orders = [list(plan.order(t)) for t in (1, 2, 3, 4, 1)]
    for order in orders:
        assert (order[0], order[-1], len(order), plan.length) == (3, 3, 11, 10)
        assert set(order) == set(range(6))
        assert len(set(pairwise(order))) == 10  # each link once in each direction
        assert all(b in network.neighbours[a] for a, b in pairwise(order))
    assert orders[0] == orders[4]
    assert (len(set(map(tuple, orders))) > 1) == (walk == "random-tour")


def test_messages_take_shortest_ways_to_the_key_holder_and_to_clients() -> None:
    plan = plan_of()
    assert [plan.towards(0, 2), plan.towards(1, 2), plan.towards(2, 0), plan.towards(1, 0)] == [
        1,
        2,
        1,
        0,
    ]
    assert [plan.towards(k, SERVER) for k in range(3)] == [SERVER] * 3
    ring = ALONE.plan(problem_of(widths=(3,) * 6), network_of("cycle", 6), 0, None)
    assert [ring.towards(k, 0) for k in range(1, 6)] in ([0, 1, 2, 5, 0], [0, 1, 4, 5, 0])
    assert [ring.towards(k, 4) for k in (0, 2, 3, 5)] == [5, 3, 4, 4]
    assert (plan.holder, ring.holder, replace(ring, home=2).holder) == (SERVER, 0, 2)


def test_a_method_says_what_it_is() -> None:
    assert (SealedTours().kind, SealedTours(server=False).kind) == ("mtcd", "stcd")
    assert (SealedTours().has_server, SealedTours().holder) == (True, 0)
    assert (
        SealedTours().local_updates,
        SealedTours().gradient_steps,
        reads_objective(SealedTours()),
    ) == (1, 0, 0)
    assert CLEAR.in_federation(2) == replace(CLEAR, holder=2)
    assert sealed_tours(CLEAR) is CLEAR
    assert CLEAR.with_stepsize(0.1) is CLEAR
    assert "key at the server" in CLEAR.describe()
    assert "key at the label holder" in ALONE.describe()
    assert "the server keeps the key" in CLEAR.notes(network_of())[0]
    assert "the label holder keeps the key" in ALONE.notes(network_of())[0]
    with pytest.raises(ConfigError, match=r"mtcd.MTCD\(walk='tour'\)"):
        private_tours(CLEAR, mtcd.DP(epsilon=1.0))


def test_one_client_has_nobody_to_hide_from_and_two_have() -> None:
    CLEAR.check(network_of(clients=2))
    with pytest.raises(ConfigError, match="two clients or more"):
        CLEAR.check(network_of("complete", 1))


@pytest.mark.parametrize(("narrowest", "tours"), [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (9, 4)])
def test_without_a_server_tours_are_half_of_the_columns_of_the_narrowest_other(
    narrowest: int, tours: int
) -> None:
    assert ALONE.most_tours((1, 99, narrowest)) == tours


@pytest.mark.parametrize(
    ("columns", "tours"), [((1, 1), 1), ((2, 1), 1), ((2, 2), 2), ((20, 1, 4), 12)]
)
def test_with_a_server_tours_are_half_of_all_columns(columns: tuple[int, ...], tours: int) -> None:
    assert CLEAR.most_tours(columns) == tours


def test_the_columns_of_the_label_holder_do_not_count() -> None:
    assert sizes_of(problem_of()) == SealedSizes((3, 7, 5), 32.0)
    assert [
        replace(ALONE, holder=k).conditions.most_iterations(problem_of()) for k in range(3)
    ] == [2, 1, 1]
    assert ALONE.conditions.most_iterations(problem_of(widths=(2, 9))) == 4
    assert ALONE.conditions.most_iterations(problem_of(widths=(9,))) is None
    assert CLEAR.conditions.most_iterations(problem_of()) == 7
    assert plan_of(ALONE).most_tours == 2
    assert plan_of().most_tours == 7


@pytest.mark.parametrize(
    ("labels", "bound"),
    [((4.0, 0.0), 8.0), ((4.1, 0.0), 16.0), ((0.5, -0.5), 0.25), ((0.0, 0.0), 1.0)],
)
def test_parties_agree_on_a_power_of_two_above_f_at_the_start(
    labels: tuple[float, ...], bound: float
) -> None:
    assert start_bound(with_labels(*labels)) == bound


def test_what_is_no_linear_problem_has_no_limit_of_tours_and_is_refused() -> None:
    other: Any = object()
    assert ALONE.conditions.most_iterations(other) is None
    with pytest.raises(ConfigError, match="linear models only"):
        CLEAR.checks.problem(other)
    with pytest.raises(ConfigError, match="needs a walk that is a tour"):
        replace(CLEAR, walk="metropolis").plan(problem_of(), network_of(), 0, None)


def test_columns_of_any_kind_may_single_out_no_row_or_ten_but_not_nine() -> None:
    X = np.zeros((50, 3))
    X[:10, 0], X[3:, 1], X[:, 2] = 1.0, 2.0, np.arange(50) < 1
    check_columns(X[:, [0]], "a")
    check_columns(sp.csr_array(X[:, [0]]), "a")
    check_columns(np.ones((50, 1)), "a")
    # as with an intercept
    check_columns(np.hstack([X[:, [0]], np.ones((50, 1))]), "a")
    for some in (X, sp.csr_array(X)):
        with pytest.raises(
            DataError, match="Column 2 of a differs from its usual value in 3 rows only"
        ):
            check_columns(some, "a")
    with pytest.raises(
        DataError, match="Column 2 of a differs from its usual value in 1 rows only"
    ):
        check_columns(X[:, [0, 2]], "a")
    X[:10, 0] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]
    with pytest.raises(
        DataError, match="Column 1 of a differs from its usual value in 9 rows only"
    ):
        check_columns(X[:, [0]], "a")


def test_a_method_keeps_its_walk_and_its_depth() -> None:
    for depth, expected in ((3, 3), (None, SealedTours().depth)):
        tours = sealed_tours(mtcd.STCD(walk="tour", acceleration="conjugate", depth=depth))
        assert (tours.walk, tours.depth, tours.server) == ("tour", expected, False)
