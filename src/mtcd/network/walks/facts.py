"""The theory of a walk, for ``mtcd inspect``, the planner and ``mtcd.theory``.

A walk whose next hop depends on the client alone is a Markov chain: its theory follows from the
chain. Other walks provide their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.core.mappings import positions
from mtcd.network.topology import Network, make_network


class Chain(NamedTuple):
    """A walk as a Markov chain.

    Parameters
    ----------
    P
        The transition matrix.
    share
        The stationary distribution: the share of its visits that each client has in the long run.
    """

    P: scipy.sparse.csr_array
    share: Array


class TourTimes(NamedTuple):
    """The times of a tour, in hops.

    Parameters
    ----------
    length
        Once around.
    wait
        The most between two visits of a client.
    cover
        The most until every client has been visited.
    """

    length: int
    wait: int
    cover: int


class Facts:
    """The theory of a walk inside some clients, which are numbered from 0 on, in their order.

    A subclass overrides what applies to it: ``chain`` or ``visits``, and ``tour`` if it is one.
    """

    no_mixing = ""
    """The reason why the walk has no mixing time, if it is neither a Markov chain on clients nor a
    tour."""

    def chain(self) -> Chain | None:
        """The walk as a Markov chain on the clients; None: it is not one."""
        return None

    def visits(self, start: Sequence[float], S: int) -> Array | None:
        """For each client, the probability of a visit among S, the first at a client drawn from
        ``start``.

        None: computed from the chain.
        """
        return None

    def visits_work(self, S: int) -> float | None:
        """Multiplications that ``visits`` takes, about. None: as many as the chain takes."""
        return None

    def takes_links(self, least: float) -> bool:
        """Whether every link is taken with at least this probability, which is 1/(1 + d_max) or
        less."""
        return False

    def tour(self) -> TourTimes | None:
        """The times of a tour; None: it is not one."""
        return None

    def hitting_time(self) -> float:
        """The largest expected number of hops from one client to another. Used with ``no_mixing``
        only: for other walks it follows from the chain."""
        return math.inf

    def hitting_work(self) -> float:
        """Multiplications that ``hitting_time`` takes, about."""
        return 0.0


class ChainFacts(Facts):
    """The theory of a walk that is a Markov chain on clients, from ``make``; ``every_link``: see
    ``takes_links``."""

    def __init__(self, make: Callable[[], Chain], every_link: bool = False) -> None:
        self._make = make
        self._every_link = every_link

    def chain(self) -> Chain:
        return self._make()

    def takes_links(self, least: float) -> bool:
        return self._every_link


Transitions = Callable[[int], Mapping[int, float] | None]
"""The probability of each next client of a client: see ``Walk.transitions``."""


class DeclaredFacts(Facts):
    """The theory of a walk that declares its transitions; ``name`` is for errors."""

    def __init__(
        self, name: str, transitions: Transitions, network: Network, clients: Sequence[int]
    ) -> None:
        self.name = name
        self.transitions = transitions
        self.network = network
        self.clients = clients

    @cached_property
    def rows(self) -> dict[int, Mapping[int, float]]:
        """The probability of each next client."""
        # Asked once: a declared walk may compute its row at every call.
        return {k: self.transitions(k) or {} for k in self.clients}

    def chain(self) -> Chain:
        """The chain, checked: rows are probabilities, hops are to neighbours."""
        place = positions(self.clients)
        entries = []
        for k, row in self.rows.items():
            self._check(k, row, place)
            entries += [(place[k], place[j], p) for j, p in row.items() if p > 0]

        here, there, p = zip(*entries, strict=True)
        P = scipy.sparse.csr_array((p, (here, there)), shape=(len(place), len(place)))
        return Chain(P, stationary(P))

    def _check(self, k: int, row: Mapping[int, float], inside: Container[int]) -> None:
        for j in row:
            if j not in inside or (j != k and j not in self.network.neighbours[k]):
                raise ConfigError(
                    f"{self.name}.transitions({k}) leads to client {j}, which is no neighbour "
                    f"inside the cluster: list only those and {k} itself."
                )

        if not all(p >= 0 for p in row.values()) or not math.isclose(sum(row.values()), 1.0):
            raise ConfigError(
                f"{self.name}.transitions({k}) must be probabilities, 0 or more, that add up to 1."
            )

    def takes_links(self, least: float) -> bool:
        least *= 1 - 1e-12  # it may be this very probability, rounded otherwise
        for k, row in self.rows.items():
            for j in self.network.neighbours[k]:
                if j in self.rows and not row.get(j, 0.0) >= least:
                    return False
        return True


def stationary(P: scipy.sparse.csr_array) -> Array:
    """The stationary distribution; zeros if the chain is not irreducible.

    share P = share, solved with the share of client 0 set to 1, and scaled.

    >>> stationary(scipy.sparse.csr_array(np.array([[0.5, 0.5], [1.0, 0.0]]))).round(3).tolist()
    [0.667, 0.333]
    """
    K, _ = P.shape
    if not is_irreducible(P):
        return np.zeros(K)

    # Without client 0 the system is regular: its share is fixed, and the scale follows.
    share = np.ones(K)
    back = scipy.sparse.csc_array(scipy.sparse.eye_array(K) - P.T)
    share[1:] = scipy.sparse.linalg.spsolve(back[1:, 1:], -back[1:, [0]].toarray().ravel())
    return np.asarray(share / share.sum())


def is_irreducible(P: scipy.sparse.csr_array) -> bool:
    """Whether the walk reaches every client from every other."""
    pieces = scipy.sparse.csgraph.connected_components(P, connection="strong", return_labels=False)
    return int(pieces) == 1


def inside(network: Network, clients: Sequence[int]) -> Network:
    """The subgraph of these clients."""
    K = network.size
    if len(clients) == K and clients[0] == 0 and clients[-1] == K - 1:
        return network

    names = tuple(network.clients[k] for k in clients)
    if network.complete:
        return make_network("complete", names)
    place = positions(clients)
    neighbours = []
    for k in clients:
        neighbours.append(tuple(place[j] for j in network.neighbours[k] if j in place))
    return Network(names, tuple(neighbours))


def checked_start(start: Sequence[float] | Array, K: int) -> Array:
    """The start distribution as an array; anything but one probability for each of K clients is
    rejected."""
    p = np.array(start, dtype=float)
    if p.shape != (K,):
        raise ConfigError(
            f"the start has {p.size} probabilities for {K} clients: give one for each client."
        )

    # NaN fails every comparison: what must hold is asked for.
    if not (p >= 0).all() or not math.isclose(p.sum(), 1.0):
        raise ConfigError(
            "the start must be probabilities, 0 or more, that add up to 1: divide them by their "
            "sum."
        )
    return p
