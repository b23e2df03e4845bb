"""Where clients are drawn: the same places every time, apart, and near those that they are linked
to."""

import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from mtcd.reporting.layout import layout
from mtcd.reporting.trace.trace import Trace
from problems import networks
from waiting import computing_at_most


def drawn(network: mtcd.Network) -> np.ndarray:
    trace = Trace.of(network, None, False)
    return layout(trace.kind, network.size, trace.edges, None, len(trace.edges) < trace.edges_total)


def of_graph(graph: nx.Graph) -> np.ndarray:
    return layout(
        "network", len(graph), np.array([sorted(edge) for edge in graph.edges], np.int64), None
    )


@given(network=st.integers(1, 12).flatmap(networks))
@settings(max_examples=60, deadline=None)
def test_any_network(network: mtcd.Network) -> None:
    places = drawn(network)
    assert places.shape == (network.size, 2)
    assert (places >= 0).all()
    assert (places <= 1).all()
    assert np.array_equal(places, drawn(network))
    if network.size > 1:
        apart = np.hypot(*(places[:, None] - places[None, :]).transpose(2, 0, 1))
        assert apart[~np.eye(network.size, dtype=bool)].min() > 0.01


@pytest.mark.parametrize("kind", ["path", "cycle", "grid", "complete", "star", "empty"])
def test_links_of_a_standard_network_are_of_equal_length(kind: str) -> None:
    network = mtcd.make_network(kind, [f"c{k}" for k in range(24)])
    places = drawn(network)
    links = [(k, j) for k, near in enumerate(network.neighbours) for j in near]
    if kind not in ("complete", "empty"):
        lengths = [np.hypot(*(places[k] - places[j])) for k, j in links]
        assert max(lengths) < 1.01 * min(lengths)
    if kind in ("cycle", "complete", "empty"):
        assert np.hypot(*(places - 0.5).T) == pytest.approx(np.full(24, 0.46), abs=1e-3)
    if kind == "grid":
        assert len({x for x, _ in places.tolist()}) * len({y for _, y in places.tolist()}) == 24


def test_a_complete_network_is_ordered_by_clusters() -> None:
    clusters = [0, 1, 0, 1, 0, 1]
    places = layout("complete", 6, np.empty((0, 2), np.int64), clusters)
    around = np.argsort(np.arctan2(*(places - 0.5).T))
    changes = sum(
        clusters[a] != clusters[b] for a, b in zip(around, np.roll(around, 1), strict=True)
    )
    assert changes == 2


def test_distances_on_the_page_follow_those_along_the_links() -> None:
    graph = nx.random_geometric_graph(100, 0.18, seed=2)
    assert nx.is_connected(graph)
    places = of_graph(graph)
    along = np.array(
        [
            [d for _, d in sorted(row.items())]
            for _, row in sorted(nx.all_pairs_shortest_path_length(graph))
        ]
    )
    apart = np.hypot(*(places[:, None] - places[None, :]).transpose(2, 0, 1))
    upper = np.triu_indices(100, 1)
    assert np.corrcoef(along[upper], apart[upper])[0, 1] > 0.93


def test_pieces_do_not_overlap() -> None:
    graph = nx.disjoint_union_all([nx.cycle_graph(5)] * 4 + [nx.star_graph(9)])
    places = of_graph(graph)
    boxes = [
        (places[list(piece)].min(axis=0), places[list(piece)].max(axis=0))
        for piece in nx.connected_components(graph)
    ]
    for i, (low, high) in enumerate(boxes):
        for other_low, other_high in boxes[:i]:
            assert (low > other_high).any() or (high < other_low).any()


def test_another_process_draws_the_same() -> None:
    script = (
        "import networkx as nx, numpy as np\nfrom mtcd.reporting.layout import layout\n"
        "g = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6, periodic=True))\n"
        "print(layout('network', 36, np.array([sorted(e) for e in g.edges]), None).tolist())"
    )
    shown = {
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    }
    torus = nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 6, periodic=True))
    assert shown == {f"{of_graph(torus).tolist()}\n"}


@pytest.mark.long
def test_two_thousand_clients_and_more_take_seconds() -> None:
    with computing_at_most(8.0):
        of_graph(nx.watts_strogatz_graph(2000, 4, 0.01, seed=1))
    with computing_at_most(8.0):
        assert np.isfinite(of_graph(nx.watts_strogatz_graph(20_000, 4, 0.01, seed=1))).all()
