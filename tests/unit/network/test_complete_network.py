"""Complete networks whose neighbours are computed against the same ones with stored neighbours."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtcd
from mtcd.network import topology
from mtcd.network.complete import CompleteNeighbours, Others
from mtcd.network.spectrum import facts
from mtcd.network.topology import make_network


@given(st.integers(1, 30), st.data())
def test_others_are_the_tuple_without_the_client(size, data):
    client = data.draw(st.integers(0, size - 1))
    others, stored = Others(client, size), tuple(k for k in range(size) if k != client)
    assert tuple(others) == stored
    assert [k in others for k in range(-2, size + 2)] == [k in stored for k in range(-2, size + 2)]
    assert "a" not in others
    assert [others[i] for i in range(-len(stored), len(stored))] == [
        stored[i] for i in range(-len(stored), len(stored))
    ]
    for place in (len(stored), -len(stored) - 1):
        with pytest.raises(IndexError):
            others[place]
    part = data.draw(st.slices(size))
    assert tuple(others[part]) == stored[part]
    assert set(range(0, size, 2)).intersection(others) == set(range(0, size, 2)).intersection(
        stored
    )


def test_every_client_has_its_others():
    neighbours = CompleteNeighbours(4)
    assert [tuple(near) for near in neighbours] == [(1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2)]
    assert tuple(neighbours[-1]) == (0, 1, 2)
    assert [tuple(near) for near in neighbours[1:3]] == [(0, 2, 3), (0, 1, 3)]
    with pytest.raises(IndexError):
        neighbours[4]


def test_few_neighbours_are_stored_and_many_computed(monkeypatch):
    monkeypatch.setattr(topology, "STORED", 4)
    stored, computed = (make_network("complete", [str(k) for k in range(size)]) for size in (4, 5))
    assert stored.neighbours == ((1, 2, 3), (0, 2, 3), (0, 1, 3), (0, 1, 2))
    assert repr(computed.neighbours) == "CompleteNeighbours(5)"


def test_ten_thousand_clients_take_a_megabyte_or_two():
    names = [str(k) for k in range(10_000)]
    tracemalloc.start()
    network = make_network("complete", names)
    assert network.edges == 49_995_000
    assert network.connected
    assert tracemalloc.get_traced_memory()[1] < 3e6
    tracemalloc.stop()
    found = facts(network)
    assert (found.algebraic_connectivity, found.diameter, found.diameter_exact) == (10_000, 1, True)
    assert (found.degree_min, found.degree_max) == (9999, 9999)


@pytest.mark.parametrize(
    "method",
    [
        mtcd.STCD(walk="lazy"),
        mtcd.STCD(walk="metropolis"),
        mtcd.STCD(walk="non-backtracking"),
        mtcd.STCD(walk="tour", acceleration="conjugate"),
        mtcd.STCD(walk="tour", acceleration="twin"),
        mtcd.MTCD(tokens=2, hops=3),
        mtcd.DCPA(stepsize=1e-3),
        mtcd.TreeCG(),
    ],
    ids=lambda method: f"{type(method).__name__}-{getattr(method, 'walk', '')}",
)
def test_a_training_is_the_same(method, monkeypatch):
    data = mtcd.synthetic("ridge", samples=20, features=12, clients=12, seed=0)

    def trained():
        return mtcd.train(
            data,
            mtcd.Glm("ridge", l2=1.0),
            method=method,
            network="complete",
            stop=mtcd.Stop(iterations=40),
        )

    stored = trained()
    monkeypatch.setattr(topology, "STORED", 1)
    computed = trained()
    assert computed.history["objective"].tolist() == stored.history["objective"].tolist()
    assert computed.ledger == stored.ledger
