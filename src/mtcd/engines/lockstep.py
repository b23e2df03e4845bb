"""The in-process engine of methods whose clients all do the same at the same time: a round at once.

The parties are the same objects as elsewhere, but their offers are mixed by one product with a matrix
instead of travelling one by one: on a complete network of 40 clients that saves 1,560 messages a round.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtcd.ledger.ledger import CLIENT_CLIENT, Ledger
from mtcd.protocol.party import Progress, Rounds

DENSE = 0.1  # with more nonzeros than this, BLAS on the full matrix is quicker


class LockstepEngine:
    """Runs a method that goes in rounds."""

    def __init__(self, rounds: Rounds, ledger: Ledger) -> None:
        self.rounds, self.ledger = rounds, ledger

    def deliveries(self) -> Iterator[Progress | None]:
        """A round is as short as it gets."""
        return self.run()

    def run(self) -> Iterator[Progress]:
        """Round after round; yields before the first and after each."""
        clients, weights, messages, floats = self.rounds
        mix = weights.toarray() if weights.nnz > DENSE * weights.shape[0] ** 2 else weights
        done = 0
        while True:
            yield Progress(done, 0, None, 0.0)
            mixed = mix @ np.stack([client.offer() for client in clients])
            for client, its_mix in zip(clients, mixed, strict=True):
                client.take(its_mix)
            self.ledger.record(CLIENT_CLIENT, floats, messages)
            done += 1
