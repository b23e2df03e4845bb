"""Properties of a network that govern how fast a token mixes: spectra, distances, degrees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import chain

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.core.seeding import stream
from mtcd.network.topology import Network, levels_from, long_path

DENSE_LIMIT = 1500
"""Up to this K all eigenvalues are computed, to full precision."""
EXACT_DIAMETER_LIMIT = 2000
"""Up to this K the diameter is computed whatever it takes."""
SWEEPS = 64
"""Searches spent on the diameter above that."""
LANCZOS_RESTARTS = 100


@dataclass(frozen=True)
class NetworkFacts:
    """The properties of a network that matter for training.

    Parameters
    ----------
    clients, edges, components
        How many there are.
    connected
        Whether there is one component.
    algebraic_connectivity
        The second smallest eigenvalue of the Laplacian.
    diameter
        The longest of the shortest paths; None when the network is not connected.
    diameter_exact
        Whether that is exact; if not, it is a lower bound.
    degree_min, degree_mean, degree_max
        Neighbours of a client.
    """

    clients: int
    edges: int
    connected: bool
    components: int
    algebraic_connectivity: float
    diameter: int | None
    diameter_exact: bool
    degree_min: int
    degree_mean: float
    degree_max: int


def facts(network: Network) -> NetworkFacts:
    """The facts of a network.

    >>> from mtcd.network.topology import make_network
    >>> facts(make_network("cycle", "abcdef")).diameter
    3
    """
    # One pass over the lists; of a large complete network they are computed when they are read.
    degrees = list(map(len, network.neighbours))
    hops, exact = diameter(network)
    return NetworkFacts(
        clients=network.size,
        edges=network.edges,
        connected=network.connected,
        components=len(network.components),
        algebraic_connectivity=algebraic_connectivity(network),
        diameter=hops,
        diameter_exact=exact,
        degree_min=min(degrees),
        degree_mean=2 * network.edges / network.size,
        degree_max=max(degrees),
    )


def algebraic_connectivity(network: Network) -> float:
    """The second smallest eigenvalue of the Laplacian; 0 if the network is disconnected, or has one
    client."""
    if network.size == 1 or not network.connected:
        return 0.0
    if network.complete:
        return float(network.size)

    L = laplacian(adjacency(network))
    # Full precision where it is cheap; beyond, only the two eigenvalues that count.
    if network.size <= DENSE_LIMIT:
        (second,) = scipy.linalg.eigvalsh(L.toarray(), subset_by_index=[1, 1])
        return float(second)
    return float(fiedler_sparse(L)[0])


def adjacency(network: Network) -> scipy.sparse.csr_array:
    """A, with A_kj = 1 for neighbours k and j."""
    ends = np.cumsum([0, *map(len, network.neighbours)])
    others = np.fromiter(chain.from_iterable(network.neighbours), dtype=np.int64, count=ends[-1])
    entries = np.ones(ends[-1]), others, ends
    return scipy.sparse.csr_array(entries, shape=(network.size, network.size))


def laplacian(A: scipy.sparse.csr_array) -> scipy.sparse.csr_array:
    """L = D - A, D the diagonal of the degrees."""
    return scipy.sparse.csr_array(scipy.sparse.diags_array(np.asarray(A.sum(axis=1)).ravel()) - A)


def fiedler_sparse(L: scipy.sparse.csr_array) -> tuple[float, Array]:
    """The second least eigenvalue of a connected graph's Laplacian, and an eigenvector of it.

    Lanczos alone is quick where the graph mixes well. A graph that does not is long, so its levels
    around a client are narrow, and then L + I/K^2 factorises cheaply: Lanczos on its inverse needs
    a few steps only. (1/K^2 is below the least value that a connected graph can have, about
    pi^2/K^2.)
    """
    from scipy.sparse.csgraph import dijkstra
    from scipy.sparse.linalg import ArpackNoConvergence, eigsh

    K = L.shape[0]

    # Lanczos finds, of several eigenvectors, the one nearest to where it starts: with the numbers
    # of the clients that is a sensible one. The noise keeps it off symmetric vectors that never
    # reach the rest.
    noise = stream(0, "fiedler").standard_normal(K)
    start = np.linspace(-1, 1, K) + 1e-3 * noise

    inverse = {"sigma": -1 / K**2, "which": "LM"}  # any shift near 0
    distances = dijkstra(abs(L), indices=0, unweighted=True)
    long = distances.max() ** 2 >= K
    first = inverse if long else {"which": "SA", "maxiter": LANCZOS_RESTARTS}

    basis = min(K, 40)  # only saves time
    solve = partial(eigsh, L.tocsc(), k=2, v0=start, ncv=basis)
    try:
        values, vectors = solve(**first)
    except ArpackNoConvergence:
        values, vectors = solve(**inverse)

    order = np.argsort(values)
    return float(values[order[1]]), vectors[:, order[1]]


def diameter(network: Network) -> tuple[int | None, bool]:
    """The longest of the shortest paths, and whether it is exact (if not: a lower bound).

    Two sweeps give a lower bound, which is exact on trees. Any two clients further apart than 2(i -
    1) have one of them at distance i or more from the middle: so the search goes through the
    clients from the furthest inwards, until the bound is as large as anything that is left could
    be.
    """
    if not network.connected:
        return None, True
    if network.complete:
        return min(1, network.size - 1), True

    bound, middle = long_path(network)
    if network.edges == network.size - 1:  # only saves time
        return bound, True

    # From the middle outwards no pair is farther apart than the sum of its distances to it.
    levels = levels_from(network, middle)
    sweeps_left = SWEEPS
    if network.size <= EXACT_DIAMETER_LIMIT:
        sweeps_left = network.size

    for distance in range(len(levels) - 1, 0, -1):
        for client in levels[distance]:
            if bound >= 2 * distance:
                return bound, True
            if sweeps_left == 0:
                return bound, False
            sweeps_left -= 1
            bound = max(bound, len(levels_from(network, client)) - 1)
    return bound, True
