"""Where is the token? What its last sender has been told so far, and what follows from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from enum import Enum

from mtcd.federation.delivery.envelopes import Promise
from mtcd.network.topology import Neighbours
from mtcd.schema.payloads import stored


class Decision(Enum):
    """What the one who asks does next."""

    WAIT = "wait"
    ELSEWHERE = "it goes on elsewhere"
    PROBE = "probe"
    PREPARE = "prepare"
    REGENERATE = "regenerate the token"


@stored
@dataclass(slots=True)
class Search:
    """For a token that was passed on to client ``to`` after ``hop`` visits.

    ``near``: all that ``to`` may have passed it on to. ``witnesses``: those without whom the one who passed the token
    to the initiator cannot make it anew either, and that one itself; None if the token was born at the initiator.
    """

    hop: int
    to: int
    near: frozenset[int]
    witnesses: frozenset[int] | None
    ballot: int = 0  # no mutants: the question sets it
    binding: bool = False  # no mutants: the question sets it
    hops: dict[int, int] = field(default_factory=dict)
    """What others have answered to the question as it is now."""
    down: dict[int, frozenset[int]] = field(default_factory=dict)
    """By client, those of its neighbours that it believes to be gone. Outlives the question."""
    highest: int = 0
    latest: dict[int, int] = field(default_factory=dict)
    """By client, the number of its last envelope with an answer: envelopes may come in another order than they went."""

    def ask(self, ballot: int, binding: bool) -> None:
        """A new question: the answers to the last one do not count."""
        self.ballot, self.binding, self.hops = ballot, binding, {}

    def hear(self, client: int, sequence: int, told: Promise) -> None:
        """An answer, to this question or to an older one, unless a later one was heard."""
        if sequence < self.latest.get(client, 0):
            return
        self.latest[client] = sequence
        self.down[client] = told.down
        self.highest = max(self.highest, told.highest)
        if told.ballot == self.ballot:
            self.hops[client] = told.hop

    def decision(self, neighbours: Neighbours) -> Decision:
        """What to do now."""
        if any(hop > self.hop for hop in self.hops.values()):
            return Decision.ELSEWHERE
        if self.binding and self.highest > self.ballot:
            return Decision.PREPARE
        if self.binding and self._suffice(self.hops):
            return Decision.REGENERATE
        gone = self.gone(neighbours)
        if self.binding:
            there = {k for k in range(len(neighbours)) if k not in gone}
            return Decision.WAIT if self._suffice(there) else Decision.PROBE
        there = self.hops.keys() - gone
        agreed = self.to in gone or self.to in there
        return Decision.PREPARE if agreed and self._suffice(there) else Decision.WAIT

    def gone(self, neighbours: Neighbours) -> set[int]:
        """Those whom all who were asked about them, and have answered, believe to be gone."""
        told: dict[int, bool] = {}
        for client, down in self.down.items():
            for k in neighbours[client]:
                told[k] = k in down and told.get(k, True)
        return {k for k, down in told.items() if down}

    def missing(self, neighbours: Neighbours) -> list[frozenset[int]]:
        """The groups from each of which an answer is missing."""
        heard = self.hops.keys() - self.gone(neighbours)
        return [group for group in self._groups() if not group & heard]

    def _suffice(self, answered: Collection[int]) -> bool:
        """Whether the answers of these allow for a decision. Why: see ``lone_token.py``."""
        return self.to in answered or all(not group.isdisjoint(answered) for group in self._groups())

    def _groups(self) -> list[frozenset[int]]:
        one_by_one = [frozenset({k}) for k in sorted(self.near)]
        return one_by_one if self.witnesses is None else [*one_by_one, self.witnesses]
