"""Networks and their facts, against networkx and closed forms."""

from __future__ import annotations

import math
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import eigsh

from mtcd.core.errors import NetworkError
from mtcd.network import spectrum
from mtcd.network.edges import network_from_edges, read_network
from mtcd.network.spectrum import diameter, facts, fiedler_sparse
from mtcd.network.topology import KINDS, Network, make_network


def names(K: int) -> list[str]:
    return [f"c{k}" for k in range(K)]


def same_edges(network: Network, graph: nx.Graph) -> bool:
    ours = {(k, j) for k, near in enumerate(network.neighbours) for j in near}
    return ours == {pair for a, b in graph.edges() for pair in ((a, b), (b, a))}


class TestKinds:
    @pytest.mark.parametrize("K", [3, 4, 7, 40])
    @pytest.mark.parametrize(
        ("kind", "graph"),
        [
            ("complete", nx.complete_graph),
            ("cycle", nx.cycle_graph),
            ("path", nx.path_graph),
            ("star", lambda K: nx.star_graph(K - 1)),
            ("empty", nx.empty_graph),
        ],
    )
    def test_matches_networkx(self, kind, graph, K):
        network = make_network(kind, names(K))
        assert same_edges(network, graph(K))
        assert network.edges == graph(K).number_of_edges()
        assert nx.utils.graphs_equal(network.graph, nx.Graph(graph(K)))

    @pytest.mark.parametrize(
        ("K", "rows", "shape"),
        [
            (40, None, (5, 8)),
            (40, 2, (2, 20)),
            (36, None, (6, 6)),
            (7, None, (1, 7)),
            (7, 1, (1, 7)),
            (7, 7, (7, 1)),
        ],
    )
    def test_grid(self, K, rows, shape):
        grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(*shape), ordering="sorted")
        assert same_edges(make_network("grid", names(K), rows=rows), grid)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("K", [1, 2])
    def test_tiny(self, kind, K):
        network = make_network(
            kind,
            names(K),
            p=1.0 if kind == "erdos-renyi" else None,
            radius=2.0 if kind == "random-geometric" else None,
        )
        assert network.neighbours == (((1,), (0,)) if K == 2 and kind != "empty" else ((),) * K)

    @settings(deadline=None)
    @given(st.integers(1, 30), st.floats(0, 1), st.integers(0, 99))
    def test_erdos_renyi_is_a_plain_graph_and_repeats(self, K, p, seed):
        network = make_network("erdos-renyi", names(K), p=p, seed=seed)
        assert (
            network.neighbours == make_network("erdos-renyi", names(K), p=p, seed=seed).neighbours
        )
        plain = make_network("erdos-renyi", names(K), p=p)
        assert plain.neighbours == make_network("erdos-renyi", names(K), p=p, seed=0).neighbours
        for k, near in enumerate(network.neighbours):
            assert list(near) == sorted(set(near) - {k})
            assert all(k in network.neighbours[j] for j in near)

    def test_erdos_renyi_has_each_edge_with_probability_p(self):
        K, p, draws = 8, 0.3, 2000
        counts, edges = np.zeros((K, K)), []
        for seed in range(draws):
            network = make_network("erdos-renyi", names(K), p=p, seed=seed)
            edges.append(network.edges)
            for k, near in enumerate(network.neighbours):
                counts[k, list(near)] += 1
        frequencies = counts[np.triu_indices(K, 1)] / draws
        deviation = math.sqrt(p * (1 - p) / draws)
        assert np.abs(frequencies - p).max() < 4 * deviation
        # each edge by itself
        assert np.var(edges) == pytest.approx(K * (K - 1) / 2 * p * (1 - p), rel=0.15)
        assert make_network("erdos-renyi", names(K), p=0.0).edges == 0
        assert make_network("erdos-renyi", names(K), p=1.0).edges == K * (K - 1) // 2

    def test_a_seed_stands_for_the_same_network_in_every_version(self):
        drawn = make_network("erdos-renyi", names(6), p=0.4, seed=3)
        assert drawn.neighbours == ((1, 5), (0, 2, 4, 5), (1,), (), (1,), (0, 1))

    def test_components(self):
        network = network_from_edges([(0, 3), (1, 4), (4, 2)], names(6))
        assert network.components == ((0, 3), (1, 2, 4), (5,))
        assert not network.connected
        assert make_network("path", names(6)).connected

    @pytest.mark.parametrize("kind", ["path", "cycle", "star", "grid", "erdos-renyi"])
    def test_large_is_quick(self, kind):
        start = time.process_time()
        network = make_network(kind, names(10_000), p=3e-4 if kind == "erdos-renyi" else None)
        assert time.process_time() - start < 5
        assert network.size == 10_000

    @pytest.mark.parametrize(
        ("kind", "options", "message"),
        [
            ("gird", {}, "did you mean 'grid'"),
            ("path", {"p": 0.5}, "p is for the kind 'erdos-renyi' only"),
            ("path", {"rows": 2}, "rows is for the kind 'grid' only"),
            ("grid", {"rows": 3}, "10 clients do not fill 3 rows: choose rows from 1, 2, 5, 10"),
            ("grid", {"rows": 0}, "do not fill 0 rows"),
            ("grid", {"rows": -2}, "do not fill -2 rows"),
            ("erdos-renyi", {}, "needs p"),
            ("erdos-renyi", {"p": 1.5}, "from 0 to 1; got 1.5"),
            ("erdos-renyi", {"p": -0.5}, "from 0 to 1; got -0.5"),
            ("erdos-renyi", {"p": math.nan}, "got nan"),
        ],
    )
    def test_refuses(self, kind, options, message):
        with pytest.raises(NetworkError, match=message):
            make_network(kind, names(10), **options)

    @pytest.mark.parametrize(
        ("clients", "message"), [([], "at least one client"), (["a", "b", "a"], "repeat: a")]
    )
    def test_refuses_clients(self, clients, message):
        with pytest.raises(NetworkError, match=message):
            make_network("path", clients)
        with pytest.raises(NetworkError, match=message):
            network_from_edges([], clients)


