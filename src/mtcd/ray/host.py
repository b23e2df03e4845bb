"""A host: parties in one process. It delivers messages among them, and sends the others to the
hosts of the receivers.

Messages among the parties of a host never leave its process. A party that reports progress to the
monitor, when an observation is due, is *held*: messages that follow are withheld until the driver
releases it. There is no other token under way then, so the states of all hosts are those of one
moment. Where every client reports its own part of an iteration, each is held at that iteration, and
the host reports when all of its clients are held.

A host has one working thread; calls from outside fill its queue. It does not import Ray.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from queue import SimpleQueue
from threading import Event, Lock, Thread
from typing import Any, NamedTuple

import numpy as np

from mtcd.protocol.engine import HostedShare, Recorder
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.ledger.record import record
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.party import MONITOR, Message, Part, Party, Progress
from mtcd.ray import portable

Send = Callable[[int, int, float, bytes], None]
"""Host number, term, due iteration, pickled messages."""


NOBODY = -3  # the number of no party: holds the messages with which a host continues


class Report(NamedTuple):
    """What a host tells the driver: progress, the parts of its clients, or the error that stopped
    it."""

    term: int
    progress: Progress | None = None
    parts: Mapping[int, Part] | None = None
    error: BaseException | None = None


@dataclass
class HostState:
    """The state of a host at an observation, when nothing is under way."""

    parties: dict[int, dict[str, Any]]
    waiting: list[Message] = field(default_factory=list)
    """Messages that are sent and recorded, but not delivered."""
    outgoing: list[Message] = field(default_factory=list)
    """Messages to send: the parties returned them after the report."""
    ledger: Ledger = field(default_factory=Ledger)


class Host:
    """The parties of a share, in this process."""

    def __init__(
        self, share: HostedShare, number: int, clients: Sequence[int], server: int | None
    ) -> None:
        self.share = share
        self.number = number
        self.clients = tuple(clients)
        self.server = server
        self.reports: SimpleQueue[Report] = SimpleQueue()
        self._parties: dict[int, Party] = {}
        self._queue: deque[Message] = deque()
        self._wake = Event()
        self._lock = Lock()
        self._running = self._closed = False
        self._term = -1
        self._due = 0.0
        self.ledger = Ledger()
        self._recorders: list[Recorder] = []
        self._send_abroad: Send
        self._routes: Mapping[int, int] = {}
        self._held: dict[int, Sequence[Message]] = {}
        self._deferred: list[Message] = []
        self._parts: dict[int, Part] = {}
        self._made = self._make()
        self._fresh = True
        # a daemon: an actor that is to end must not wait for a training
        Thread(target=self._work, daemon=True).start()

    def _make(self) -> Any:
        """The parties of this host, as they start."""
        made = self.share.parties()
        self._parties = {k: made.clients[k] for k in self.clients}
        if self.server is not None:
            assert made.server is not None
            self._parties[self.server] = made.server

        # all parties have the same one
        transport = next((party.transport for party in self._parties.values()), None)
        self._hides = transport is not None and not transport.reads_objective
        return made

    def prepare(
        self,
        term: int,
        send: Send,
        routes: Mapping[int, int],
        due: float,
        state: HostState | None,
        float_bytes: int = 8,
        recorders: Sequence[Callable[[], Recorder]] = (),
    ) -> None:
        """Stop what is under way, and continue from this state (None: from the start) when
        released. ``recorders`` make those who see every message that is sent here."""
        self._running = False
        with self._lock:
            self._term = term
            self._send_abroad = send
            self._routes = routes
            self._due = due
            self._queue.clear()
            self._held = {}
            self._deferred = []
            self._parts = {}
            self._recorders = [make() for make in recorders]
            if state is None:
                self._begin(float_bytes)
            else:
                self._continue_from(state)
            self._fresh = False
            self._running = True

    def _begin(self, float_bytes: int) -> None:
        """From the start, when released: with the messages that open the training."""
        if not self._fresh:  # parties that have trained are of no use
            self._made = self._make()
        opening = [message for message in self._made.opening if message.sender in self._parties]
        self._held = {NOBODY: opening}
        self.ledger = Ledger(float_bytes=float_bytes)

    def _continue_from(self, state: HostState) -> None:
        for number, one in state.parties.items():
            self._parties[number].restore(one)
        self._deferred = state.waiting
        self._held = {NOBODY: state.outgoing}
        self.ledger = state.ledger

    def close(self) -> None:
        """End the working thread, and whoever waits for a report."""
        self._running, self._closed = False, True
        self._wake.set()
        # of no term: whoever waits for a report learns that there will be none
        self.reports.put(Report(-1))

    def deliver(self, term: int, due: float, data: bytes) -> None:
        """Messages of another host for parties of this one. The due iteration travels with them."""
        if term != self._term:  # of before a fault: they will be sent again
            return
        messages = portable.loads(data)
        self._due = due
        self._queue.extend(messages)
        self._wake.set()

    def release(self, term: int, due: float) -> None:
        """Continue after an observation, until this iteration."""
        if term != self._term:
            return
        with self._lock:
            self._due = due
            held, self._held = self._held, {}
            deferred, self._deferred = self._deferred, []
            self._parts = {}
            # messages in the order in which they were sent: what was withheld came before the rest
            self._route(deferred)
            try:
                for rest in held.values():
                    self._handle(rest)
            except BaseException as error:
                self._fail(error)
        self._wake.set()

    def hold_at(self, due: float) -> None:
        """Hold at the next progress that is not before this iteration."""
        self._due = due

    def state(self) -> HostState:
        """The state at an observation; not a copy."""
        rests = list(chain.from_iterable(self._held.values()))
        states = {number: party.state() for number, party in self._parties.items()}
        return HostState(states, list(self._deferred), rests, self.ledger)

    def parameters(self) -> dict[int, Any]:
        """The parameters of the clients here."""
        return {k: self._parties[k].parameters() for k in self.clients}  # type: ignore[attr-defined]

    def aggregate(self, parameters: Mapping[int, Any]) -> Any:
        """The sum of the representations of the clients here, with these parameters."""
        return self.share.aggregate(parameters)

    def epoch_loss(self) -> EpochLoss | None:
        """The loss of a split network, at the party that reported."""
        found: EpochLoss | None = self._made.epoch_loss()
        return found

    def observed(self) -> tuple[Ledger, list[list[Any]]]:
        """The ledger, and what each recorder has taken since the last call."""
        return self.ledger, [recorder.take() for recorder in self._recorders]

    def _work(self) -> None:
        queue = self._queue
        while not self._closed:
            self._wake.wait()
            self._wake.clear()
            with self._lock, np.errstate(all="ignore"):  # overflows are detected by measurements
                try:
                    while self._running and queue:
                        self._step(queue.popleft())
                except BaseException as error:
                    self._fail(error)

    def _step(self, message: Message) -> None:
        if message.to in self._held:
            self._deferred.append(message)  # it must not change what is being observed
        else:
            self._handle(self._parties[message.to].receive(message))

    def _fail(self, error: BaseException) -> None:
        self._running = False
        # the driver raises it: an actor has nobody to tell
        self.reports.put(Report(self._term, error=error))

    def _handle(self, outgoing: Sequence[Message]) -> None:
        """Send what a party returned, unless it reports and is held."""
        for place, message in enumerate(outgoing):
            if message.to == MONITOR and _reached(message.payload) >= self._due:
                self._hold(outgoing[:place], message, outgoing[place + 1 :])
                return
        sent = [message for message in outgoing if message.to != MONITOR]
        self._count(sent)
        self._route(sent)

    def _hold(self, before: Sequence[Message], report: Message, after: Sequence[Message]) -> None:
        self._held[report.sender] = after
        before = [message for message in before if message.to != MONITOR]
        self._count(before)

        payload: Any = report.payload
        if isinstance(payload, Part):
            # other clients may need these messages to finish the same iteration
            self._route(before)
            self._parts[report.sender] = payload
            if len(self._parts) == len(self.clients):
                self.reports.put(Report(self._term, parts=self._parts))
            return

        self._deferred.extend(before)
        aggregate, penalty = payload.aggregate, payload.penalty
        if self._hides and aggregate is not None:
            # f does not follow from what such a transport makes of it: it is measured
            aggregate, penalty = None, 0.0
        self.reports.put(Report(self._term, Progress(payload.hop, payload.t, aggregate, penalty)))

    def _count(self, messages: Sequence[Message]) -> None:
        """Encode and record messages as they are sent."""
        ledger, recorders = self.ledger, self._recorders
        for message in messages:
            transport = self._parties[message.sender].transport
            if transport is not None and message.sender != message.to:
                # here, where it is sent: the receiver may be in another process
                message.payload = transport.passed(message.payload, message.sender, message.to)
            record(message, ledger)
            for recorder in recorders:
                recorder.see(message)

    def _route(self, messages: Sequence[Message]) -> None:
        """Put messages into the queue of this host, or send them to others, one batch for each."""
        abroad: dict[int, list[Message]] = {}
        for message in messages:
            host = self._routes[message.to]
            if host == self.number:
                self._queue.append(message)
            else:
                abroad.setdefault(host, []).append(message)
        for host, batch in abroad.items():
            self._send_abroad(host, self._term, self._due, portable.dumps(batch))


def _reached(payload: Any) -> int:
    """The iteration of a report to the monitor."""
    if isinstance(payload, Part):
        return int(payload.iteration)
    return int(payload.hop)
