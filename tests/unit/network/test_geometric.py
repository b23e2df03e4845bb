"""Random geometric networks, and networks too large for anything quadratic."""

import time
import tracemalloc

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.config.read import check_config
from mtcd.core.errors import ConfigError, NetworkError
from mtcd.core.seeding import stream
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.network import geometric
from mtcd.network.geometric import random_geometric
from mtcd.network.topology import make_network
from mtcd.network.tours import closed_walk, ring
from mtcd.network.walks.facts import inside


def names(K: int) -> list[str]:
    return [f"c{k}" for k in range(K)]


@given(st.integers(1, 40), st.integers(0, 5))
@settings(deadline=None, max_examples=40)
def test_the_links_are_the_pairs_within_the_radius_and_the_named_radius_connects(
    K: int, seed: int
) -> None:
    places = stream(seed, "network").random((K, 2))
    far = np.linalg.norm(places[:, None] - places[None], axis=2)
    full = nx.from_numpy_array(far)
    least = max((about["weight"] for *_, about in nx.minimum_spanning_edges(full)), default=0.5)
    if K > 1:
        with pytest.raises(NetworkError, match="not connected") as told:
            make_network("random-geometric", names(K), radius=0.999 * least, seed=seed)
        named = float(str(told.value).split("at least ")[1].split(" ")[0])
        assert least <= named <= 1.002 * least
        assert make_network("random-geometric", names(K), radius=named, seed=seed).connected
    network = make_network("random-geometric", names(K), radius=1.2 * least, seed=seed)
    wanted = [
        tuple(np.flatnonzero((far[k] <= 1.2 * least) & (np.arange(K) != k)).tolist())
        for k in range(K)
    ]
    assert list(network.neighbours) == wanted


@pytest.mark.parametrize("radius", [None, 0.0, -1.0, float("nan"), float("inf")])
def test_a_radius_that_makes_no_sense_is_refused(radius: float | None) -> None:
    with pytest.raises(
        NetworkError, match="needs radius" if radius is None else "a distance above 0"
    ):
        random_geometric(20, radius, 0)


@pytest.mark.parametrize(
    "least", [0.25, np.nextafter(0.25, 1), 0.123412, np.nextafter(0.1, 1), 0.0099991, 1.0001]
)
def test_the_named_radius_is_rounded_up_to_four_digits(
    least: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It must not be too short by a rounding error; one that just connects is enough."""
    monkeypatch.setattr(geometric, "_connecting", lambda places: least)
    with pytest.raises(NetworkError, match="not connected") as told:
        random_geometric(5, 0.999 * least, 0)
    named = str(told.value).split("at least ")[1].split(" ")[0]
    assert least <= float(named) <= 1.0011 * least
    assert float(named) == float(f"{float(named):.4g}")
    random_geometric(5, least, 0)


def test_the_config_takes_radius_and_seed_for_this_kind_alone() -> None:
    base = {
        "data": {"synthetic": "ridge", "samples": 9, "features": 4, "clients": 2},
        "model": {"kind": "ridge"},
    }
    assert check_config({**base, "network": {"kind": "random-geometric", "radius": 0.5, "seed": 3}})
    with pytest.raises(ConfigError, match="seed"):
        check_config({**base, "network": {"kind": "path", "seed": 3}})
    with pytest.raises(ConfigError, match="radius"):
        check_config({**base, "network": {"edges": "x.csv", "radius": 0.3}})
    with pytest.raises(NetworkError, match="radius is for the kind 'random-geometric' only"):
        make_network("grid", names(4), radius=0.3)


def test_a_complete_network_of_10000_has_tours_and_clusters_in_little_time_and_memory() -> None:
    tracemalloc.start()
    began = time.process_time()
    network = make_network("complete", names(10_000))
    assert sorted(closed_walk(network, range(10_000))) == list(range(10_000))
    clusters = MTCD(16, 1, clusters="auto").token_clusters(network, 0)
    assert {len(cluster) for cluster in clusters or ()} == {625}
    assert inside(network, range(5000)).complete
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 50e6
    assert time.process_time() - began < 20


@pytest.mark.parametrize("K", [3, 4, 7, 6000])
def test_the_tour_of_a_ring_is_the_ring_however_its_clients_are_numbered(K: int) -> None:
    order = stream(1, "order").permutation(K).tolist()
    edges = list(zip(order, [*order[1:], order[0]], strict=True))
    walk = ring(nx.Graph(edges))
    assert sorted(walk) == list(range(K))
    assert {frozenset(pair) for pair in zip(walk, [*walk[1:], walk[0]], strict=True)} == set(
        map(frozenset, edges)
    )
    assert ring(nx.path_graph(K)) is None


@pytest.mark.parametrize("clients", [1, 2, 50])
def test_a_usual_radius_is_proposed_where_none_is_given(clients: int) -> None:
    """Twice log K clients are expected within it; of one or two clients it is still a radius."""
    usual = np.sqrt(2 * np.log(max(clients, 2)) / (np.pi * clients))
    with pytest.raises(NetworkError, match="needs radius") as told:
        make_network("random-geometric", [f"c{k}" for k in range(clients)])
    proposed = float(str(told.value).split(f"{clients} clients, ")[1].split()[0])
    assert min(usual, np.sqrt(2)) <= proposed <= 1.001 * usual