class TestEdges:
    def test_names_numbers_loops_and_repeats(self):
        network = network_from_edges(
            [("b", 2), ("2", "1"), (0, 0), (np.int64(0), "c")], ["a", "b", "c"]
        )
        assert network.neighbours == ((2,), (2,), (0, 1))

    def test_a_name_wins_over_a_number(self):
        network = network_from_edges([("1", "2")], ["1", "2", "3"])
        assert network.neighbours == ((1,), (0,), ())
        assert network_from_edges([(1, 2)], ["1", "2", "3"]).neighbours == ((), (2,), (1,))

    def test_names_and_numbers_are_not_mixed_up(self):
        with pytest.raises(NetworkError, match="edge 1: no client is called '0'"):
            network_from_edges([("0", "1")], ["1", "2", "3"])

    @pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
    def test_networkx(self, kind):
        assert network_from_edges(nx.path_graph(5, create_using=kind), names(5)).edges == 4

    @pytest.mark.parametrize(
        ("edges", "message"),
        [
            (
                [("rob", "ann"), ("rob", "an")],
                "edge 2: no client is called 'an'; did you mean 'ann'",
            ),
            ([("rob", 2)], "edge 1: there is no client 2; numbers run from 0 to 1"),
            ([(-1, 0)], "no client -1"),
            ([(0.0, 1)], "0.0 is neither"),
            ([(True, 0)], "True is neither"),
            (
                [(0, 1, 2)],
                r"edge 1: expected a pair of clients, got \(0, 1, 2\); leave weights out$",
            ),
            (["01"], "expected a pair of clients, got '01'$"),
            ([7], "expected a pair of clients, got 7$"),
            ({0: [1]}, r"a dict is no list of edges: give networkx.Graph\(mapping\)"),
            (np.eye(2), r"a ndarray is no list of edges: give networkx.from_numpy_array\(matrix\)"),
            (nx.grid_2d_graph(2, 2), r"the graph: \(0, 0\) is neither"),
            (nx.empty_graph(3), "there is no client 2"),
        ],
    )
    def test_refuses(self, edges, message):
        with pytest.raises(NetworkError, match=message):
            network_from_edges(edges, ["ann", "rob"])


