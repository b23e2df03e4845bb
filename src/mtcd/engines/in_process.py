"""What engines have in common whose parties are objects in this process."""

from __future__ import annotations

from typing import Any

from mtcd.errors import MtcdError
from mtcd.ledger.ledger import Ledger
from mtcd.protocol.engine import Engine
from mtcd.protocol.keeping import Snapshot
from mtcd.protocol.model import Seen
from mtcd.protocol.party import Checkpointed, Parties


class InProcessEngine(Engine):
    """Asks the party objects for parameters and snapshots. Between two observations they stand still."""

    def __init__(self, parties: Parties, ledger: Ledger) -> None:
        self.parties, self.ledger = parties, ledger

    def parameters(self) -> list[Any]:
        return self.parties.parameters()

    def seen(self) -> Seen | None:
        return self.parties.seen()

    def snapshot(self) -> Snapshot:
        return self.checkpointed.snapshot()

    @property
    def checkpointed(self) -> Checkpointed:
        """What takes and restores snapshots of these parties."""
        if self.parties.checkpointed is None:
            raise MtcdError("The parties of this method keep no checkpoints: train without checkpoint and resume.")
        return self.parties.checkpointed
