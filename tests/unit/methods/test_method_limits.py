"""Methods on their limits: defaults, candidates of the planner, and sums in one order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.methods.default import default_method, default_note
from mtcd.methods.method import Method
from mtcd.methods.mtcd.client import TokenClient
from mtcd.methods.mtcd.roaming import StartAt, has_visited_all, plan_roaming
from mtcd.methods.optimal_sync.parties import OptimalClient
from mtcd.methods.planned import Leg, Planned, PlanSetting, server_round
from mtcd.network.walks import make_walk

SUMMING = mtcd.SVFL(local_updates=3)
KIND: Any = SimpleNamespace(
    default_method=lambda model: mtcd.SVFL(), default_summing=lambda: SUMMING
)
SEALED = {"mode": "sealed"}
TOUR, LONE_TOUR = mtcd.MTCD(walk="tour"), mtcd.STCD(walk="tour")


@pytest.mark.parametrize(
    ("given", "connected", "server", "expected"),
    [
        ({}, True, None, mtcd.SVFL()),
        ({}, False, None, mtcd.MTCD()),
        ({}, True, True, mtcd.MTCD()),
        ({}, True, False, mtcd.STCD()),
        ({"aggregation": "masked"}, True, None, SUMMING),
        (SEALED, True, None, LONE_TOUR),
        (SEALED, True, True, TOUR),
        (SEALED, True, False, LONE_TOUR),
        ({**SEALED, "dp": mtcd.DP(epsilon=1.0)}, True, False, TOUR),
    ],
)
def test_the_method_that_is_taken(
    given: dict[str, Any], connected: bool, server: bool | None, expected: Method
) -> None:
    assert default_method(KIND, None, connected, mtcd.Privacy(**given), server) == expected


def test_a_note_says_why_a_server_was_taken() -> None:
    joins = "as the network is in pieces, which a server joins"
    assert joins in default_note(mtcd.MTCD(), connected=False)
    assert joins not in default_note(mtcd.MTCD())
    assert joins not in default_note(mtcd.STCD(), connected=False)


# What the planner tries


def setting(own: Method, kind: str = "path") -> PlanSetting:
    smoothness: Any = SimpleNamespace(blocks=np.array([0.5, 2.0]), batch=lambda size: 4.0)
    return PlanSetting(mtcd.make_network(kind, ["a", "b", "c"]), smoothness, own, 1, 0)


@pytest.mark.parametrize(
    ("own", "tried"), [(7, [5, 7, 20, 100]), (20, [5, 20, 100]), (1000, [5, 20, 100, 200])]
)
def test_local_updates_are_tried_in_order(own: int, tried: list[int]) -> None:
    assert setting(mtcd.STCD(own)).local_updates == tried


def test_a_step_size_at_which_a_client_alone_diverges_is_not_tried() -> None:
    """At 2 / L_k, which is 1 here."""
    about = setting(mtcd.STCD())
    assert about.alone == 0.5
    for stepsize, tried in ((0.25, [0.0625, 0.375, 1 / 6]), (0.2, [0.05, 0.3, 0.8, 0.4 / 3])):
        changed = Planned().changed(about, mtcd.STCD(stepsize=stepsize))
        found = sorted(one.stepsize for one in changed if one.stepsize != stepsize)
        assert found == pytest.approx(sorted(tried))


def test_messages_that_cross_between_machines() -> None:
    network = mtcd.make_network("path", ["a", "b", "c"])
    assert Planned().crossings(mtcd.DCPA(), network, [0, 0, 0]) == (0.0, 0.0)
    assert Planned().crossings(mtcd.DCPA(), network, [0, 0, 1]) == (1.0, 1.0)
    assert Planned().crossings(mtcd.DCPA(), network, [0, 1, 0]) == (1.0, 2.0)
    assert Planned().crossings(mtcd.SVFL(), network, [0, 1, 0]) == (0.0, 0.0)


def test_a_client_answers_a_server_once_it_has_received_all() -> None:
    assert server_round(2, down=5, up=3) == [
        Leg((2, 0), 5),
        Leg((2, 1), 5),
        Leg((0, 2), 3, after=(0,)),
        Leg((1, 2), 3, after=(1,)),
    ]


# Roaming


def test_a_client_without_weight_is_no_start() -> None:
    assert StartAt([3, 5, 8], [0.0, 1e-300, 2.0]).support() == [5, 8]
    network = mtcd.make_network("path", ["a", "b", "c"])
    roaming = plan_roaming(network, 1, None, "lazy", {"a": 0.0, "b": 1.0, "c": 0.0}, 0, 4)
    assert roaming.starts[0].support() == [1]


def test_a_tour_has_visited_all_when_the_last_of_them_was_reached() -> None:
    """Along a path of four from its end: at the fourth visit, before it goes back."""
    walk = make_walk("tour", mtcd.make_network("path", ["a", "b", "c", "d"]))
    length = walk.length
    assert length == 6
    visited = {hop for hop in range(1, length + 1) if has_visited_all(walk, 0, hop)}
    assert visited == {4, 5, 6}


# Sums


def test_copies_are_added_in_one_order_whoever_visited_first() -> None:
    """The order of visits must not show in the last digit."""
    start = np.array([0.1])
    copies = {index: (np.array([value]), 0.0) for index, value in enumerate((1e16, 1.0, -1e16))}
    visits = [{index: copies[index] for index in order} for order in ((0, 1, 2), (2, 0, 1))]
    plan = SimpleNamespace(weights=[0.0, 0.0, 0.0, 1.0])
    found = []
    for kind in (TokenClient, OptimalClient):
        for made in visits:
            client: Any = SimpleNamespace(theta=(start,), copies=made, plan=plan, t=4)
            if kind is TokenClient:
                found.append(TokenClient.combination(client).tolist())
            else:
                past = {4: np.array([1.0, 1.0, 1.0])}
                found.append(OptimalClient.after_sync(client, past).tolist())
    assert found[0] == found[1]
    assert found[2] == found[3]


def test_tokens_of_rounds_stay_where_they_are() -> None:
    """Without hops nothing is charged for them; what each client uploads is its representation."""
    network = mtcd.make_network("path", ["a", "b", "c"])
    plan = mtcd.SVFL(stepsize=0.1).plan(10, 1, network, 0)
    assert (plan.tokens, plan.hops) == (3, 1)
    assert not plan.charges_hops
    assert plan.uploads_representations
    assert mtcd.MTCD(tokens=2, hops=4, stepsize=0.1).plan(10, 1, network, 0).charges_hops