class TestFiles:
    def read(self, folder: Path, text: str, encoding: str = "utf-8") -> Network:
        path = folder / "net.csv"
        path.write_text(text, encoding=encoding)
        return read_network(path, ["ann", "rob", "zoë"])

    def test_reads(self, tmp_path):
        text = "weight, Target ,SOURCE\n1,ann,rob\n\n2, zoë ,ann\n3,0,2\n4,rob,rob\n"
        for encoding in ("utf-8", "utf-8-sig"):
            assert self.read(tmp_path, text, encoding).neighbours == ((1, 2), (0,), (0,))

    def test_header_alone_is_an_empty_network(self, tmp_path):
        assert self.read(tmp_path, "source,target\n").edges == 0

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "first line must be a header with the columns source,target; it has: nothing"),
            ("ann,rob\n", "no column 'source'.*it has: ann, rob"),
            ("source,to\nann,rob\n", "no column 'target'"),
            (
                "source,target\nann,rob\nann,rop\n",
                "line 3: no client is called 'rop'; did you mean 'rob'",
            ),
            ("source,target\nann,\n", "line 2: the cell 'target' is empty"),
            ("source,target\n ,ann\n", "line 2: the cell 'source' is empty"),
            ("source,target\nann\n", "line 2: the cell 'target' is empty"),
            ("source,target\nann,3\n", "line 2: there is no client 3"),
        ],
    )
    def test_refuses(self, tmp_path, text, message):
        with pytest.raises(NetworkError, match=message):
            self.read(tmp_path, text)

    def test_refuses_what_is_no_text_file(self, tmp_path):
        with pytest.raises(NetworkError, match="not a CSV file in UTF-8"):
            self.read(tmp_path, "source,target\nzoë,ann\n", encoding="latin-1")
        with pytest.raises(NetworkError, match="cannot read the network .*No such file"):
            read_network(tmp_path / "nowhere.csv", ["ann"])
        with pytest.raises(NetworkError, match="cannot read the network"):
            read_network(tmp_path, ["ann"])


def path_value(K: int) -> float:
    return 2 * (1 - math.cos(math.pi / K))


def cycle_value(K: int) -> float:
    return 2 * (1 - math.cos(2 * math.pi / K))


