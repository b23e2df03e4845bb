"""What the rows of a table have spent: a file beside the table, with an entry for every training.

A training is entered before it releases anything, with all the tours that it may take, and
corrected at its end: one that crashes stays entered in full. Trainings are Gaussian mechanisms, so
the squares of their mu add up, exactly (``budget.py``). All entries count, whatever the table
held at the time: its rows may be the same.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TypeVar

from mtcd.core.errors import ConfigError, MtcdError, system_reason
from mtcd.core.files import locked, replaced
from mtcd.privacy.sealed.dp.budget import epsilon_of

SUFFIX = ".mtcd-budget.json"
FORMAT = 1
DIGEST_BYTES = 8
MODE = 0o666
"""Of the file: as open as the umask of the user lets it be, as others may train on the same
table."""

Result = TypeVar("Result")


@dataclass(frozen=True)
class Entry:
    """One training. ``party``: whose columns the table has in it; several are joined by commas.

    ``epsilon`` and ``delta`` are its budget, ``planned`` the tours that this is for. ``tours`` are
    those that it has begun, or may begin; ``squared_mu`` is of one of them. ``seeded``: with
    ``insecure_seeded_noise``, which protects nobody. ``place``: its folder, from which it may be
    resumed. ``content``: a digest of the table.
    """

    id: str
    began: str
    party: str
    epsilon: float
    delta: float
    planned: int
    tours: int
    squared_mu: float
    seeded: bool
    place: str
    content: str
    ended: bool = False

    def __post_init__(self) -> None:
        kinds = {"str": str, "float": (int, float), "int": int, "bool": bool}
        for one in fields(self):
            value = getattr(self, one.name)
            right = isinstance(value, kinds[str(one.type)])  # type: ignore[arg-type]
            if not right or (isinstance(value, bool) and one.type != "bool"):
                raise ValueError(f"{one.name} is {value!r}")
        # A file from elsewhere, or edited: NaN compares as neither too large nor too small.
        numbers = (self.epsilon, self.delta, self.squared_mu, self.tours, self.planned)
        if (
            not all(math.isfinite(number) and number >= 0 for number in numbers)
            or not 0 < self.delta < 1
        ):
            raise ValueError("a number is out of range")

    @property
    def spent(self) -> float:
        """The epsilon of this training alone, at its own delta."""
        return epsilon_of(math.sqrt(self.tours * self.squared_mu), self.delta)


class TableBudget:
    """The entries of one table. ``folder``: where the file is, if not beside the table."""

    def __init__(self, table: Path, folder: Path | None = None) -> None:
        # The table itself, not a link to it: two names must not have two accounts.
        self.table = Path(os.path.realpath(table))
        self.path = (folder or self.table.parent) / f"{self.table.name}{SUFFIX}"

    def entries(self) -> tuple[Entry, ...]:
        """All trainings, the oldest first; none if there is no file. Raises MtcdError if it cannot
        be read."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise MtcdError(f"{self.path} cannot be read: {system_reason(error)}.") from None
        return self._read(content)

    def epsilon(self, delta: float) -> float:
        """What all trainings have spent together, at this delta; those that protect nobody are left
        out."""
        return composed((entry for entry in self.entries() if not entry.seeded), delta)

    def enter(self, entry: Entry, resumes: Callable[[Entry], bool] = lambda entry: False) -> Entry:
        """Add a training; the latest one that it ``resumes`` goes on instead, with as many tours as
        the larger has."""

        def added(entries: tuple[Entry, ...]) -> tuple[tuple[Entry, ...], Entry]:
            known = [one for one in entries if resumes(one)]
            if not known:
                return (*entries, entry), entry
            # The larger number of tours: what may have been released already stays counted.
            going_on = replace(known[-1], tours=max(known[-1].tours, entry.tours), ended=False)
            return tuple(going_on if one is known[-1] else one for one in entries), going_on

        return self._change(added)

    def settle(self, id: str, tours: int) -> None:  # noqa: A002
        """A training has ended after it had begun so many tours: fewer than entered, or as many."""

        def settled(entries: tuple[Entry, ...]) -> tuple[tuple[Entry, ...], None]:
            changed = []
            for one in entries:
                if one.id == id:
                    # Never more than was entered, whatever the caller counts.
                    one = replace(one, tours=min(one.tours, tours), ended=True)
                changed.append(one)
            return tuple(changed), None

        self._change(settled)

    def digest(self) -> str:
        """Of the content of the table; empty if there is none."""
        try:
            with self.table.open("rb") as file:
                return hashlib.file_digest(
                    file, lambda: hashlib.blake2b(digest_size=DIGEST_BYTES)
                ).hexdigest()
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise MtcdError(f"{self.table} cannot be read: {system_reason(error)}.") from None

    def _read(self, content: bytes) -> tuple[Entry, ...]:
        if not content:  # made to be locked, by a process that was killed then
            return ()
        try:
            found = json.loads(content)
            if found["format"] != FORMAT:
                raise ValueError(
                    f"its format is {found['format']!r}, and this version of mtcd reads {FORMAT}"
                )
            return tuple(Entry(**entry) for entry in found["trainings"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise MtcdError(
                f"{self.path}, which counts what {self.table.name} has spent, cannot be read: "
                f"{error}. Restore it from a backup; without it, nobody knows what more trainings "
                "would spend."
            ) from None

    def _change(
        self, change: Callable[[tuple[Entry, ...]], tuple[tuple[Entry, ...], Result]]
    ) -> Result:
        """Change the entries, with no other process in between: the file is replaced as a whole,
        and is on disk."""
        try:
            # Read under the lock: another training may have entered itself since.
            with locked(self.path, MODE) as content:
                entries, result = change(self._read(content))
                kept = {
                    "format": FORMAT,
                    "table": self.table.name,
                    "trainings": [asdict(one) for one in entries],
                }
                replaced(self.path, json.dumps(kept, indent=1).encode(), MODE)
                return result
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be written ({system_reason(error)}), and what "
                f"{self.table.name} spends must be counted: allow this user to write there, or "
                "train on a copy of the table that stays in use."
            ) from None


def composed(entries: Iterator[Entry] | Sequence[Entry], delta: float) -> float:
    """The epsilon of all these trainings together, at this delta."""
    return epsilon_of(math.sqrt(sum(entry.tours * entry.squared_mu for entry in entries)), delta)
