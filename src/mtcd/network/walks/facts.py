"""The theory of a walk, for ``mtcd inspect``, the planner and ``mtcd.theory``.

A walk whose next hop depends on the client alone is a Markov chain: its theory follows from the
chain. Other walks provide their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.network.topology import Network, make_network


class Chain(NamedTuple):
    """A walk as a Markov chain: the transition matrix P, and its stationary distribution
    (``share``)."""

    P: scipy.sparse.csr_array
    share: Array


class TourTimes(NamedTuple):
    """The times of a tour, in hops: its length, the most between two visits of a client, and the
    most until every client has been visited."""

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
        self._make, self._every_link = make, every_link

    def chain(self) -> Chain:
        return self._make()

    def takes_links(self, least: float) -> bool:
        return self._every_link


def inside(network: Network, clients: Sequence[int]) -> Network:
    """The subgraph of these clients."""
    if (
        len(clients) == network.size and clients[0] == 0 and clients[-1] == network.size - 1
    ):  # no mutants: only time
        return network
    names = tuple(network.clients[k] for k in clients)
    if network.complete:
        return make_network("complete", names)
    place = {k: i for i, k in enumerate(clients)}
    near = (tuple(place[j] for j in network.neighbours[k] if j in place) for k in clients)
    return Network(names, tuple(near))


def checked_start(start: Sequence[float] | Array, K: int) -> Array:
    """The start distribution as an array; anything but one probability for each of K clients is
    rejected."""
    p = np.array(start, dtype=float)
    if p.shape != (K,):
        raise ConfigError(
            f"the start has {p.size} probabilities for {K} clients: give one for each client."
        )
    if not (p >= 0).all() or not abs(p.sum() - 1.0) < 1e-9:
        raise ConfigError(
            "the start must be probabilities, 0 or more, that add up to 1: divide them by their "
            "sum."
        )
    return p
