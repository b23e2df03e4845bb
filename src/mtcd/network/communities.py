"""Communities: groups of clients with many links inside and few between them, found by Louvain's
method.

networkx finds them while the network is small. On a large one its first phase may go over all
clients hundreds of times, each time moving a few of them: on a cycle of 10,000 that takes a minute.
So a large network is contracted first: the same phase, stopped once a pass moves few clients, and
each group becomes one node of a smaller, weighted network.
"""

from __future__ import annotations

import networkx as nx
import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.seeding import stream
from mtcd.network.spectrum import adjacency
from mtcd.network.topology import Network, connected_pieces

Labels = NDArray[np.int64]

# What networkx takes a second or two for; beyond, networks are contracted first.
LARGEST_SIZE = 2000
LARGEST_EDGES = 50_000
PASSES = 10
"""Passes over all clients before a contraction, at most."""
CONVERGED = 0.01
"""A pass that moves no more than this share of the clients is the last one."""


def communities(network: Network, seed: int) -> tuple[tuple[int, ...], ...]:
    """The communities, each connected and sorted, in the order of their first members.

    A complete network is one community: to cut it anywhere lowers the modularity.
    """
    if network.complete:
        return (tuple(range(network.size)),)

    # A seed of its own kind, so that other random choices of a training stay as they are.
    draw = int(stream(seed, "clusters").integers(2**32))
    found = _found_by_louvain(adjacency(network), draw)

    # A group may fall into pieces when a later move takes the client that joined them.
    pieces: list[tuple[int, ...]] = []
    for group in found:
        pieces += connected_pieces(network.neighbours, group)
    return tuple(sorted(pieces))


def _found_by_louvain(A: scipy.sparse.csr_array, draw: int) -> list[set[int]]:
    """The communities of the network with adjacency matrix A, which is contracted while it is
    large."""
    rng = np.random.default_rng(draw)
    # The node of each client in the contracted network.
    node = np.arange(A.shape[0])
    # Contraction only makes it smaller: the last phase is the method as published, on few nodes.
    while A.shape[0] > LARGEST_SIZE or A.nnz > 2 * LARGEST_EDGES:
        labels = _local_moves(A, rng)
        node = labels[node]
        if labels.max() + 1 == A.shape[0]:  # no node moves: components without links to others
            return _groups(node)
        A = _contracted(A, labels)

    graph = nx.Graph()
    graph.add_nodes_from(range(A.shape[0]))
    links = scipy.sparse.coo_array(scipy.sparse.triu(A))
    # networkx counts a loop twice, as the matrix does the links inside a group.
    weights = np.where(links.row == links.col, links.data / 2, links.data)
    edges = zip(links.row.tolist(), links.col.tolist(), weights.tolist(), strict=True)
    graph.add_weighted_edges_from(edges)

    labels = np.empty(A.shape[0], dtype=np.int64)
    for number, group in enumerate(nx.community.louvain_communities(graph, seed=draw)):
        labels[list(group)] = number
    return _groups(labels[node])


def _local_moves(A: scipy.sparse.csr_array, rng: np.random.Generator) -> Labels:
    """The first phase of Louvain's method: every node by itself, then each in turn to the best
    neighbouring group.

    Best is what raises the modularity most: the weight of a node's links to the group, less what
    links at random would give. At most ``PASSES`` passes over all nodes.
    """
    size = A.shape[0]
    strength = np.asarray(A.sum(axis=1)).ravel()
    total = strength.sum()
    group = np.arange(size)
    volume = strength.copy()
    """The strength of all nodes of a group."""

    for _ in range(PASSES):
        moved = 0
        # At random, so that the groups do not hang on how clients are numbered.
        for k in rng.permutation(size):
            entries = slice(A.indptr[k], A.indptr[k + 1])
            others = A.indices[entries] != k
            near = group[A.indices[entries][others]]
            home = group[k]
            if near.size == 0:
                continue

            choices, which = np.unique(np.append(near, home), return_inverse=True)
            weights = np.bincount(which, weights=np.append(A.data[entries][others], 0.0))

            # The node leaves its group, so that going back is one choice among the others.
            volume[home] -= strength[k]
            gains = weights - strength[k] * volume[choices] / total
            best = int(gains.argmax())
            rounding = 1e-12 * strength[k]
            if gains[best] > gains[np.searchsorted(choices, home)] + rounding:  # else it stays
                group[k] = choices[best]
                moved += 1
            volume[group[k]] += strength[k]

        if moved <= CONVERGED * size:
            break
    return np.unique(group, return_inverse=True)[1]


def _contracted(A: scipy.sparse.csr_array, labels: Labels) -> scipy.sparse.csr_array:
    """The weights between the groups; on the diagonal, those inside a group, each link counted from
    both ends."""
    size = labels.size
    entries = np.ones(size), (np.arange(size), labels)
    belongs = scipy.sparse.csr_array(entries, shape=(size, labels.max() + 1))
    return scipy.sparse.csr_array(belongs.T @ A @ belongs)


def _groups(labels: Labels) -> list[set[int]]:
    groups: list[set[int]] = [set() for _ in range(labels.max() + 1)]
    for client, label in enumerate(labels.tolist()):
        groups[label].add(client)
    return groups
