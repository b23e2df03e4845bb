"""How a token picks its next client. A walk is a part that can be swapped."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence

from mtcd.errors import ConfigError, NetworkError, did_you_mean
from mtcd.network.topology import Network


class Walk(ABC):
    """A policy for hops. It has no randomness of its own: the caller brings the draws."""

    @abstractmethod
    def next(self, client: int, draw: float) -> int:
        """Where the token goes from ``client``; ``draw`` is uniform in [0, 1)."""


class LazyWalk(Walk):
    """The paper's walk: uniform over the neighbours and the client itself.

    ``within`` is the cluster that the walk may not leave.
    """

    def __init__(self, network: Network, within: Iterable[int] | None = None):
        self._neighbours = network.neighbours
        self._within = None if within is None else frozenset(within)
        self._choices: dict[int, Sequence[int]] = {}  # of the clients seen so far

    def next(self, client: int, draw: float) -> int:
        """The choice number floor(draw * n) of the n that ``client`` has."""
        try:
            choices = self._choices[client]
        except KeyError:
            choices = self._choices[client] = self._choices_of(client)
        return choices[int(draw * len(choices))]

    def _choices_of(self, client: int) -> Sequence[int]:
        if self._within is None and len(self._neighbours[client]) == len(self._neighbours) - 1:
            return range(len(self._neighbours))  # everybody: nothing to store
        choices = {client, *self._neighbours[client]}
        if self._within is not None:
            if client not in self._within:
                raise NetworkError(f"the walk is at client {client}, outside its cluster: start it inside")
            choices &= self._within
        return tuple(sorted(choices))


WALKS: dict[str, Callable[[Network, Iterable[int] | None], Walk]] = {"lazy": LazyWalk}


def make_walk(kind: str, network: Network, within: Iterable[int] | None = None) -> Walk:
    """The walk called ``kind``, one of ``WALKS``; ``within`` is the cluster it may not leave."""
    if kind not in WALKS:
        raise ConfigError(f"unknown walk '{kind}': {did_you_mean(kind, WALKS)}")
    return WALKS[kind](network, within)
