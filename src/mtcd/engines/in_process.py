"""The base class of engines whose parties are objects in this process."""

from __future__ import annotations

from typing import Any

from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.party import Parties


class InProcessEngine(Engine):
    """Reads parameters from the party objects, which do not change during an observation."""

    def __init__(self, parties: Parties, ledger: Ledger) -> None:
        self.parties, self.ledger = parties, ledger

    def parameters(self) -> list[Any]:
        return self.parties.parameters()

    def epoch_loss(self) -> EpochLoss | None:
        return self.parties.epoch_loss()
