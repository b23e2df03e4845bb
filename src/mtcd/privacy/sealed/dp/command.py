"""mtcd budget."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from mtcd.core import features
from mtcd.core.errors import ConfigError, DataError
from mtcd.core.mappings import without_none
from mtcd.core.terminal.screen import screen
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import escape
from mtcd.privacy.sealed.dp.spending import SUFFIX, Entry, TableBudget

USUAL_DELTA = 1e-5
OTHERS = "mtcd.budgets"


def show_budgets(tables: Sequence[Path], delta: float | None, as_json: bool) -> None:
    """Show what each table has spent. ``delta``: at which; the smallest of its trainings unless
    given."""
    if delta is not None and not 0 < delta < 1:
        raise ConfigError(f"--delta must be above 0 and below 1, but is {delta:g}.")
    found = [budget_facts(table, delta) for table in tables]
    if as_json:
        print(json.dumps(found, allow_nan=False))  # noqa: T201
        return
    for facts in found:
        _show(facts)


def budget_facts(table: Path, delta: float | None = None) -> dict[str, Any]:
    """What a table has spent, as plain values."""
    # A user may name the account instead of its table.
    if table.name.endswith(SUFFIX):
        table = table.with_name(table.name.removesuffix(SUFFIX))
    budget = TableBudget(table)
    if not budget.path.exists() and not budget.table.exists():
        raise DataError(
            f"There is neither a table {table} nor an account of it, {budget.path.name}."
        )
    entries = budget.entries()
    # The smallest delta is the strictest of those that were promised.
    at = delta or min((entry.delta for entry in entries), default=USUAL_DELTA)
    content = None
    if budget.table.exists():
        content = budget.digest()
    others = {name: one.facts(table) for name, one in _other_accounts()}
    return without_none(others) | {
        "table": str(table),
        "file": str(budget.path),
        "delta": at,
        "epsilon": budget.epsilon(at),
        "unprotected": sum(entry.seeded for entry in entries),
        "trainings": [_training(entry, content) for entry in entries],
    }


class OtherAccount(Protocol):
    """What another feature counts of a table, which it names in the group ``mtcd.budgets``."""

    def facts(self, table: Path) -> dict[str, Any] | None:
        """What was spent, as plain values; None if nothing was."""

    def lines(self, facts: dict[str, Any]) -> list[str]:
        """The same in words."""


def _other_accounts() -> Iterator[tuple[str, OtherAccount]]:
    for name, home in features.parts(OTHERS).items():
        yield name, cast(OtherAccount, features.load(home))


def _training(entry: Entry, content: str | None) -> dict[str, Any]:
    return {
        "began": entry.began,
        "party": entry.party,
        "tours": entry.tours,
        "planned": entry.planned,
        "epsilon": None if entry.seeded else entry.spent,
        "delta": entry.delta,
        "ended": entry.ended,
        "same_content": entry.content == content,
        "place": entry.place,
    }


def _epsilon(training: dict[str, Any]) -> str:
    if training["epsilon"] is None:
        return "protects nobody"
    return f"{training['epsilon']:.3g} at {training['delta']:g}"


def _state(training: dict[str, Any]) -> str:
    state = "ended"
    if not training["ended"]:
        # a crash may have come after any release
        state = "not ended: counted in full"
    if not training["same_content"]:
        state += "; the table has changed since"
    return state


def _show(facts: dict[str, Any]) -> None:
    for name, account in _other_accounts():
        for line in account.lines(facts[name]) if name in facts else ():
            screen.print(escape(f"{facts['table']}: {line}"), highlight=False, soft_wrap=True)
    trainings = facts["trainings"]
    if not trainings:
        screen.print(
            escape(f"{facts['table']}: no training with differential privacy."), highlight=False
        )
        return
    rows = []
    for one in trainings:
        tours = f"{one['tours']} of {one['planned']}"
        rows.append([one["began"], one["party"], tours, _epsilon(one), _state(one)])
    titles = ["began", "party", "tours", "epsilon", "state"]
    screen.print(ScreenTable(titles, rows, words=titles))
    counted, more = len(trainings) - facts["unprotected"], ""
    if facts["unprotected"]:
        more = f", not counting {facts['unprotected']} that protect nobody"
    screen.print(
        escape(
            f"{facts['table']} has spent epsilon {facts['epsilon']:.3g} at delta "
            f"{facts['delta']:g} in {counted} training{'' if counted == 1 else 's'}{more}."
        ),
        highlight=False,
        soft_wrap=True,
    )
