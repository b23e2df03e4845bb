"""All walks on small networks, with their probabilities."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network

ODD = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 4), (4, 5), (5, 6), (4, 7)]  # a cycle with branches


def network_of(kind: str, K: int, **more: float) -> Network:
    names = [f"c{k}" for k in range(K)]
    return network_from_edges(ODD, names) if kind == "odd" else make_network(kind, names, **more)


def starts(size: int) -> st.SearchStrategy[tuple[float, ...]]:
    weights = st.lists(st.integers(0, 5), min_size=size, max_size=size).filter(any)
    return weights.map(lambda w: tuple(x / sum(w) for x in w))


def likely(network: Network, walk: tuple[int, ...], kind: str) -> float:
    """The probability of these clients in a row, given the first."""
    chance = 1.0
    for i, (here, there) in enumerate(itertools.pairwise(walk)):
        near = network.neighbours[here]
        if kind == "lazy":
            choices = {here, *near}
            chance *= (there in choices) / len(choices)
        elif kind == "non-backtracking":
            onwards = [k for k in near if i == 0 or k != walk[i - 1]] or near or (here,)
            chance *= (there in onwards) / len(onwards)
        else:
            go = {j: min(1, len(near) / len(network.neighbours[j])) / len(near) for j in near}
            chance *= go.get(there, 0.0) if there != here else 1 - sum(go.values())
    return chance


def enumerated(network: Network, start: tuple[float, ...], S: int, kind: str) -> np.ndarray:
    """The probability that each client is visited, over every sequence of S clients."""
    visited = np.zeros(network.size)
    for walk in itertools.product(range(network.size), repeat=S):
        visited[list(set(walk))] += start[walk[0]] * likely(network, walk, kind)
    return visited
