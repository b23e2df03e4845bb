"""The in-process engine of methods whose clients all do the same at the same time: a round at once.

The parties are the same objects as elsewhere, but their offers are mixed by one product with a matrix
instead of travelling one by one: on a complete network of 40 clients that saves 1,560 messages a round.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mtcd.engines.in_process import InProcessEngine
from mtcd.ledger.ledger import CLIENT_CLIENT
from mtcd.protocol.party import Progress

DENSE = 0.1  # with more nonzeros than this, BLAS on the full matrix is quicker


class LockstepEngine(InProcessEngine):
    """Runs parties that can work in rounds."""

    def run(self, pausing: bool = False) -> Iterator[Progress | None]:
        """An observation before the first round and after each: a round is as short as it gets."""
        assert self.parties.rounds is not None
        clients, weights, messages, floats = self.parties.rounds
        mix = weights.toarray() if weights.nnz > DENSE * weights.shape[0] ** 2 else weights
        done = 0
        while True:
            yield Progress(done, 0, None, 0.0)
            mixed = mix @ np.stack([client.offer() for client in clients])
            for client, its_mix in zip(clients, mixed, strict=True):
                client.take(its_mix)
            self.ledger.record(CLIENT_CLIENT, floats, messages)
            done += 1
