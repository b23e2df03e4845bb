"""The account of a party in a federation with differential privacy: what its table spends is
entered beside it."""

from __future__ import annotations

from pathlib import Path

from mtcd.core.errors import ConfigError
from mtcd.network.topology import Network
from mtcd.privacy.sealed.dp.account import entry_of, spent_by
from mtcd.privacy.sealed.dp.settings import PrivateTours
from mtcd.privacy.sealed.dp.spending import TableBudget


class PartyAccount:
    """Of client ``number``. ``bundle``: where the account is kept if the folder of the table cannot
    be written."""

    def __init__(
        self, method: PrivateTours, network: Network, number: int, table: Path, bundle: Path
    ) -> None:
        self.method, self.network, self.number = method, network, number
        self._budget, self._instead = TableBudget(table), TableBudget(table, bundle)

    def begin(self, run: str, tours: int, place: str) -> None:
        """Enter a run, once, before anything is released: it takes so many tours at most."""
        table = self._budget.table
        entry = entry_of(self.method, self.network, [self.number], table, tours, run, place)
        if self._instead.path.exists() or not table.exists():
            self._budget = self._instead
        if any(known.id == run for known in self._budget.entries()):  # after a restart
            return
        try:
            self._budget.enter(entry)
        except ConfigError:
            if self._budget is self._instead:
                raise
            self._budget = self._instead
            self._budget.enter(entry)

    def end(self, run: str, tours: int) -> str:
        """A run has begun so many tours, and ended; returns a note on what all have spent."""
        self._budget.settle(run, tours)
        return spent_by(self._budget, self.method.dp.delta)
