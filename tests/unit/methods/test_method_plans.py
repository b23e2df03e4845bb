"""What follows from the settings of a method alone: costs, epochs, step sizes, and the plan of its
parties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.methods.messages import reads_objective
from mtcd.methods.method import Method, resolve_stepsize, resolved_stepsize
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tours.conjugate import Conjugate
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.trees.gains import ComparedGains
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.protocol.batches import Batches
from mtcd.protocol.ledger.costs import Costs, Sizes
from mtcd.protocol.party import MONITOR, SERVER
from mtcd.theory.stepsize import descent_limit, theorem_limit
from problems import MODELS, make_data

CLIENTS = [f"c{k}" for k in range(5)]
CYCLE = make_network("cycle", CLIENTS)
TOUR: dict[str, Any] = {"walk": "tour", "combine": "cluster"}


@pytest.mark.parametrize(
    ("method", "cost"),
    [
        (STCD(), 6 / 10),
        (MTCD(2, 4), 2 * 4 * 6 / 10 + 2 * (3 + 4)),
        (MTCD(2, 4, batch=3), 2 * 4 * 6 / 10 + 5 * 3 + 2 * 4),
        (
            with_masks(MTCD(2, 4, batch=3), "double-masked"),
            2 * 4 * 6 / 10 + 5 * 3 + 2 * 4 + 5 * (2 * 5 + 2 * 2 * 5),
        ),
        (SVFL(), 5 * (3 + 4)),
        (
            with_masks(SVFL(), "double-masked"),
            5 * (3 + 4) + 5 * (2 * 5 + 2 * 2 * 5),
        ),  # of each its masks, and 4 words of all
    ],
    ids=lambda value: value.describe() if isinstance(value, Method) else None,
)
def test_an_iteration_costs_its_uplinks_downlinks_and_hops(method: Method, cost: float) -> None:
    sizes = Sizes(uplink=3, downlink=4, hop=6)
    assert method.prices(CYCLE, 2).iteration(Costs(10, per="float"), sizes) == pytest.approx(cost)


def test_only_double_masks_are_opened() -> None:
    assert (
        SVFL().aggregation.opening_cost(CYCLE, Costs())
        == with_masks(MTCD()).aggregation.opening_cost(CYCLE, Costs())
        == 0.0
    )
    assert with_masks(SVFL(), "double-masked").aggregation.opening_cost(CYCLE, Costs()) == 5 * 2


def test_an_epoch_is_a_pass_over_all_samples() -> None:
    lone, roaming = STCD().timeline(), MTCD(hops=7).timeline()
    assert [lone.hops_per_sync, roaming.hops_per_sync, SVFL().timeline().hops_per_sync] == [1, 7, 1]

    methods = SVFL(), SVFL(batch=6), MTCD(hops=7, batch=6)
    assert [method.timeline().epoch(20) for method in methods] == [1, 3, 21]
    assert [lone.epoch(20), roaming.epoch(20)] == [1, 7]


def test_step_sizes_follow_the_schedule_of_epochs() -> None:
    method = SVFL(stepsize=0.8, batch=5, schedule=mtcd.Schedule(every=1, factor=0.5))
    steps = [method.stepsize_at(t, Batches(20, 5, 0)) for t in (0, 3, 4, 8)]
    assert steps == [0.8, 0.8, 0.4, 0.2]
    plan = MTCD(2, 4, stepsize=0.8, schedule=method.schedule).plan(20, 1, CYCLE, 0)
    assert [plan.stepsize_at(t) for t in range(3)] == [0.8, 0.4, 0.2]
    assert MTCD(2, 4, stepsize=0.8).plan(20, 1, CYCLE, 0).stepsize_at(7) == 0.8


def test_a_step_size_that_is_no_number_yet() -> None:
    with pytest.raises(ConfigError, match="'auto' is resolved by mtcd.train"):
        resolved_stepsize(SVFL())
    with pytest.raises(ConfigError, match="tree-cg has no step size"):
        resolved_stepsize(mtcd.TreeCG())


def test_auto_is_replaced_by_a_number_and_a_note() -> None:
    smoothness = BlockSmoothness(MODELS[0].problem(make_data(MODELS[0], 12, [2, 3], seed=0)))
    assert resolve_stepsize(SVFL(stepsize=0.3), smoothness) == (SVFL(stepsize=0.3), ())
    limit = theorem_limit(smoothness, 1, 2)
    assert SVFL(2).stepsize_rules(smoothness).limit == limit
    method, notes = resolve_stepsize(SVFL(2), smoothness)
    assert method == SVFL(2, limit.value)
    assert notes == (f"stepsize auto: {limit.value:.4g}, which is {limit.reason}.",)


def test_limits_of_step_sizes() -> None:
    smoothness = BlockSmoothness(MODELS[0].problem(make_data(MODELS[0], 12, [2, 3], seed=0)))
    descent = descent_limit(smoothness)
    for method in (STCD(3), MTCD(2, 4, combine="optimal")):
        assert method.stepsize_rules(smoothness).limit == descent
    assert MTCD(2, 4, 3).stepsize_rules(smoothness).limit == theorem_limit(smoothness, 4, 3)
    assert MTCD(2, 4, 3, batch=5).stepsize_rules(smoothness).limit == theorem_limit(
        smoothness, 4, 3, 5
    )
    for tokens, beyond in ((1, []), (2, ["combine: visitors"])):
        method = MTCD(tokens, 4, combine="visitors")
        assert method.stepsize_rules(smoothness).limit == theorem_limit(
            smoothness, 4, 1, beyond=beyond
        )
    touring = MTCD(hops=9, acceleration="momentum", **TOUR)
    assert touring.stepsize_rules(smoothness).limit == theorem_limit(
        smoothness, 9, 1, beyond=["acceleration"]
    )
    assert MTCD(2, 4, combine="cluster").stepsize_rules(smoothness).auto == theorem_limit(
        smoothness, 4, 1
    )
    for tokens in (None, 1):
        assert MTCD(tokens, 4).stepsize_rules(smoothness).auto == descent
    assert MTCD(2, 4).stepsize_rules(smoothness).auto == descent_limit(smoothness, averaged=True)


def test_what_methods_have_in_common() -> None:
    svfl, dcpa = SVFL(), mtcd.DCPA()
    assert (svfl.warm_starts, MTCD().warm_starts, dcpa.warm_starts) == (True, True, False)
    assert svfl.has_server
    assert svfl.gradient_steps
    assert not svfl.conditions.noisy
    assert not svfl.chooses_steps
    assert svfl.token_clusters(CYCLE, 0) is None
    assert svfl.conditions.end_notes(CYCLE, 3) == svfl.notes(CYCLE) == ()
    assert (reads_objective(SVFL()), reads_objective(SVFL(batch=3))) == (True, False)
    assert SVFL(batch=5).messages(CYCLE, 0, 20, 3).sizes == Sizes(15, 15, 15)
    (note,) = with_masks(svfl).notes(CYCLE)
    assert (
        "numbers below 2.1e+08 per client in steps of 2^-32 (split networks: 8.2e+02, 2^-18)"
        in note
    )


@pytest.mark.parametrize(
    ("method", "chooses", "most"),
    [
        (STCD(walk="tour", acceleration="anderson"), False, 5),
        (STCD(walk="tour", acceleration="anderson", depth=2), False, 2),
        (STCD(walk="tour", acceleration="conjugate"), True, Conjugate.adaptive_depth),
        (STCD(stepsize=0.1, walk="tour", acceleration="conjugate"), False, 5),
        (STCD(walk="tour", acceleration="conjugate", depth=2), True, 2),
        (STCD(), False, None),
    ],
    ids=lambda value: value.describe() if isinstance(value, Method) else None,
)
def test_accelerations_that_adapt_choose_steps_unless_a_step_size_is_given(
    method: MTCD, chooses: bool, most: int | None
) -> None:
    assert method.chooses_steps == chooses
    if most is not None:
        assert ACCELERATIONS[method.acceleration or ""].most_starts(method) == most
    resolved = method.with_stepsize(0.1)
    assert (resolved.stepsize, resolved.adaptive, resolved.chooses_steps) == (0.1, chooses, chooses)
    smoothness = BlockSmoothness(MODELS[0].problem(make_data(MODELS[0], 12, [2, 3], seed=0)))
    expected = Conjugate.first_stepsize(smoothness) if chooses else descent_limit(smoothness)
    assert method.stepsize_rules(smoothness).auto == expected


def test_a_plan_has_the_settings_of_its_method() -> None:
    def plan(*settings: Any, **others: Any) -> Any:
        return MTCD(*settings, stepsize=0.1, **others).plan(20, 1, CYCLE, 0)

    assert [type(plan(tokens, 3).combine).__name__ for tokens in (None, 1, 2)] == [
        "Cluster",
        "Cluster",
        "Average",
    ]
    assert plan(1, 3, combine="optimal").combine.server_chooses
    assert [
        plan(2, 3).tokens,
        plan(None, 3).tokens,
        plan(None, 3, clusters=[[0, 1], [2, 3, 4]]).tokens,
    ] == [2, 1, 2]
    assert [plan(2, 3).majorises, plan(2, 3, local_solver="majorise").majorises] == [False, True]
    assert [plan(2, 3).feature_floats, plan(2, 3, features=(ComparedGains(5),)).feature_floats] == [
        0,
        5,
    ]
    assert plan(1, None, walk="tour", acceleration="conjugate", start="c3").roaming.first(0, 0) == 3


def test_clusters_are_those_given_or_found() -> None:
    assert MTCD(clusters=[["c4", "c0"], [1, 2, 3]]).token_clusters(CYCLE, 0) == ((0, 4), (1, 2, 3))
    for method in (MTCD(2, clusters="auto"), MTCD(2, combine="cluster")):
        found = method.token_clusters(CYCLE, 0)
        assert len(found) == 2
        assert sorted(k for cluster in found for k in cluster) == [0, 1, 2, 3, 4]
    assert MTCD(2).token_clusters(CYCLE, 0) is None
    assert MTCD(clusters=[[0, 4], [1, 2, 3]], combine="average").token_clusters(CYCLE, 0) == (
        (0, 4),
        (1, 2, 3),
    )


def test_accelerated_tours_of_clusters_begin_at_their_first_client_unless_told_otherwise() -> None:
    for acceleration, start, homes in (
        ("anderson", None, [{0}, {3}]),
        ("anderson", [2, 4], [{2}, {4}]),
    ):
        method = MTCD(
            None,
            9,
            1,
            0.1,
            clusters=[[1, 2, 0], [4, 3]],
            walk="tour",
            acceleration=acceleration,
            start=start,
        )
        roaming = method.plan(20, 1, CYCLE, 0).roaming
        assert [{roaming.first(token, t) for t in range(6)} for token in range(2)] == homes
    plain = (
        MTCD(None, 9, 1, 0.1, clusters=[[1, 2, 0], [4, 3]], walk="tour")
        .plan(20, 1, CYCLE, 0)
        .roaming
    )
    assert [{plain.first(token, t) for t in range(20)} for token in range(2)] == [{0, 1, 2}, {3, 4}]


@pytest.mark.parametrize(
    ("method", "snapshots", "products", "past", "slots"),
    [
        (
            STCD(depth=3, walk="tour", acceleration="conjugate"),
            4,
            2 * 4 + 1 + 6,
            0,
            {"tour", "products"},
        ),
        (STCD(depth=3), 0, 0, 0, set()),
        (MTCD(3, 4, combine="optimal"), 0, 3, 5, {"past", "tally"}),
        (MTCD(3, 4, combine="visitors"), 0, 0, 0, {"sync_change"}),
        (MTCD(3, 4), 0, 0, 0, set()),
    ],
    ids=lambda value: value.describe() if isinstance(value, Method) else None,
)
def test_how_much_a_token_may_carry(
    method: MTCD, snapshots: int, products: int, past: int, slots: set[str]
) -> None:
    bounds = method.with_stepsize(0.1).messages(CYCLE, 0, 12, 1).bounds("a run")
    limits = [bounds.limits.get(name, 0) for name in ("snapshots", "products", "past")]
    assert limits == [snapshots, products, past]
    assert bounds.slots == slots


DATA = make_data(MODELS[0], 12, [2, 1, 3], seed=3)


NETWORK = make_network("path", DATA.clients)


@pytest.mark.parametrize(
    ("method", "alone"),
    [
        (mtcd.MTCD(), True),
        (mtcd.MTCD(1), True),
        (mtcd.MTCD(2), False),
        (mtcd.MTCD(2, combine="cluster"), True),
        (mtcd.MTCD(clusters=[["a"], ["b"]]), True),
        (mtcd.MTCD(1, combine="optimal"), False),
    ],
)
def test_whether_a_client_has_one_copy_at_most(method: mtcd.MTCD, alone: bool) -> None:
    assert method.one_token_per_client == alone


def test_a_note_says_where_a_lone_token_stays() -> None:
    changing = with_changes(NETWORK, [Change(3, leave=["c1"])])
    expected = (
        "From iteration 3 on the clients present are in 2 components: the token stays in its "
        "component until the "
        "others can be reached again."
    )
    assert expected in mtcd.STCD(stepsize=0.01).notes(changing)
    assert expected not in mtcd.MTCD(2, 3, stepsize=0.01).notes(changing)
    assert mtcd.STCD(stepsize=0.01).notes(NETWORK) == ()


METHODS: list[Method] = [
    mtcd.STCD(stepsize=0.01),
    mtcd.MTCD(2, 3, stepsize=0.01),
    mtcd.MTCD(2, 3, stepsize=0.01, combine="optimal"),
    mtcd.SVFL(stepsize=0.01),
]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
def test_a_training_starts_with_messages_of_its_server_or_of_parties_to_themselves(
    method: Method, warm: bool
) -> None:
    """Or to the server, or the monitor: no link between clients is used before the first visit."""
    problem = MODELS[0].problem(DATA)
    if warm:
        problem = replace(problem, start=tuple(np.ones(block.shape[1]) for block in DATA.blocks))
    opening = method.parties(problem, NETWORK, 0).opening
    assert opening
    for message in opening:
        assert message.sender == SERVER or message.to in (message.sender, SERVER, MONITOR)
