"""The theory of walks that declare their transitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.network.topology import Network
from mtcd.network.walks.facts import Chain, Facts

Transitions = Callable[[int], Mapping[int, float] | None]


class DeclaredFacts(Facts):
    """The theory of the walk ``name``, from its ``transitions``."""

    def __init__(
        self, name: str, transitions: Transitions, network: Network, clients: Sequence[int]
    ) -> None:
        self.name, self.transitions, self.network, self.clients = (
            name,
            transitions,
            network,
            clients,
        )

    @cached_property
    def rows(self) -> dict[int, Mapping[int, float]]:
        """The probability of each next client."""
        return {k: self.transitions(k) or {} for k in self.clients}

    def chain(self) -> Chain:
        """The chain, checked: rows are probabilities, hops are to neighbours."""
        place, rows = {k: i for i, k in enumerate(self.clients)}, []
        for k, row in self.rows.items():
            far = [
                j for j in row if j not in place or (j != k and j not in self.network.neighbours[k])
            ]
            if far:
                raise ConfigError(
                    f"{self.name}.transitions({k}) leads to client {far[0]}, which is no neighbour "
                    f"inside the cluster: "
                    f"list only those and {k} itself."
                )
            if not all(p >= 0 for p in row.values()) or not abs(sum(row.values()) - 1.0) < 1e-9:
                raise ConfigError(
                    f"{self.name}.transitions({k}) must be probabilities, 0 or more, that add up "
                    f"to 1."
                )
            rows += [(place[k], place[j], p) for j, p in row.items() if p > 0]
        here, there, p = zip(*rows, strict=True)
        P = scipy.sparse.csr_array((p, (here, there)), shape=(len(place), len(place)))
        return Chain(P, stationary(P))

    def takes_links(self, least: float) -> bool:
        links = ((k, j) for k in self.rows for j in self.network.neighbours[k] if j in self.rows)
        return all(j in self.rows[k] and self.rows[k][j] >= least * (1 - 1e-12) for k, j in links)


def stationary(P: scipy.sparse.csr_array) -> Array:
    """The stationary distribution; zeros if the chain is not irreducible.

    share P = share, solved with the share of client 0 set to 1, and scaled.

    >>> stationary(scipy.sparse.csr_array(np.array([[0.5, 0.5], [1.0, 0.0]]))).round(3).tolist()
    [0.667, 0.333]
    """
    K, _ = P.shape
    if not is_irreducible(P):
        return np.zeros(K)
    share = np.ones(K)
    back = scipy.sparse.csc_array(scipy.sparse.eye_array(K) - P.T)
    share[1:] = scipy.sparse.linalg.spsolve(back[1:, 1:], -back[1:, [0]].toarray().ravel())
    return np.asarray(share / share.sum())


def is_irreducible(P: scipy.sparse.csr_array) -> bool:
    """Whether the walk reaches every client from every other."""
    pieces = scipy.sparse.csgraph.connected_components(P, connection="strong", return_labels=False)
    return int(pieces) == 1
