"""What a walk is: how a token picks its next client, and what is known of it. Each has a file here, or in a plugin.

Every walk uses only what a client may know: its neighbours and their degrees, its part of a table of routes,
and what the token tells of its way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from mtcd.errors import NetworkError
from mtcd.network.topology import Network
from mtcd.network.walks.declared import DeclaredFacts
from mtcd.network.walks.facts import Facts
from mtcd.registry import Registry

NOWHERE = -1


class Walk(ABC):
    """A policy for hops inside a cluster. Where it needs chance, the caller brings the draws."""

    needs_start = False
    """Whether ``next`` asks for the client that the token set out from."""
    shared = False
    """Whether one walk serves all tokens that may go anywhere: it depends on neither ``seed`` nor ``token``."""
    length: int | None = None
    """Of a tour: after so many hops it is back where it started, and has been everywhere."""
    repeats = False
    """Whether it is a tour that is the same every time: acceleration asks for that."""
    planned: Literal["candidate", "refinement"] | None = None
    """Whether ``mtcd plan`` tries it for a lone token: from the start, in place of a tour that is good, or never."""

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,  # no mutants: not used
        token: int = 0,  # no mutants: not used
    ) -> None:
        self._neighbours = network.neighbours
        self._within = None if within is None else frozenset(within)

    @abstractmethod
    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        """Where the token goes from ``client``.

        It came there from ``previous`` (NOWHERE at first), set out from ``start`` in iteration ``t``, and this
        is hop number ``hop`` since then, counted from 1. ``draw`` is uniform in [0, 1).
        """

    def transitions(self, client: int) -> Mapping[int, float] | None:
        """The probability of each next client, if it depends on ``client`` alone; None: not declared.

        The theory computes with what a walk of your own declares here, and says 'not known' of one that declares
        nothing. A subclass that overrides ``next`` must override this too: what it inherits no longer counts.
        """
        return None

    def facts(self, network: Network, clients: Sequence[int]) -> Facts | None:
        """What is known of the walk inside these clients, whatever the seed and the token; None: nothing.

        For walks of which more is known than ``transitions`` say. The same holds of subclasses: see ``facts_of``.
        """
        return None

    def repaired(self, network: Network, members: Sequence[int]) -> Walk:
        """The same walk over these clients, when some have left or joined."""
        return type(self)(network, members)

    def around(self, client: int) -> Walk:
        """The walk of the piece that the client is in."""
        return self

    def last_visits(self, start: int, hops: int) -> Mapping[int, int]:
        """Of a tour from ``start``: the hop after which each client is visited for the last time in so many."""
        raise NotImplementedError(f"{type(self).__name__} is no tour")

    def cover(self, start: int) -> int:
        """Of a tour: how many visits from ``start`` on it takes until all clients have had one, at most."""
        return self.length or 1

    def best_start(self) -> int:
        """Of a tour: the client from which all others are visited soonest."""
        raise NotImplementedError(f"{type(self).__name__} is no tour")

    def covers(self, client: int) -> bool:
        """Whether the token may ever get to this client."""
        return self._within is None or client in self._within

    def near(self, client: int) -> Sequence[int]:
        """Where the token may go from a client, if it cannot go where the walk leads."""
        return self._inside(client)

    def _inside(self, client: int) -> Sequence[int]:
        """The neighbours that the walk may go to."""
        if self._within is None:
            return self._neighbours[client]
        if client not in self._within:
            raise NetworkError(f"the walk is at client {client}, outside its cluster: start it inside")
        return [k for k in self._neighbours[client] if k in self._within]


WALKS: Registry[type[Walk]] = Registry(Walk, "mtcd.walks", "mtcd.network.walks", "unknown walk '{}':")


def make_walk(kind: str, network: Network, within: Iterable[int] | None = None, seed: int = 0, token: int = 0) -> Walk:
    """The walk called ``kind``, one of ``WALKS``; ``within`` is the cluster it may not leave."""
    return WALKS[kind](network, within, seed, token)


def facts_of(walk: Walk, network: Network, clients: Sequence[int]) -> Facts | None:
    """What is known of the walk inside these clients; None: nothing."""
    said = _source(walk)
    if said == "transitions":
        return DeclaredFacts(type(walk).__name__, walk.transitions, network, clients)
    return walk.facts(network, clients) if said == "facts" else None


def declares_transitions(walk: Walk) -> bool:
    """Whether what is known of the walk follows from the transitions that it declares."""
    return _source(walk) == "transitions"


def _source(walk: Walk) -> str | None:
    """Which method tells what is known: not one of a class whose ``next`` the walk overrides."""
    for cls in type(walk).__mro__:
        if cls is Walk:
            return None
        for said in ("facts", "transitions"):
            if said in vars(cls):
                return said
        if "next" in vars(cls):
            return None
    return None
