"""The trace of one training while it runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mtcd.methods.method import token_clusters
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.reporting.trace.trace import Trace
from mtcd.reporting.trace.tracer import Tracer
from mtcd.training.history import Measurement

if TYPE_CHECKING:
    from mtcd.training.training import Training


class TraceListener(Tracer):
    """Sees the messages of a training, and makes its trace."""

    def __init__(self, training: Training, parties: Parties, ledger: Ledger) -> None:
        network, method = training.network, training.method
        super().__init__(network.size, method.timeline().hops_per_sync, ledger)
        clusters = token_clusters(method, network, training.seed)
        self.start = Trace.of(network, clusters, parties.server is not None)

    def attachment(
        self,
        rows: Sequence[Measurement],
        parameters: Sequence[Any] | None = None,
        running: bool = False,
    ) -> Trace:
        """The trace so far; at the end with the norms of the blocks."""
        trace = self.start.with_messages(self, rows, latest=running)
        if parameters is None:
            return trace
        return trace.with_blocks(parameters)
