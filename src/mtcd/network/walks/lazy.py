"""The paper's walk: the token stays or moves to a neighbour, each with the same probability."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.network.spectrum import adjacency
from mtcd.network.topology import Network
from mtcd.network.walks.facts import Chain, ChainFacts, Facts, inside
from mtcd.network.walks.walk import WALKS, Walk


@WALKS.register("lazy")
class LazyWalk(Walk):
    """The paper's walk: uniform over the neighbours and the client itself."""

    shared = True
    planned = "candidate"

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,
        token: int = 0,
    ) -> None:
        super().__init__(network, within)
        self._choices: dict[int, Sequence[int]] = {}
        """Of the clients seen so far."""

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        # Quicker than asking first: nearly every hop is to a client seen before.
        try:
            choices = self._choices[client]
        except KeyError:
            choices = self._choices[client] = self._choices_of(client)
        return choices[int(draw * len(choices))]

    def _choices_of(self, client: int) -> Sequence[int]:
        # All clients: a range takes no memory, a tuple for each of 10,000 clients takes 800 MB.
        if self._within is None and len(self._neighbours[client]) == len(self._neighbours) - 1:
            return range(len(self._neighbours))
        # Sorted with the client itself among them: a draw means the same client in every process.
        return tuple(sorted({client, *self._inside(client)}))

    def facts(self, network: Network, clients: Sequence[int]) -> Facts:
        return ChainFacts(lambda: lazy_chain(inside(network, clients)), every_link=True)


def lazy_chain(network: Network) -> Chain:
    """P_kj = 1/(1 + degree_k) for j = k and for every neighbour j; in the long run at client k for
    a share (1 + degree_k) / sum over j of (1 + degree_j).

    For a cluster: ``lazy_chain(inside(network, cluster))``.

    >>> from mtcd.network.topology import make_network
    >>> chain = lazy_chain(make_network("path", ["a", "b", "c"]))
    >>> chain.P.toarray().round(2).tolist()
    [[0.5, 0.5, 0.0], [0.33, 0.33, 0.33], [0.0, 0.5, 0.5]]
    >>> chain.share.round(3).tolist()
    [0.286, 0.429, 0.286]
    """
    choices = 1.0 + np.array(list(map(len, network.neighbours)))
    may_go = adjacency(network) + scipy.sparse.eye_array(network.size)
    P = scipy.sparse.csr_array(scipy.sparse.diags_array(1.0 / choices) @ may_go)
    # Detailed balance, pi_k P_kj = pi_j P_jk, holds with pi_k proportional to 1 + degree_k.
    return Chain(P, choices / choices.sum())
