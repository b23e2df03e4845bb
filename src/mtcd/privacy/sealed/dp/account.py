"""The accounts of a private training: what it spends is entered beside each of its tables, in one
process by ``TableAccounts``, at a party of a federation by ``PartyAccount``.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from mtcd.core.errors import ConfigError
from mtcd.methods.conditions import Account
from mtcd.network.topology import Network
from mtcd.privacy.sealed.dp.spending import Entry, TableBudget

if TYPE_CHECKING:
    from mtcd.privacy.sealed.dp.settings import PrivateTours

IN_MEMORY = (
    "These rows are of no table file, so nothing counts what several trainings on them spend "
    "together: add this one to what earlier ones have spent."
)
NOWHERE = ""


@dataclass
class TableAccounts(Account):
    """The accounts of all tables of a training. ``tables``: by client, empty if the data is from no
    files. ``place``: the folder of checkpoints, if any.

    ``tours``: the most that the training may take. One that ``resumes`` goes on with the entry of
    the training that was begun in the same folder: it releases the same numbers again, and spends
    them once.
    """

    method: PrivateTours
    network: Network
    tables: Sequence[Path]
    tours: int
    place: Path | None = None
    resumes: bool = False
    _entered: dict[Path, Entry] = field(default_factory=dict)

    def begin(self) -> None:
        """Enter the training, before anything is released. Raises ConfigError if an account cannot
        be written."""
        place = NOWHERE
        # Resolved: a training that is resumed from another working directory has the same place.
        if self.place is not None:
            place = str(self.place.resolve())
        training = secrets.token_hex(8)
        for path, clients in holders(self.tables).items():
            entry = entry_of(self.method, self.network, clients, path, self.tours, training, place)
            self._entered[path] = TableBudget(path).enter(entry, partial(self._goes_on, entry))

    def _goes_on(self, entry: Entry, known: Entry) -> bool:
        """Whether this training goes on with one that is known."""
        # Whatever decides the noise, and the place: with all the same, the same numbers are
        # released.
        names = ("epsilon", "delta", "planned", "party", "seeded", "place")
        same = all(getattr(known, name) == getattr(entry, name) for name in names)
        return self.resumes and entry.place != NOWHERE and same

    def end(self, iterations: int) -> tuple[str, ...]:
        """The training has begun so many tours, and ended; returns notes on what all have spent."""
        for path, entry in self._entered.items():
            TableBudget(path).settle(entry.id, iterations)
        if not self._entered:
            return (IN_MEMORY,)
        return tuple(spent_by(TableBudget(path), self.method.dp.delta) for path in self._entered)


class PartyAccount:
    """The account of one party in a federation.

    Parameters
    ----------
    method : PrivateTours
        The method, with its budget.
    network : Network
        The network of all parties.
    number : int
        The party, by number.
    table : Path
        Its table, beside which the account is kept.
    bundle : Path
        Where the account is kept if the folder of the table cannot be written.
    """

    def __init__(
        self, method: PrivateTours, network: Network, number: int, table: Path, bundle: Path
    ) -> None:
        self.method, self.network, self.number = method, network, number
        self._budget = TableBudget(table)
        self._instead = TableBudget(table, bundle)

    def begin(self, run: str, tours: int | None, place: str) -> None:
        """Enter a run, once, before anything is released.

        Parameters
        ----------
        run : str
            The id of the run.
        tours : int, optional
            The tours that it takes at most; all that are planned unless given.
        place : str
            The folder of the run.
        """
        most = self.method.dp.tours
        if tours is not None:
            most = tours
        table = self._budget.table
        entry = entry_of(self.method, self.network, [self.number], table, most, run, place)

        # once an account was kept elsewhere, it goes on there: two files would not add up
        if self._instead.path.exists() or not table.exists():
            self._budget = self._instead
        if any(known.id == run for known in self._budget.entries()):  # after a restart
            return

        # no training without an entry: it is made before the first release
        try:
            self._budget.enter(entry)
        except ConfigError:
            if self._budget is self._instead:
                raise
            self._budget = self._instead
            self._budget.enter(entry)

    def end(self, run: str, tours: int) -> str:
        """Enter how many tours a run has begun; returns a note on what all have spent."""
        self._budget.settle(run, tours)
        return spent_by(self._budget, self.method.dp.delta)


def holders(tables: Sequence[Path]) -> dict[Path, list[int]]:
    """The clients that have columns of each table; ``tables`` by client."""
    found: dict[Path, list[int]] = {}
    for k, table in enumerate(tables):
        # One file under two names is one table.
        found.setdefault(Path(os.path.realpath(table)), []).append(k)
    return found


def entry_of(
    method: PrivateTours,
    network: Network,
    clients: Sequence[int],
    table: Path,
    tours: int,
    training: str = "",
    place: str = NOWHERE,
) -> Entry:
    """The entry of a training, an id, of so many tours in the account of a table of these clients.

    Of several clients with columns of one table, the one whose rows spend most counts.
    """
    budget, dp = method.budget(network), method.dp
    squares = budget.sensitivities()
    return Entry(
        id=training,
        began=datetime.now(UTC).isoformat(timespec="seconds"),
        party=", ".join(network.clients[k] for k in clients),
        epsilon=max(budget.epsilons[k] for k in clients),
        delta=dp.delta,
        planned=dp.tours,
        tours=min(tours, dp.tours),
        squared_mu=float(max(squares[k] for k in clients)),
        seeded=dp.insecure_seeded_noise,
        place=place,
        content=TableBudget(table).digest(),
    )


def spent_by(budget: TableBudget, delta: float) -> str:
    """A note on what a table has spent."""
    entries = budget.entries()
    seeded = sum(entry.seeded for entry in entries)
    counted = len(entries) - seeded
    trainings = f"{counted} training{'' if counted == 1 else 's'}"
    more = ""
    if seeded:
        more = f"; not counting {seeded} with insecure_seeded_noise, which protect nobody"
    return (
        f"{budget.table.name} has spent epsilon {budget.epsilon(delta):.3g} at delta {delta:g} in "
        f"{trainings}{more}: {budget.path}"
    )
