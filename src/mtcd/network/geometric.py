"""Random geometric graphs: clients at random places in a square, linked where they are near each
other."""

from __future__ import annotations

import math

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import NetworkError
from mtcd.core.seeding import stream

SLACK = 1 + 1e-6
"""The radius that an error names still connects after it is rounded up to four digits."""


def random_geometric(K: int, radius: float | None, seed: int) -> NDArray[np.int64]:
    """The links of K places, uniform in the unit square, that are at most ``radius`` apart; they
    must be connected.

    >>> random_geometric(2, radius=2.0, seed=0).tolist()
    [[0, 1]]
    """
    if radius is None:
        raise NetworkError(
            "the kind 'random-geometric' needs radius, the distance in a square of side 1 up to "
            f"which clients are linked; for {K} clients, {_four_digits(_usual(K))} is likely to "
            "connect all"
        )
    if not radius > 0 or not math.isfinite(radius):
        raise NetworkError(f"radius is a distance above 0 in a square of side 1; got {radius}")

    # The places first, whatever the radius: with a larger one the same clients stand where they
    # stood, and only links are added.
    places = stream(seed, "network").random((K, 2))
    found = scipy.spatial.cKDTree(places).query_pairs(radius, output_type="ndarray")
    least = _connecting(places)
    # An error instead of a network in parts: sums of all clients could not travel.
    if least > radius:
        raise NetworkError(
            f"with radius {radius:g} this random geometric network is not connected: it takes a "
            f"radius of at least {_four_digits(least * SLACK)} with this seed; give that, or "
            "another seed"
        )

    return np.asarray(found, dtype=np.int64).reshape(-1, 2)


def _usual(K: int) -> float:
    """A radius with which K places are connected with high probability: pi K r^2 is twice log K."""
    return math.sqrt(2 * math.log(max(K, 2)) / (math.pi * K))


def _four_digits(radius: float) -> str:
    """The radius with four digits, rounded up: with one rounded down, the error would come back."""
    scale = 10 ** (3 - math.floor(math.log10(radius)))
    return f"{math.ceil(radius * scale) / scale:.4g}"


def _connecting(places: Array) -> float:
    """The least radius that connects these places: the longest edge of their minimum spanning tree.

    That tree is part of the Delaunay triangulation, which has 3 K edges at most.
    """
    K = len(places)
    if K == 1:
        return 0.0  # any radius connects a single place
    if K < 4:  # of four, all pairs do as well as the triangulation
        pairs = np.array([(k, j) for k in range(K) for j in range(k)])
    else:
        corners = scipy.spatial.Delaunay(places).simplices
        pairs = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [0, 2]]])
    lengths = np.linalg.norm(places[pairs[:, 0]] - places[pairs[:, 1]], axis=1)

    # Inside, an edge is in two triangles; given twice, its length would be added up.
    first = np.unique(pairs, axis=0, return_index=True)[1]
    graph = scipy.sparse.csr_array((lengths[first], pairs[first].T), shape=(K, K))
    return float(scipy.sparse.csgraph.minimum_spanning_tree(graph).max())
