"""Facts of networks and walks that rounding errors, signs and rare shapes must not spoil."""

from itertools import accumulate

import networkx as nx
import numpy as np
import pytest

from mtcd.core.errors import ConfigError, NetworkError
from mtcd.network import clusters, spectrum
from mtcd.network.changes import with_changes
from mtcd.network.clusters import find_clusters
from mtcd.network.edges import network_from_edges
from mtcd.network.spectrum import adjacency, diameter, laplacian
from mtcd.network.topology import Change, make_network
from mtcd.network.walks.lazy import lazy_chain
from mtcd.network.walks.non_backtracking import link_visits
from mtcd.network.walks.random_tour import random_tour_visits
from mtcd.network.walks.tour import tour_visits
from mtcd.theory import mixing
from mtcd.theory.bounds import LoneGuarantee
from mtcd.theory.mixing import spectral_gap
from mtcd.theory.visits import visit_probabilities


def test_a_certain_visit_has_probability_1_whatever_the_rounding() -> None:
    tenths = [0.1] * 10
    # one after the other: newer Pythons round ``sum`` only once
    assert list(accumulate(tenths))[-1] != 1.0
    assert tour_visits(list(range(10)), tenths, 10).tolist() == [1.0] * 10


@pytest.mark.parametrize("clients", [31, 101])
def test_clusters_are_cut_off_from_the_first_client_on(clients: int) -> None:
    """By all eigenvectors, and by one of a sparse matrix: whatever sign it has, the same
    clusters."""
    found = find_clusters(make_network("path", [f"c{k}" for k in range(clients)]), 3)
    assert found[0] == tuple(range(round(clients / 3)))
    assert [k for cluster in found for k in cluster] == list(range(clients))


def test_the_least_eigenvalue_counts_where_it_is_just_the_largest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A bipartite network of degree 8: 1 - |lambda_K| = 2/9. Its second eigenvalue is little
    below."""
    half, shifts = 23, [2, 5, 6, 9, 10, 13, 17, 22]
    graph = nx.Graph([(k, half + (k + shift) % half) for shift in shifts for k in range(half)])
    P, share = lazy_chain(network_from_edges(graph, [f"c{k}" for k in range(2 * half)]))
    values = np.sort(np.linalg.eigvalsh(P.toarray()))
    assert values[-2] < 7 / 9 == pytest.approx(-values[0])
    monkeypatch.setattr(mixing, "DENSE_LIMIT", 10)
    assert spectral_gap(P, share) == pytest.approx(2 / 9, rel=1e-6)


def test_the_least_number_of_updates_is_not_one_more_by_rounding() -> None:
    bound = LoneGuarantee(
        delta=3.0,
        pi_min=0.25,
        stepsize=0.1,
        mixing_time=7,
        local_updates=3,
        smoothness=20.0,
        block_smoothness=10.0,
    )
    for updates in (*range(1, 1000), 999_983):
        assert bound.updates(bound.constant / updates) == updates
    assert bound.updates(2 * bound.constant) == 1
    assert bound.updates(bound.constant / 1.5) == 2
    for target in (0.0, -0.5):
        with pytest.raises(ConfigError, match="target"):
            bound.updates(target)


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


@pytest.mark.parametrize("rows", [-2, -1, 0, 4, 7])
def test_a_grid_has_rows_that_clients_fill(rows: int) -> None:
    names = [f"c{k}" for k in range(6)]
    with pytest.raises(NetworkError, match="choose rows from 1, 2, 3"):
        make_network("grid", names, rows=rows)
    for fitting in (1, 2, 3, 6):
        assert make_network("grid", names, rows=fitting).edges == (
            fitting - 1
        ) * 6 // fitting + fitting * (6 // fitting - 1)


@pytest.mark.parametrize("clients", [1, 2, 50])
def test_a_usual_radius_is_proposed_where_none_is_given(clients: int) -> None:
    """Twice log K clients are expected within it; of one or two clients it is still a radius."""
    usual = np.sqrt(2 * np.log(max(clients, 2)) / (np.pi * clients))
    with pytest.raises(NetworkError, match="needs radius") as told:
        make_network("random-geometric", [f"c{k}" for k in range(clients)])
    proposed = float(str(told.value).split(f"{clients} clients, ")[1].split()[0])
    assert min(usual, np.sqrt(2)) <= proposed <= 1.001 * usual


@pytest.mark.parametrize(
    ("sizes", "count", "shares"),
    [
        ([30, 10], 4, [3, 1]),
        ([5, 5, 5], 7, [3, 2, 2]),
        ([1, 9, 4], 6, [1, 3, 2]),
        ([2, 7], 2, [1, 1]),
    ],
)
def test_clusters_are_dealt_to_the_fullest_part(
    sizes: list[int], count: int, shares: list[int]
) -> None:
    assert clusters._shares(sizes, count) == shares


def test_the_order_of_a_complete_part_is_not_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_from_edges([*nx.complete_graph(4).edges, (3, 4)], [f"c{k}" for k in range(5)])
    A = adjacency(network)
    monkeypatch.setattr(clusters, "_fiedler", None)
    assert clusters._order(network, A, (0, 1, 3)) == [0, 1, 3]
    assert clusters._order(network, A, (0, 2, 1, 3)) == [0, 2, 1, 3]
    with pytest.raises(TypeError):
        clusters._order(network, A, (2, 3, 4))


@pytest.mark.parametrize(("sweeps", "exact"), [(0, False), (1, False), (3, True)])
def test_a_diameter_is_exact_if_there_was_time_for_it(
    sweeps: int, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring of seven and one of three that share a client: none is as far apart as twice the way
    to the middle."""
    graph = nx.compose(nx.cycle_graph(7), nx.Graph([(0, 7), (7, 8), (8, 0)]))
    network = network_from_edges(graph, [f"c{k}" for k in range(9)])
    assert diameter(network) == (nx.diameter(graph), True) == (4, True)
    monkeypatch.setattr(spectrum, "EXACT_DIAMETER_LIMIT", 8)
    monkeypatch.setattr(spectrum, "SWEEPS", sweeps)
    assert diameter(network) == (4, exact)
    monkeypatch.setattr(spectrum, "EXACT_DIAMETER_LIMIT", 9)
    assert diameter(network) == (4, True)


def test_no_probability_of_a_visit_is_above_1_by_rounding() -> None:
    """Each of these sums is 1 + 2e-16 or more."""

    def start(K: int) -> np.ndarray:
        return np.arange(1, K + 1) / (K * (K + 1) / 2)

    cycle, path, everyone = (
        make_network(kind, "abcde"[:K]) for kind, K in (("cycle", 5), ("path", 4), ("complete", 5))
    )
    assert link_visits(cycle, start(5), 5).max() == 1.0
    assert random_tour_visits(path.neighbours, start(4), 5).max() == 1.0
    assert visit_probabilities(lazy_chain(everyone).P, start(5), 200).max() == 1.0


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_an_eigenvector_of_a_large_network_grows_with_the_numbers(
    sign: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    L, found = (
        laplacian(adjacency(make_network("path", [f"c{k}" for k in range(70)]))),
        np.linspace(-3, 2, 70),
    )
    monkeypatch.setattr(clusters, "fiedler_sparse", lambda _: (0.1, sign * found))
    assert clusters._fiedler(L).tolist() == found.tolist()
