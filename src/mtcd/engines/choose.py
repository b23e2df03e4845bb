"""Which engine runs parties that are in this process: they declare what they can do, the choice follows."""

from __future__ import annotations

from collections.abc import Callable

from mtcd.engines.local import LocalEngine
from mtcd.engines.lockstep import LockstepEngine
from mtcd.ledger.ledger import Ledger
from mtcd.protocol.engine import Engine
from mtcd.protocol.party import Parties

MakeEngine = Callable[[Parties, Ledger], Engine]


def engine_for(parties: Parties, ledger: Ledger) -> Engine:
    """Whole rounds at once where the parties can work in rounds, message by message otherwise."""
    return LocalEngine(parties, ledger) if parties.rounds is None else LockstepEngine(parties, ledger)
