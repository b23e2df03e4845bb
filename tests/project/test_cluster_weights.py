"""The benchmark of a weight for each cluster and sync: what it counts, on something small."""

import numpy as np
import pytest
from benchmarks import cluster_weights
from benchmarks.cluster_weights import Case

SMALL = Case("grid", 40, 40, "independent")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_weights, "SAMPLES", 100)
    monkeypatch.setattr(cluster_weights, "COUNTS", (1, 4))


def test_time_is_the_longest_tour_and_the_server_of_every_sync() -> None:
    """Four tokens on a grid of 40: tours of 10 hops, and 4 s at the server."""
    assert cluster_weights.time_of(SMALL, 4, 3, 5) == 3 * (10 + 20)
    assert cluster_weights.time_of(SMALL, 1, 3, 5) == 3 * 40
    assert cluster_weights.time_of(SMALL, 4, None, 5) == np.inf


@pytest.mark.parametrize("network", cluster_weights.NETWORKS)
def test_networks_have_all_clients(network: str) -> None:
    links = Case(network, 40, 40, "AR").links
    assert links.size == 40
    assert links.connected


def test_a_row_has_syncs_and_the_best_number_of_tokens() -> None:
    cells = cluster_weights.row(SMALL).strip("| ").split(" | ")
    assert len(cells) == 1 + 2 + 3
    one, memory = (int(number) for number in cells[2].split(" / "))
    assert 1 <= memory <= one


def test_a_slower_server_takes_longer() -> None:
    slow, quick = (cluster_weights.seconds(SMALL, 4, "memory", mbps) for mbps in (0.5, 100.0))
    assert np.isfinite(slow)
    assert slow > quick
