"""The choice of the engine for parties in this process, by what the parties declare."""

from __future__ import annotations

from dataclasses import dataclass

from mtcd.engines.kinds import ENGINES, LOCAL, EngineSettings, MakeEngine
from mtcd.engines.local import LocalEngine
from mtcd.engines.lockstep import LockstepEngine
from mtcd.protocol.engine import Engine, Recipe
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties

__all__ = ["MakeEngine", "engine_for"]


def engine_for(parties: Parties, ledger: Ledger) -> Engine:
    """A lockstep engine where the parties support rounds, a local engine otherwise."""
    if parties.rounds is None:
        return LocalEngine(parties, ledger)
    return LockstepEngine(parties, ledger)


@ENGINES.register(LOCAL)
@dataclass(frozen=True)
class Local(EngineSettings):
    """All parties in this process, as without an engine."""

    def maker(self, recipe: Recipe) -> MakeEngine:
        return engine_for
