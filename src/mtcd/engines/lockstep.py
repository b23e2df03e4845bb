"""The in-process engine of synchronous methods: it runs a whole round at once.

The parties are the same objects as in other engines, but one product with a matrix replaces the
messages of a round: 1,560 of them on a complete network of 40 clients.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtcd.engines.local import InProcessEngine
from mtcd.protocol.ledger.ledger import CLIENT_CLIENT
from mtcd.protocol.party import Progress
from mtcd.protocol.snapshots import restored, take
from mtcd.protocol.state import Snapshot

DENSE = 0.1  # with more nonzeros than this, BLAS on the full matrix is quicker


class LockstepEngine(InProcessEngine):
    """Runs parties that support rounds."""

    done = 0
    """The rounds that are finished."""

    def run(self, pausing: bool = False) -> Iterator[Progress | None]:
        """Yield an observation before the first round and after each round; ``pausing`` has no
        effect."""
        assert self.parties.rounds is not None
        clients, weights, messages, floats = self.parties.rounds
        mix = weights
        if weights.nnz > DENSE * weights.shape[0] ** 2:
            mix = weights.toarray()

        while True:
            yield Progress(self.done, 0, None, 0.0)
            # all clients offer before any takes: a round uses the values of the one before
            mixed = mix @ np.stack([client.offer() for client in clients])
            for client, offers in zip(clients, mixed, strict=True):
                client.take(offers)
            # one entry for all messages of the round, which are equally long
            self.ledger.record(CLIENT_CLIENT, floats, messages)
            self.done += 1
            for listener in self.listeners.values():
                listener.see_rounds(self.done)

    def snapshot(self) -> Snapshot:
        return take(
            {"clients": [client.state() for client in self.parties.clients], "done": self.done}
        )

    def resume(self, snapshot: Snapshot) -> None:
        state = restored(snapshot)
        for client, own in zip(self.parties.clients, state["clients"], strict=True):
            client.restore(own)
        self.done = state["done"]
