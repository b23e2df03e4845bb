"""The Metropolis walk, whose stationary distribution is uniform."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.network.spectrum import adjacency
from mtcd.network.topology import Network
from mtcd.network.walks.facts import Chain, ChainFacts, Facts, inside
from mtcd.network.walks.walk import WALKS, Walk


@WALKS.register("metropolis")
class MetropolisWalk(Walk):
    """The walk with a uniform stationary distribution.

    A neighbour j is proposed uniformly, and accepted with probability min(1, degree_k / degree_j).
    """

    shared = True

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        near = self._inside(client)
        if not near:
            return client

        proposed = near[int(draw * len(near))]

        # What is left of the draw, once it has chosen a neighbour, is uniform again: one draw per
        # hop is all that a token carries.
        left_over = draw * len(near) % 1.0
        if left_over * len(self._inside(proposed)) < len(near):
            return proposed
        return client

    def facts(self, network: Network, clients: Sequence[int]) -> Facts:
        return ChainFacts(lambda: metropolis_chain(inside(network, clients)), every_link=True)


def metropolis_chain(network: Network) -> Chain:
    """P_kj = 1/max(degree_k, degree_j) for neighbours; for the rest the token stays.

    >>> from mtcd.network.topology import make_network
    >>> metropolis_chain(make_network("path", ["a", "b", "c"])).P.toarray().tolist()
    [[0.5, 0.5, 0.0], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]
    """
    links = scipy.sparse.coo_array(adjacency(network))
    degrees = np.array(list(map(len, network.neighbours)))
    here, there = links.coords
    links.data = 1.0 / np.maximum(degrees[here], degrees[there])

    # What is refused is summed up: 1 less the row would make a 0 into a rounding error.
    refused = 1.0 / degrees[here] - links.data
    stays = np.bincount(here, weights=refused, minlength=network.size).astype(float)
    # A client without neighbours has no link that could refuse: it stays for certain.
    stays += degrees == 0

    P = scipy.sparse.csr_array(links + scipy.sparse.diags_array(stays))
    # Links that are never refused would be stored as hops to the same client with probability 0.
    P.eliminate_zeros()
    return Chain(P, np.full(network.size, 1.0 / network.size))
