"""What a network says of itself and of its changes, and what a walk is unless it says otherwise."""

import math

import networkx as nx
import pytest

from mtcd.core.errors import ConfigError, NetworkError
from mtcd.network.changes import absences, describe_changes, in_pieces, with_changes
from mtcd.network.complete import Others
from mtcd.network.edges import network_from_edges
from mtcd.network.kinds import kind_of
from mtcd.network.topology import Change, connected_pieces, make_network
from mtcd.network.walks import Walk, make_walk
from mtcd.network.walks.facts import ChainFacts, Facts
from mtcd.network.walks.lazy import lazy_chain

NAMES = ["ann", "bob", "cleo", "dan", "eve", "fay"]


def test_a_network_prints_as_its_first_clients_and_its_counts() -> None:
    path = make_network("path", NAMES)
    assert repr(path) == "Network(6 client(s): ann, bob, cleo, dan and 2 more; 5 edges)"
    changing = with_changes(path, [Change(5, leave=["ann"]), Change(9, join=["ann"])])
    assert (
        repr(changing)
        == "Network(6 client(s): ann, bob, cleo, dan and 2 more; 5 edges, 2 change(s))"
    )


def test_changes_are_told_one_by_one_in_order() -> None:
    path = make_network("path", NAMES)
    changes = [
        Change(9000, leave=["bob"], join=["ann"]),
        Change(5000, leave=["eve", "fay"]),
        Change(7000),
    ]
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
        # as many as a grid of three rows
        (6, [(0, 1), (0, 2), (2, 3), (2, 4), (4, 5), (1, 3), (1, 5)]),
        (6, [(0, 1), (0, 3), (0, 2)]),
        # two columns do not divide five clients
        (5, [(0, 1), (0, 2), (2, 3), (3, 4), (4, 1), (1, 3)]),
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
    assert (walk.length, walk.repeats, walk.shared, walk.needs_start, walk.planned) == (
        None,
        False,
        False,
        False,
        None,
    )
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
    chain = lazy_chain(make_network("path", NAMES))
    assert [ChainFacts(lambda: chain, *every).takes_links(0.1) for every in ([], [True])] == [
        False,
        True,
    ]
    assert facts.tour() is None
    assert (facts.hitting_time(), facts.hitting_work()) == (math.inf, 0.0)


@pytest.mark.parametrize("iteration", [-1, 0.5])
def test_changes_are_at_iterations_from_0_on(iteration: float) -> None:
    path = make_network("path", NAMES)
    with pytest.raises(ConfigError, match="iteration of a change"):
        with_changes(path, [Change(iteration, leave=["fay"])])
    at_once = with_changes(path, [Change(0, leave=["fay"])])
    assert absences(at_once) == ((0, frozenset({5})),)


def test_views_in_which_clients_are_apart_are_told() -> None:
    path = make_network("path", NAMES)
    changes = [
        Change(1000, leave=["bob"]),
        Change(2000, leave=["dan"]),
        Change(3000, join=["bob", "dan"]),
    ]
    assert in_pieces(path) == []
    assert in_pieces(with_changes(path, [Change(5, leave=["ann"])])) == []
    assert in_pieces(with_changes(path, changes)) == [
        "from iteration 1,000 on the clients present are in 2 components",
        "from iteration 2,000 on the clients present are in 3 components",
    ]


def test_what_a_graph_says_and_a_network_does_not_is_noted() -> None:
    plain, one_way, both_ways = (
        nx.path_graph(3),
        nx.DiGraph([(0, 1), (2, 1)]),
        nx.DiGraph([(0, 1), (1, 0)]),
    )
    weighted, alike = nx.Graph(), nx.Graph()
    weighted.add_weighted_edges_from([(0, 1, 2.0), (1, 2, 3.0)])
    alike.add_weighted_edges_from([(0, 1, 2.0), (1, 2, 2.0)])
    for graph in (plain, both_ways, alike):
        assert network_from_edges(graph, NAMES).notes == ()
    (directions,), (weights,) = (
        network_from_edges(graph, NAMES).notes for graph in (one_way, weighted)
    )
    assert "directions are ignored" in directions
    assert "weights, which walks do not use" in weights
    half = nx.Graph(alike)
    half.add_edge(2, 3)  # one without a weight is no other weight
    assert network_from_edges(half, NAMES).notes == ()


def test_a_slice_of_others_is_computed_and_not_stored_where_it_can_be() -> None:
    others = Others(3, 100)
    assert [isinstance(others[place:], range) for place in (2, 3, 4)] == [False, True, True]
    assert [list(others[place:])[:3] for place in (2, 3, 4)] == [[2, 4, 5], [4, 5, 6], [5, 6, 7]]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            [Change(3, join=["b"]), Change(5, join=["b"])],
            "at iteration 5 client 'b' joins, but is present already",
        ),
        (
            [Change(3, leave=["b"]), Change(5, leave=["b"])],
            "at iteration 5 client 'b' leaves, but is absent",
        ),
        ([Change(3, leave=["b"], join=["b"])], "at iteration 3 client 'b' is named twice"),
        (
            [Change(3, leave=["a"]), Change(4, leave=["b", "c"])],
            "from iteration 4 on all clients are absent",
        ),
    ],
)
def test_changes_that_cannot_be_are_refused(changes: list[Change], says: str) -> None:
    network = make_network("path", ["a", "b", "c"])
    with pytest.raises(NetworkError, match=says):
        with_changes(network, changes)


@pytest.mark.parametrize("rows", [2, 3, 4, 6])
def test_a_grid_is_recognised_whatever_its_rows(rows: int) -> None:
    assert kind_of(make_network("grid", [f"c{k}" for k in range(12)], rows=rows)) == "grid"


def test_who_leaves_is_a_list_and_not_the_letters_of_a_name() -> None:
    network = make_network("path", ["a", "b", "c"])
    for change in (Change(3, leave="ab"), Change(3, join="ab")):
        with pytest.raises(NetworkError, match="expected a list of clients, got 'ab'"):
            with_changes(network, [change])


def test_pieces_come_in_the_order_of_their_first_members_whatever_a_set_gives_first() -> None:
    """A set of small numbers gives 8 before 1."""
    apart = make_network("empty", [f"c{k}" for k in range(9)])
    assert connected_pieces(apart.neighbours, {8, 1}) == ((1,), (8,))


def test_those_absent_from_the_start_are_named_in_the_order_of_clients() -> None:
    """A set of small numbers gives 8 before 1."""
    network = make_network("path", [f"c{k}" for k in range(9)])
    changing = with_changes(network, [Change(5, join=["c8", "c1"])])
    assert describe_changes(changing)[0] == "absent from the start: c1, c8"


def test_all_rows_that_a_grid_may_have_are_named() -> None:
    with pytest.raises(NetworkError, match="from 1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60$"):
        make_network("grid", [f"c{k}" for k in range(60)], rows=7)
