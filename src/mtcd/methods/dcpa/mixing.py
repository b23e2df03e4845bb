"""Weights with which neighbours mix what they know. Row k is known to client k: it needs its
neighbours' degrees."""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.network.spectrum import adjacency
from mtcd.network.topology import Network


def metropolis_weights(network: Network) -> scipy.sparse.csr_array:
    """A, symmetric and doubly stochastic: a_kj = 1/(1 + max(degree_k, degree_j)) for neighbours,
    the rest stays at k.

    >>> from mtcd.network.topology import make_network
    >>> metropolis_weights(make_network("path", ["a", "b", "c"])).toarray().round(2).tolist()
    [[0.67, 0.33, 0.0], [0.33, 0.33, 0.33], [0.0, 0.33, 0.67]]
    """
    # Known to client k alone: the degrees are those of its neighbours.
    edges = scipy.sparse.coo_array(adjacency(network), dtype=float)
    degrees = np.array([len(near) for near in network.neighbours])
    rows, columns = edges.coords
    # A weight that the larger degree decides is the same at both ends, so A is symmetric and keeps
    # the sum of what is mixed.
    edges.data[:] = 1.0 / (1 + np.maximum(degrees[rows], degrees[columns]))
    given = np.bincount(rows, weights=edges.data, minlength=network.size)
    return scipy.sparse.csr_array(edges + scipy.sparse.diags_array(1.0 - given))
