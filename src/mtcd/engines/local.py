"""The in-process engine: all parties in one process, messages delivered in the order they were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from mtcd.ledger.ledger import CLIENT_CLIENT, DOWNLINK, UPLINK, Ledger
from mtcd.protocol.party import MONITOR, SERVER, Cast, Message, Progress


class LocalEngine:
    """Carries messages between the parties of a cast, and records each on the ledger as it is sent."""

    def __init__(self, cast: Cast, ledger: Ledger) -> None:
        self.parties = dict(enumerate(cast.clients)) | ({} if cast.server is None else {SERVER: cast.server})
        self.opening = cast.opening
        self.ledger = ledger

    def run(self) -> Iterator[Progress]:
        """Deliver messages for ever; yields whenever the parties hold one model, before it changes again."""
        waiting: deque[Message] = deque()
        outgoing: Sequence[Message] = self.opening
        while True:
            for message in outgoing:
                if message.to == MONITOR:
                    yield message.payload
                else:
                    self._record(message)
                    waiting.append(message)
            message = waiting.popleft()
            outgoing = self.parties[message.to].receive(message)

    def _record(self, message: Message) -> None:
        sender, to, floats, hop, ledger = message.sender, message.to, message.floats, message.hop, self.ledger
        if hop:
            ledger.hops += 1
            if to in (SERVER, sender):  # charged as a hop, though no neighbour gets anything
                ledger.record_unsent_hop(hop)
        if floats and to != sender:
            ledger.record(UPLINK if to == SERVER else DOWNLINK if sender == SERVER else CLIENT_CLIENT, floats)
