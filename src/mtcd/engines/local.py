"""The in-process engine: all parties in one process, messages delivered in the order they were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from mtcd.ledger.ledger import Ledger
from mtcd.protocol.accounting import record
from mtcd.protocol.monitor import Monitor
from mtcd.protocol.party import MONITOR, SERVER, Cast, Message, Part, Progress


class LocalEngine:
    """Carries messages between the parties of a cast, and records each on the ledger as it is sent."""

    def __init__(self, cast: Cast, ledger: Ledger) -> None:
        self.parties = dict(enumerate(cast.clients)) | ({} if cast.server is None else {SERVER: cast.server})
        self.opening = cast.opening
        self.ledger = ledger
        self.monitor = Monitor(len(cast.clients))
        self._ahead: dict[int, list[Message]] = {}

    def run(self) -> Iterator[Progress]:
        """Deliver messages while there are any; yields whenever the parties hold one model, before it changes."""
        return (told for told in self.deliveries() if told is not None)

    def deliveries(self) -> Iterator[Progress | None]:
        """The same, with None after every message: for a caller who may have to stop in between."""
        waiting: deque[Message] = deque()
        outgoing: Sequence[Message] = self.opening
        while True:
            for message in outgoing:
                if message.to == MONITOR:
                    told = message.payload
                    if isinstance(told, Part):  # of a method in which nobody knows all
                        told = self.monitor.hear(message)
                    if told is not None:
                        yield told
                        self._catch_up(told.hop)
                else:
                    self._record(message)
                    waiting.append(message)
            if not waiting:
                return
            message = waiting.popleft()
            outgoing = self.parties[message.to].receive(message)
            yield None

    def _record(self, message: Message) -> None:
        """A client that is ahead of others sends for the next iteration: that counts when this one has been told."""
        iteration = self.monitor.ahead(message.sender)
        if iteration is None:
            record(message, self.ledger)
        else:
            self._ahead.setdefault(iteration, []).append(message)

    def _catch_up(self, iteration: int) -> None:
        for message in self._ahead.pop(iteration, ()):
            record(message, self.ledger)
