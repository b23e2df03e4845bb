"""The end of a training: what is told to all, and what a party makes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mtcd.divergence import DIVERGED
from mtcd.federation.delivery.envelopes import End, Envelope
from mtcd.methods.hosting import TokenHost
from mtcd.methods.optimal_parties import OptimalClient
from mtcd.methods.svfl import SVFLServer
from mtcd.methods.token_parties import TokenServer
from mtcd.protocol.party import MONITOR, Message, Part, Party


def end_at(told: Any, status: str, party: Party) -> End:
    """The end at a moment that the monitor is told of: progress, a lone token, or one's part of it."""
    if isinstance(told, Part):
        return End(status, 0, told.iteration)
    return End(status, told.t, told.hop, getattr(party, "past", {}))


def end_now(party: Party, status: str) -> End | None:
    """The end at the last sync, whatever is under way; only a server knows of it."""
    if isinstance(party, TokenServer):
        return End(status, party.t, party.t * (party.plan.hops or 1), getattr(party, "past", {}))
    return End(status, party.round, party.round) if isinstance(party, SVFLServer) else None


def settle(party: Party, end: End) -> None:
    """Hold the model of that moment."""
    if isinstance(party, OptimalClient):
        party.adopt(end.t, end.past)
    elif isinstance(party, TokenHost) and party.t != end.t:
        party.settle(end.t)


Limit = Callable[[Any], str | None]
"""Given what the monitor is told, progress or a lone token: the status with which the training ends there, or None."""


Judge = Callable[[Any, str], str]
"""Given that and a status, the same status; or that it has diverged, if that can be told."""


class Ending(ABC):
    """A party that knows when it is over, and tells the others."""

    near: frozenset[int] | None = None
    """Its neighbours, where there is no server: the end goes from each to the next, so that nobody depends on others
    who may have left. Without them it is told to all."""

    def __init__(self, number: int, party: Party, clients: int) -> None:
        self.number, self.party, self.clients = number, party, clients
        self.outbox: dict[tuple[int, int], Envelope] = {}
        self.down: frozenset[int] = frozenset()
        """Whom the links believe to be gone. Only a hint where to send tokens: to be wrong does no harm."""
        self.limit: Limit = lambda told: None
        self.judge: Judge = lambda told, status: status
        self.finishing: tuple[str, int] | None = None
        """The status with which to end at the next moment, from so many hops on."""
        self.ended: End | None = None
        self.ended_here = False
        """Whether it was this party that ended it."""

    @abstractmethod
    def put(self, message: Message, iteration: int) -> Envelope:
        """Into the outbox."""

    @abstractmethod
    def commit(self) -> None:
        """Write all down."""

    def finish(self, status: str) -> None:
        """Somebody asks to stop: at the next moment that this party tells the monitor of.

        If that may never come, as somebody is gone, the server does not wait for it. Nor does anybody if what it has to
        send is not finite: that is never sent, and as nobody keeps a block then, the moment does not matter.
        """
        end = end_now(self.party, status) if self.down or status == DIVERGED else None
        if end is None and status == DIVERGED:
            end = End(status, 0, getattr(self.party, "iteration", 0))
        if self.ended is not None:
            return
        if end is None:
            self.finishing = status, 0
        else:
            self.end(end)
        self.commit()

    def until_end(self, messages: list[Message]) -> tuple[list[Message], End | None]:
        """The messages up to the first that tells of a moment at which the training ends, and that end."""
        for count, message in enumerate(messages, 1):
            if message.to == MONITOR:
                told, status = message.payload, self.limit(message.payload)
                if status is None and self.finishing is not None:
                    status = self.finishing[0] if end_at(told, "", self.party).hop >= self.finishing[1] else None
                if status is not None:
                    return messages[:count], end_at(told, self.judge(told, status), self.party)
        return messages, None

    def end(self, end: End) -> None:
        """It is over, and the others are told."""
        self.ended, self.ended_here = end, True
        others = (k for k in range(self.clients) if k != self.number)
        self.tell_end(others if self.near is None else self.near)

    def turn_out(self, status: str) -> None:
        """It is known only now how the training ended."""
        if self.ended is not None:
            self.ended = replace(self.ended, status=status)
            self.commit()

    def tell_end(self, to: Iterable[int]) -> None:
        """Unless they are being told."""
        being_told = {envelope.to for envelope in self.outbox.values() if isinstance(envelope.message.payload, End)}
        for k in to:
            if self.ended is not None and k not in being_told:
                self.put(Message(self.number, k, self.ended), self.ended.t)

    def hear_end(self, end: End, teller: int) -> None:
        """Another party says that it is over."""
        if self.ended is None:
            settle(self.party, end)
            self.ended = end
            self.tell_end((self.near or frozenset()) - {teller})
