"""The interface of walks: the choice of a token's next client, and its theory. Each walk has a file
here, or a plugin.

A walk uses local information only: the neighbours of a client and their degrees, its part of a
routing table, and the position that the token carries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Literal

from mtcd.core.errors import NetworkError, listing
from mtcd.core.registry import Registry
from mtcd.network.topology import Network
from mtcd.network.walks.facts import DeclaredFacts, Facts

NOWHERE = -1  # any number that is no client
PACKAGE = __name__.partition(".")[0]


def _checked(following: Callable[..., int]) -> Callable[..., int]:
    """``next`` of a walk, which refuses a hop that follows no link."""

    @wraps(following)
    def checked(walk: Walk, client: int, *where: Any) -> int:
        to = following(walk, client, *where)
        if to != client and to not in walk._neighbours[client]:
            raise NetworkError(
                f"The walk {type(walk).__name__} goes from client {client} to {to!r}, which is "
                f"neither a neighbour ({listing(walk._neighbours[client])}) nor client {client} "
                "itself: correct its next()."
            )
        return to

    return checked


class Walk(ABC):
    """A policy for hops inside a cluster. The caller provides the random draws.

    Parameters
    ----------
    network
        The clients and their links.
    within
        The cluster that the walk may not leave; without it, all clients.
    seed, token
        What a walk may draw a plan of its own from, as random tours do.

    Examples
    --------
    >>> from mtcd.network.topology import make_network
    >>> walk = make_walk("lazy", make_network("path", ["a", "b", "c"]))
    >>> walk.next(0, previous=NOWHERE, start=0, t=0, hop=1, draw=0.7)
    1
    """

    needs_start = False
    """Whether ``next`` uses the start of the token."""
    shared = False
    """Whether all tokens of the whole network can share one walk: it depends on neither ``seed``
    nor ``token``."""
    length: int | None = None
    """The hops of a tour, after which it has visited all clients and is back at its start; None: no
    tour."""
    repeats = False
    """Whether it is a tour that is the same every time, as acceleration requires."""
    planned: Literal["candidate", "refinement"] | None = None
    """When ``mtcd plan`` tries it for a lone token: as a candidate, as a refinement of a good tour,
    or never (None)."""

    def __init__(
        self,
        network: Network,
        within: Iterable[int] | None = None,
        seed: int = 0,
        token: int = 0,
    ) -> None:
        self._neighbours = network.neighbours
        # None for all clients: the common case is then answered without a look into a set.
        self._within: frozenset[int] | None = None
        if within is not None:
            self._within = frozenset(within)

    def __init_subclass__(cls) -> None:
        """Check the hops of walks of one's own; those of the package are tested."""
        super().__init_subclass__()
        # Their price would be paid at every hop, and a hop of the package follows a link by its
        # tests.
        if "next" in vars(cls) and cls.__module__.partition(".")[0] != PACKAGE:
            setattr(cls, "next", _checked(cls.next))  # noqa: B010

    @abstractmethod
    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        """The client that follows ``client``.

        Parameters
        ----------
        client
            Where the token is.
        previous
            Where it was before; NOWHERE at first.
        start
            The first client of this iteration.
        t
            The iteration.
        hop
            The number of this hop in it, counted from 1.
        draw
            A uniform number in [0, 1).
        """

    def transitions(self, client: int) -> Mapping[int, float] | None:
        """The probability of each next client, if it depends on ``client`` alone; None: not
        declared.

        The theory is computed from these; of a walk without them it says 'not known'. A subclass
        that overrides ``next`` must override this too: inherited transitions are ignored.
        """
        return None

    def facts(self, network: Network, clients: Sequence[int]) -> Facts | None:
        """The theory of the walk inside these clients, for all seeds and tokens; None: not known.

        For walks of which more is known than ``transitions``. For subclasses the same holds: see
        ``facts_of``.
        """
        return None

    def repaired(self, network: Network, members: Sequence[int]) -> Walk:
        """The same walk over these clients, when some have left or joined."""
        return type(self)(network, members)

    def around(self, client: int) -> Walk:
        """The walk of the component that contains the client."""
        return self

    def last_visits(self, start: int, hops: int) -> Mapping[int, int]:
        """Of a tour from ``start``: for each client the hop after which it has its last visit
        within ``hops``."""
        raise NotImplementedError(f"{type(self).__name__} is no tour")

    def cover(self, start: int) -> int:
        """Of a tour: the most visits from ``start`` on until all clients have been visited."""
        return self.length or 1

    def best_start(self) -> int:
        """Of a tour: the client from which all others are visited soonest."""
        raise NotImplementedError(f"{type(self).__name__} is no tour")

    def covers(self, client: int) -> bool:
        """Whether the walk may visit this client."""
        return self._within is None or client in self._within

    def near(self, client: int) -> Sequence[int]:
        """The alternatives at a client, if the next client of the walk is down."""
        return self._inside(client)

    def _inside(self, client: int) -> Sequence[int]:
        """The neighbours inside the cluster."""
        if self._within is None:
            return self._neighbours[client]
        if client not in self._within:
            raise NetworkError(
                f"the walk is at client {client}, outside its cluster: start it inside"
            )
        return [k for k in self._neighbours[client] if k in self._within]


WALKS: Registry[type[Walk]] = Registry(
    Walk, "mtcd.walks", "mtcd.network.walks", "unknown walk '{}':"
)


def make_walk(
    kind: str, network: Network, within: Iterable[int] | None = None, seed: int = 0, token: int = 0
) -> Walk:
    """The walk called ``kind``, one of ``WALKS``; ``within`` is the cluster it may not leave."""
    return WALKS[kind](network, within, seed, token)


def facts_of(walk: Walk, network: Network, clients: Sequence[int]) -> Facts | None:
    """The theory of the walk inside these clients; None: not known."""
    source = _source(walk)
    if source == "transitions":
        return DeclaredFacts(type(walk).__name__, walk.transitions, network, clients)
    if source == "facts":
        return walk.facts(network, clients)
    return None


def declares_transitions(walk: Walk) -> bool:
    """Whether the theory of the walk follows from the transitions that it declares."""
    return _source(walk) == "transitions"


def _source(walk: Walk) -> str | None:
    """The method that provides the theory: not one of a class whose ``next`` the walk overrides."""
    # From the class outwards: an override of ``next`` makes what is inherited untrue.
    for cls in type(walk).__mro__:
        if cls is Walk:
            return None
        for name in ("facts", "transitions"):
            if name in vars(cls):
                return name
        if "next" in vars(cls):
            return None
    return None