class TestFacts:
    @pytest.mark.parametrize(
        ("kind", "value"), [("complete", 40), ("grid", 0.15), ("cycle", 0.025)]
    )
    def test_values_of_the_paper(self, kind, value):
        assert facts(make_network(kind, names(40))).algebraic_connectivity == pytest.approx(
            value, rel=0.03
        )

    @pytest.mark.parametrize("K", [3, 40, 600, 1501, 10_000])
    @pytest.mark.parametrize(("kind", "value"), [("path", path_value), ("cycle", cycle_value)])
    def test_closed_forms(self, kind, value, K):
        found = facts(make_network(kind, names(K)))
        assert found.algebraic_connectivity == pytest.approx(value(K), rel=1e-6)
        assert (found.diameter, found.connected) == (K - 1 if kind == "path" else K // 2, True)
        assert found.diameter_exact == (kind == "path" or K <= 2000)

    def test_value_of_the_paper_for_the_path(self):
        assert facts(make_network("path", names(40))).algebraic_connectivity == pytest.approx(
            0.0061, abs=1e-4
        )

    def test_sparse_agrees_with_dense(self):
        network = make_network("erdos-renyi", names(1200), p=0.008)
        L = spectrum.laplacian(spectrum.adjacency(network))
        value, vector = fiedler_sparse(L)
        assert value == pytest.approx(np.linalg.eigvalsh(L.toarray())[1], rel=1e-8)
        np.testing.assert_allclose(L @ vector, value * vector, atol=1e-8)

    def test_sparse_where_plain_lanczos_gives_up(self, monkeypatch):
        calls = []

        def recorded(*args, **options):
            calls.append(options["which"])
            return eigsh(*args, **options)

        monkeypatch.setattr("scipy.sparse.linalg.eigsh", recorded)
        monkeypatch.setattr(spectrum, "LANCZOS_RESTARTS", 1)
        network = make_network("erdos-renyi", names(600), p=0.02)
        L = spectrum.laplacian(spectrum.adjacency(network))
        value, vector = fiedler_sparse(L)
        assert calls == ["SA", "LM"]
        assert value == pytest.approx(np.linalg.eigvalsh(L.toarray())[1], rel=1e-8)
        np.testing.assert_allclose(L @ vector, value * vector, atol=1e-8)

    def test_two_that_know_all_do_not_make_the_others_neighbours(self):
        edges = [(0, 1), *((hub, k) for hub in (0, 1) for k in (2, 3, 4))]
        near = tuple(tuple(sorted({a + b - k for a, b in edges if k in (a, b)})) for k in range(5))
        assert spectrum.diameter(Network(tuple(names(5)), near)) == (2, True)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(1, 25), st.floats(0, 0.6), st.integers(0, 999))
    def test_against_networkx(self, K, p, seed):
        network = make_network("erdos-renyi", names(K), p=p, seed=seed)
        found, graph = facts(network), network.graph
        degrees = [d for _, d in graph.degree()]
        assert (found.clients, found.edges) == (K, graph.number_of_edges())
        assert found.components == nx.number_connected_components(graph)
        assert found.connected == nx.is_connected(graph)
        assert found.diameter == (nx.diameter(graph) if found.connected else None)
        assert found.diameter_exact
        assert (found.degree_min, found.degree_max) == (min(degrees), max(degrees))
        assert found.degree_mean == pytest.approx(np.mean(degrees))
        values = np.linalg.eigvalsh(nx.laplacian_matrix(graph).toarray().astype(float))
        assert found.algebraic_connectivity == pytest.approx(values[1] if K > 1 else 0.0, abs=1e-9)
        if not found.connected:
            assert found.algebraic_connectivity == 0.0

    def test_diameter_of_a_large_network_is_a_lower_bound(self, monkeypatch):
        monkeypatch.setattr(spectrum, "EXACT_DIAMETER_LIMIT", 10)
        monkeypatch.setattr(spectrum, "SWEEPS", 1)
        graph = nx.random_regular_graph(3, 60, seed=1)
        found, exact = spectrum.diameter(network_from_edges(graph, names(60)))
        assert not exact
        assert 0 < found <= nx.diameter(graph)
        assert spectrum.diameter(make_network("grid", names(100))) == (18, True)
        assert spectrum.diameter(make_network("star", names(100))) == (2, True)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_an_edge_list_may_use_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    path = tmp_path / "net.csv"
    path.write_text("source,target\na,b\nb,c\n".replace(",", delimiter))
    assert read_network(path, ["a", "b", "c"]).neighbours == ((1,), (0, 2), (1,))


@pytest.mark.parametrize("rows", [-2, -1, 0, 4, 7])
def test_a_grid_has_rows_that_clients_fill(rows: int) -> None:
    names = [f"c{k}" for k in range(6)]
    with pytest.raises(NetworkError, match="choose rows from 1, 2, 3"):
        make_network("grid", names, rows=rows)
    for fitting in (1, 2, 3, 6):
        assert make_network("grid", names, rows=fitting).edges == (
            fitting - 1
        ) * 6 // fitting + fitting * (6 // fitting - 1)


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
