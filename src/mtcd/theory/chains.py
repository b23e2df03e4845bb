"""Walks whose next hop depends on the client alone: their transition matrices, where they are in the long run,
and how long they take from client to client."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import spsolve

from mtcd.errors import ConfigError
from mtcd.network.spectrum import adjacency
from mtcd.network.topology import Network
from mtcd.network.walks import LazyWalk, MetropolisWalk, Walk
from mtcd.theory.known import declares_transitions, hops_as

Array = NDArray[np.float64]


class Chain(NamedTuple):
    """A walk as a Markov chain: the transition matrix P, and the share of time at each client in the long run."""

    P: sp.csr_array
    share: Array


def inside(network: Network, clients: Sequence[int]) -> Network:
    """The network of these clients alone: who can talk to whom without leaving them."""
    if len(clients) == network.size and clients[0] == 0 and clients[-1] == network.size - 1:  # no mutants: only time
        return network
    place = {k: i for i, k in enumerate(clients)}
    near = (tuple(place[j] for j in network.neighbours[k] if j in place) for k in clients)
    return Network(tuple(network.clients[k] for k in clients), tuple(near))


def lazy_walk(network: Network) -> sp.csr_array:
    """P of the paper's walk: P_kj = 1/(1 + degree_k) for j = k and for every neighbour j.

    For a cluster: ``lazy_walk(inside(network, cluster))``.

    >>> from mtcd.network.topology import make_network
    >>> lazy_walk(make_network("path", ["a", "b", "c"])).toarray().round(2).tolist()
    [[0.5, 0.5, 0.0], [0.33, 0.33, 0.33], [0.0, 0.5, 0.5]]
    """
    may_go = adjacency(network) + sp.eye_array(network.size)
    return sp.csr_array(sp.diags_array(1.0 / may_go.sum(axis=1)) @ may_go)


def metropolis_walk(network: Network) -> sp.csr_array:
    """P of the Metropolis walk: P_kj = 1/max(degree_k, degree_j) for neighbours; for the rest the token stays.

    >>> from mtcd.network.topology import make_network
    >>> metropolis_walk(make_network("path", ["a", "b", "c"])).toarray().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    links = sp.coo_array(adjacency(network))
    degrees = np.array([len(near) for near in network.neighbours])
    here, there = links.coords
    links.data = 1.0 / np.maximum(degrees[here], degrees[there])
    refused = np.maximum(1.0 / degrees[here] - links.data, 0.0)  # summed up, so that no rounding makes a 0 into more
    stays = (degrees == 0) + np.bincount(here, weights=refused, minlength=network.size).astype(float)
    P = sp.csr_array(links + sp.diags_array(stays))
    P.eliminate_zeros()
    return P


def lazy_chain(network: Network) -> Chain:
    """The lazy walk: in the long run at client k for a share (1 + degree_k) / sum over j of (1 + degree_j).

    >>> from mtcd.network.topology import make_network
    >>> lazy_chain(make_network("path", ["a", "b", "c"])).share.round(3).tolist()
    [0.286, 0.429, 0.286]
    """
    choices = np.array([1.0 + len(near) for near in network.neighbours])
    return Chain(lazy_walk(network), choices / choices.sum())


def metropolis_chain(network: Network) -> Chain:
    """The Metropolis walk: in the long run equally often at every client."""
    return Chain(metropolis_walk(network), np.full(network.size, 1.0 / network.size))


def chain_of(network: Network, clients: Sequence[int], walk: Walk) -> Chain | None:
    """The walk inside these clients as a Markov chain on them; None if it is not one, or not known."""
    if hops_as(walk, LazyWalk):
        return lazy_chain(inside(network, clients))
    if hops_as(walk, MetropolisWalk):
        return metropolis_chain(inside(network, clients))
    return declared_chain(network, clients, walk) if declares_transitions(walk) else None


def declared_chain(network: Network, clients: Sequence[int], walk: Walk) -> Chain:
    """The chain that a walk declares by ``transitions``, checked: rows are probabilities, hops are to neighbours."""
    place, who = {k: i for i, k in enumerate(clients)}, type(walk).__name__
    rows: list[tuple[int, int, float]] = []
    for k in clients:
        row = walk.transitions(k) or {}
        far = [j for j in row if j not in place or (j != k and j not in network.neighbours[k])]
        if far:
            raise ConfigError(
                f"{who}.transitions({k}) leads to client {far[0]}, which is no neighbour inside the cluster: list "
                f"only those and {k} itself."
            )
        if not all(p >= 0 for p in row.values()) or not abs(sum(row.values()) - 1.0) < 1e-9:
            raise ConfigError(f"{who}.transitions({k}) must be probabilities, 0 or more, that add up to 1.")
        rows += [(place[k], place[j], p) for j, p in row.items() if p > 0]
    here, there, p = zip(*rows, strict=True)
    P = sp.csr_array((p, (here, there)), shape=(len(place), len(place)))
    return Chain(P, stationary(P))


def stationary(P: sp.csr_array) -> Array:
    """The share of time at each client in the long run; zeros if the walk does not get from everywhere to everywhere.

    share P = share, solved with the share of client 0 set to 1, and scaled.

    >>> stationary(sp.csr_array(np.array([[0.5, 0.5], [1.0, 0.0]]))).round(3).tolist()
    [0.667, 0.333]
    """
    K = P.shape[0]
    if not in_one_piece(P):
        return np.zeros(K)
    share = np.ones(K)
    if K > 1:
        back = sp.csc_array(sp.eye_array(K) - P.T)
        share[1:] = spsolve(back[1:, 1:], -back[1:, [0]].toarray().ravel())
    return np.asarray(share / share.sum())


def in_one_piece(P: sp.csr_array) -> bool:
    """Whether the walk gets from every client to every other."""
    return int(connected_components(P, connection="strong", return_labels=False)) == 1


def longest_hitting_time(chain: Chain) -> float:
    """The hops, on average, from one client to another, for the pair that takes longest.

    With the fundamental matrix Z = (I - P + 1 share^T)^-1 they are (Z_jj - Z_kj)/share_j from k to j. Infinite
    where the network is in pieces.
    """
    P, share = chain
    if not in_one_piece(P):
        return math.inf
    Z = np.linalg.inv(np.eye(share.size) - P.toarray() + share)
    return float(((Z.diagonal() - Z) / share).max())


def cover_bound(hitting_time: float, K: int) -> float:
    """The hops, on average, until all K clients have been visited are at most this many, wherever a walk starts.

    Matthews' bound: the longest hitting time times 1 + 1/2 + ... + 1/(K - 1).

    >>> cover_bound(10.0, 4)
    18.333333333333332
    """
    return hitting_time * sum(1.0 / k for k in range(1, K)) if K > 1 else 0.0
