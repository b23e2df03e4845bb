"""The in-process engine: all parties in one process, messages delivered in the order they were sent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from mtcd.ledger.ledger import CLIENT_CLIENT, DOWNLINK, UPLINK, Ledger
from mtcd.protocol.party import MONITOR, SERVER, Cast, Message, Party, Progress


class LocalEngine:
    """Carries messages between the parties of a cast, and records each on the ledger as it is sent."""

    def __init__(self, cast: Cast, ledger: Ledger) -> None:
        self.clients, self.server = cast.clients, cast.server
        self.ledger = ledger
        self.opening = cast.opening

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
            delivered = waiting.popleft()
            outgoing = self._party(delivered.to).receive(delivered)

    def _party(self, address: int) -> Party:
        if address != SERVER:
            return self.clients[address]
        if self.server is None:
            raise LookupError("a message was sent to the server, but this cast has none")
        return self.server

    def _record(self, message: Message) -> None:
        sender, to, _, floats, hop = message
        ledger = self.ledger
        if hop:
            ledger.hops += 1
            if to in (SERVER, sender):  # charged as a hop, though no neighbour gets anything
                ledger.record_unsent_hop(hop)
        if floats and to != sender:
            ledger.record(UPLINK if to == SERVER else DOWNLINK if sender == SERVER else CLIENT_CLIENT, floats)
