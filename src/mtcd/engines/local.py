"""The in-process engine: all parties in one process, messages delivered in the order in which they
were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from mtcd.protocol.engine import Engine, Monitor
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.ledger.record import record
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.party import MONITOR, SERVER, Message, Part, Parties, Party, Progress
from mtcd.protocol.snapshots import EngineState
from mtcd.protocol.state import Snapshot


class InProcessEngine(Engine):
    """Reads parameters from the party objects, which do not change during an observation."""

    def __init__(self, parties: Parties, ledger: Ledger) -> None:
        self.parties, self.ledger = parties, ledger

    def parameters(self) -> list[Any]:
        return self.parties.parameters()

    def epoch_loss(self) -> EpochLoss | None:
        return self.parties.epoch_loss()


class LocalEngine(InProcessEngine):
    """Delivers message by message."""

    queue: Callable[[], deque[Message]] = deque
    """Makes the queue of messages under way. Tests use one that delivers in another order."""

    def __init__(self, parties: Parties, ledger: Ledger) -> None:
        super().__init__(parties, ledger)
        self.opening = parties.opening
        self.monitor = Monitor(len(parties.clients))

        self._ahead: dict[int, list[Message]] = {}
        self._observed: Sequence[Any] | None = None
        """The parameters of the latest observation, where clients reported them and may be ahead of
        it."""
        self._waiting: Sequence[Message] = ()
        self._outgoing: Sequence[Message] = ()
        self._report: Message | None = None
        """The latest report to the monitor, among those that are outgoing."""
        self._reached = 0
        self._due = 0.0
        """The observer needs no observation before this iteration."""

    def skip_to(self, iteration: float) -> None:
        self._due = iteration

    def run(self, pausing: bool = False) -> Iterator[Progress | None]:
        parties = self.receivers()
        waiting = self.queue()
        waiting.extend(self._waiting)
        self._waiting = waiting
        outgoing: Sequence[Message] = self.opening
        ledger, reports = self.ledger, self.monitor.reports

        # looked up once: this loop runs for every message, and a hop takes microseconds
        # all have the same kind
        transport = next((client.transport for client in self.parties.clients), None)
        hides = transport is not None and not transport.reads_objective
        listening = [listener.see for listener in self.listeners.values()]
        # of a training that is resumed
        self._record_ahead(self._reached)
        shown: Progress | None = None

        while True:
            self._outgoing = outgoing
            for message in outgoing:
                # the monitor is no party: what it is told costs nothing
                if message.to != MONITOR:
                    if transport is not None:
                        self._transport(message, parties)
                    if reports:
                        self._record(message)
                    else:
                        record(message, ledger)
                    for see in listening:
                        see(message)
                    waiting.append(message)
                elif isinstance(message.payload, Part):
                    # of a method in which no party has the whole model
                    progress = self.monitor.collect(message)
                    if progress is not None:
                        self._observed, self._report = progress.parameters, message
                        self._reached = progress.hop
                        yield progress
                        self._record_ahead(progress.hop)
                else:
                    # a lone token reports the same as progress
                    progress = cast(Progress, message.payload)
                    self._report = message
                    # The observer has this token already: it sees what the token is now, should it
                    # be interrupted, and needs no look at it yet.
                    if progress is shown and progress.hop < self._due:
                        continue

                    shown = progress
                    if hides:  # f does not follow from such a token: the parties are asked
                        progress = Progress(progress.hop, progress.t, None, 0.0)
                    yield progress
            if not waiting:
                return

            message = waiting.popleft()
            outgoing = parties[message.to].receive(message)  # type: ignore[union-attr]
            if pausing:
                yield None

    def receivers(self) -> dict[int, Party | None]:
        """The parties by their numbers, as they receive messages. A simulation takes their time."""
        return {**dict(enumerate(self.parties.clients)), SERVER: self.parties.server}

    def _transport(self, message: Message, parties: Mapping[int, Party | None]) -> None:
        """Encode and decode the arrays of the message, unless a party sends to itself."""
        sender, receiver = parties[message.sender], parties[message.to]
        if sender is not receiver and sender is not None and sender.transport is not None:
            message.payload = sender.transport.passed(message.payload, message.sender, message.to)

    def parameters(self) -> list[Any]:
        if self._observed is None:
            return super().parameters()
        return list(self._observed)  # clients may be ahead of what was observed

    def snapshot(self) -> Snapshot:
        """The parties, and the messages under way."""
        if self.parties.checkpointed is not None:
            return self.parties.checkpointed.snapshot()
        # messages before the report are under way already
        reported = next(i for i, message in enumerate(self._outgoing) if message is self._report)
        state = EngineState(
            [party.state() for party in self._parties()],
            self.monitor.state(),
            waiting=list(self._waiting),
            outgoing=list(self._outgoing[reported + 1 :]),
            ahead=self._ahead,
            observed=self._observed,
            reached=self._reached,
        )
        return state.snapshot()

    def resume(self, snapshot: Snapshot) -> None:
        if self.parties.checkpointed is not None:
            self.opening = self.parties.checkpointed.resume(snapshot)
            return
        state = EngineState.of(snapshot)
        for party, own in zip(self._parties(), state.parties, strict=True):
            party.restore(own)
        self.monitor.restore(state.monitor)
        self._waiting, self.opening = state.waiting, state.outgoing
        self._ahead, self._observed, self._reached = state.ahead, state.observed, state.reached

    def _parties(self) -> Sequence[Party]:
        server = self.parties.server
        if server is None:
            return self.parties.clients
        return [*self.parties.clients, server]

    def _record(self, message: Message) -> None:
        """Record a message; one of a client that is ahead of others is recorded after the pending
        observation."""
        # with its observation, the ledger must have only what was sent up to it
        iteration = self.monitor.ahead(message.sender)
        if iteration is None:
            record(message, self.ledger)
        else:
            self._ahead.setdefault(iteration, []).append(message)

    def _record_ahead(self, iteration: int) -> None:
        for message in self._ahead.pop(iteration, ()):
            record(message, self.ledger)
