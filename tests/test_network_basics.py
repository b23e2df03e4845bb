"""What a network says of itself and of its changes, and what a walk is unless it says otherwise."""

import math

import pytest

from mtcd.errors import NetworkError
from mtcd.network.changes import describe_changes, with_changes
from mtcd.network.edges import network_from_edges
from mtcd.network.kinds import kind_of
from mtcd.network.topology import Change, make_network
from mtcd.network.walks import Walk, make_walk
from mtcd.network.walks.facts import Facts

NAMES = ["ann", "bob", "cleo", "dan", "eve", "fay"]


def test_a_network_prints_as_its_first_clients_and_its_counts() -> None:
    path = make_network("path", NAMES)
    assert repr(path) == "Network(6 client(s): ann, bob, cleo, dan and 2 more; 5 edges)"
    changing = with_changes(path, [Change(5, leave=["ann"]), Change(9, join=["ann"])])
    assert repr(changing) == "Network(6 client(s): ann, bob, cleo, dan and 2 more; 5 edges, 2 change(s))"


def test_changes_are_told_one_by_one_in_order() -> None:
    path = make_network("path", NAMES)
    changes = [Change(9000, leave=["bob"], join=["ann"]), Change(5000, leave=["eve", "fay"]), Change(7000)]
    assert describe_changes(with_changes(path, changes)) == [
        "absent from the start: ann",
        "at iteration 5,000 eve, fay leave",
        "at iteration 9,000 bob leaves, ann joins",
    ]
    assert describe_changes(path) == []


@pytest.mark.parametrize(
    ("kind", "clients", "found"),
    [
        *((kind, 1, "empty") for kind in ("path", "star", "cycle", "complete", "grid", "empty")),
        *((kind, 2, "path") for kind in ("path", "star", "cycle", "complete", "grid")),
        *((kind, 3, kind) for kind in ("empty", "path", "star", "complete")),
        ("cycle", 3, "complete"),
        *((kind, 4, kind) for kind in ("empty", "path", "star", "cycle", "grid", "complete")),
        *((kind, 6, kind) for kind in ("empty", "path", "star", "cycle", "grid", "complete")),
        ("grid", 5, "path"),
        ("grid", 12, "grid"),
    ],
)
def test_the_kind_of_a_network_is_recognised(kind: str, clients: int, found: str) -> None:
    assert kind_of(make_network(kind, [f"c{k}" for k in range(clients)])) == found


@pytest.mark.parametrize(
    ("clients", "edges"),
    [
        (4, [(0, 1), (1, 2), (1, 3)]),  # a star around another client
        (4, [(0, 2), (2, 1), (1, 3)]),  # a path in another order
        (6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]),  # as many links as a cycle
        (6, [(0, 1), (0, 2), (2, 3), (2, 4), (4, 5), (1, 3), (1, 5)]),  # as many as a grid of three rows
        (6, [(0, 1), (0, 3), (0, 2)]),
        (5, [(0, 1), (0, 2), (2, 3), (3, 4), (4, 1), (1, 3)]),  # two columns do not divide five clients
    ],
)
def test_others_are_just_networks(clients: int, edges: list[tuple[int, int]]) -> None:
    assert kind_of(network_from_edges(edges, [f"c{k}" for k in range(clients)])) == "network"


class Onwards(Walk):
    """To the first neighbour; nothing else is declared."""

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        return self.near(client)[0]


def test_a_walk_that_declares_nothing_is_no_tour_and_may_visit_its_whole_cluster() -> None:
    walk, inside = (Onwards(make_network("path", NAMES), within) for within in (None, [1, 2, 3]))
    assert (walk.length, walk.repeats, walk.shared, walk.needs_start, walk.planned) == (None, False, False, False, None)
    assert walk.cover(0) == 1
    assert [walk.covers(k) for k in range(6)] == [True] * 6
    assert [inside.covers(k) for k in range(6)] == [False, True, True, True, False, False]
    assert (list(walk.near(1)), list(inside.near(1))) == ([0, 2], [2])
    with pytest.raises(NetworkError, match="outside its cluster"):
        inside.near(0)


def test_a_tour_covers_all_in_its_length_unless_more_is_known() -> None:
    network = make_network("star", NAMES)
    assert make_walk("random-tour", network, seed=1, token=2).cover(0) == 2 * (len(NAMES) - 1)


def test_of_a_walk_without_theory_nothing_is_promised() -> None:
    class Nothing(Facts):
        def visits(self, start, S):
            raise NotImplementedError

        def visits_work(self, S):
            raise NotImplementedError

    facts = Nothing()
    assert facts.takes_links(0.1) is False
    assert facts.tour() is None
    assert (facts.hitting_time(), facts.hitting_work()) == (math.inf, 0.0)
