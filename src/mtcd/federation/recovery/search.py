"""The ballots for the lone token: those of an initiator that searches for it, with the promises so far
and what follows from them; and those of other clients, as one client has answered them. See
``lone_token.py``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from mtcd.network.topology import Neighbours
from mtcd.protocol.codec.envelopes import Prepare, Promise, Terms
from mtcd.protocol.codec.stored import stored


class Decision(Enum):
    """The next action of the initiator."""

    WAIT = "wait"
    ELSEWHERE = "the token is elsewhere"
    PROBE = "probe"
    PREPARE = "prepare"
    REGENERATE = "regenerate the token"


@stored
@dataclass(slots=True)
class Search:
    """For a token that was passed to client ``to`` after ``hop`` visits.

    ``near``: all clients that ``to`` may have passed it to. ``witnesses``: the client that passed
    the token to the initiator, and those without which that client cannot regenerate it either;
    None if the token was created at the initiator.
    """

    hop: int
    to: int
    near: frozenset[int]
    witnesses: frozenset[int] | None
    ballot: int = 0
    binding: bool = False
    hops: dict[int, int] = field(default_factory=dict)
    """By client, the hop that it has promised for the current ballot."""
    down: dict[int, frozenset[int]] = field(default_factory=dict)
    """By client, those of its neighbours that are down, as it sees them. It outlives the ballot."""
    highest: int = 0  # every ballot is higher
    latest: dict[int, int] = field(default_factory=dict)
    """By client, the sequence number of its last promise: envelopes may arrive out of order."""

    def ask(self, ballot: int, binding: bool) -> None:
        """A new ballot: the promises to the last one do not count."""
        self.ballot, self.binding, self.hops = ballot, binding, {}

    def record(self, client: int, sequence: int, promise: Promise) -> None:
        """Record a promise, to this ballot or to an older one, unless a later one of the client is
        known."""
        if sequence < self.latest.get(client, sequence):
            return
        self.latest[client] = sequence
        self.down[client] = promise.down
        self.highest = max(self.highest, promise.highest)
        if promise.ballot == self.ballot:
            self.hops[client] = promise.hop

    def decision(self, neighbours: Neighbours) -> Decision:
        """The action that the promises allow."""
        if any(hop > self.hop for hop in self.hops.values()):
            return Decision.ELSEWHERE
        if self.binding and self.highest > self.ballot:
            return Decision.PREPARE
        if self.binding and self._suffice(self.hops):
            return Decision.REGENERATE
        unreachable = self.unreachable(neighbours)
        if self.binding:
            reachable = {k for k in range(len(neighbours)) if k not in unreachable}
            if self._suffice(reachable):
                return Decision.WAIT
            return Decision.PROBE

        promised = self.hops.keys() - unreachable
        agreed = self.to in unreachable or self.to in promised
        if agreed and self._suffice(promised):
            return Decision.PREPARE
        return Decision.WAIT

    def unreachable(self, neighbours: Neighbours) -> set[int]:
        """The clients that are down, as all of their neighbours that have answered see them."""
        reported: dict[int, bool] = {}
        for client, down in self.down.items():
            for k in neighbours[client]:
                reported[k] = k in down and reported.get(k, True)
        return {k for k, down in reported.items() if down}

    def missing(self, neighbours: Neighbours) -> list[frozenset[int]]:
        """The groups from each of which a promise is missing."""
        promised = self.hops.keys() - self.unreachable(neighbours)
        return [group for group in self._groups() if not group & promised]

    def _suffice(self, answered: Collection[int]) -> bool:
        """Whether the promises of these clients are a witness set. Why: see ``lone_token.py``."""
        return self.to in answered or all(
            not group.isdisjoint(answered) for group in self._groups()
        )

    def _groups(self) -> list[frozenset[int]]:
        one_by_one = [frozenset({k}) for k in sorted(self.near)]
        if self.witnesses is None:
            return one_by_one
        return [*one_by_one, self.witnesses]


class Promises:
    """The promises of one client."""

    state_fields = ("promised", "released", "highest")

    def __init__(self) -> None:
        self.promised: dict[int, tuple[Prepare, int]] = {}
        """Open ballots, by initiator; with the term that it knew."""
        self.released: dict[int, int] = {}
        """By initiator, its last ballot that is over."""
        self.highest = 0
        """The highest term, or binding ballot, known here."""

    def promise(self, initiator: int, prepare: Prepare, term: int, terms: Terms) -> bool:
        """Take note of a ballot of an initiator that knew ``term``. False if it is over, or an old
        one."""
        last = (
            self.promised[initiator][0].ballot
            if initiator in self.promised
            else self.released.get(initiator, 0)
        )
        if prepare.ballot <= last or is_superseded(prepare, term, terms):
            return False
        self.promised[initiator] = prepare, term
        if prepare.binding:
            self.highest = max(self.highest, prepare.ballot)
        return True

    def release(self, initiator: int, ballot: int) -> None:
        """The ballot is over, and all earlier ones of the initiator."""
        self.released[initiator] = max(self.released.get(initiator, ballot), ballot)
        if initiator in self.promised and self.promised[initiator][0].ballot <= ballot:
            del self.promised[initiator]

    def learn(self, terms: Terms) -> None:
        """These terms are known now: drop the ballots that they end."""
        self.highest = max(self.highest, *terms)
        kept = {}
        for k, (prepare, term) in self.promised.items():
            if not is_superseded(prepare, term, terms):
                kept[k] = prepare, term
        self.promised = kept

    def binding_hops(self) -> list[int]:
        """The hops of the binding ballots that are open."""
        return [prepare.hop for prepare, _ in self.promised.values() if prepare.binding]

    def is_bound_to(self, initiator: int) -> bool:
        """Whether a binding ballot of the initiator is open."""
        return initiator in self.promised and self.promised[initiator][0].binding


def is_superseded(prepare: Prepare, term: int, terms: Terms) -> bool:
    """Whether a ballot is over: it led to a term, or its initiator, which knew ``term``, was
    truncated by one."""
    for new, hop in terms.items():
        led_to_it = new >= prepare.ballot and hop <= prepare.hop
        truncated = new > term and hop < prepare.hop
        if led_to_it or truncated:
            return True
    return False
