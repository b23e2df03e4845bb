"""Files of a budget, or tables, that cannot be read: nobody may take them for empty."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.privacy.sealed.dp.command import show_budgets
from mtcd.privacy.sealed.dp.spending import Entry, TableBudget


def test_an_account_that_cannot_be_opened_does_not_count_as_nothing_spent(tmp_path: Path) -> None:
    budget = TableBudget(tmp_path / "table.csv")
    assert budget.entries() == ()
    budget.path.mkdir()
    with pytest.raises(MtcdError, match=rf"{budget.path} cannot be read: Is a directory"):
        budget.entries()


def test_a_table_that_cannot_be_opened_has_no_digest(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    assert TableBudget(table).digest() == ""
    table.mkdir()
    with pytest.raises(MtcdError, match=rf"{table} cannot be read: Is a directory"):
        TableBudget(table).digest()


ENTRY = Entry("id", "2026-01-01", "bank", 1.0, 1e-5, 5, 3, 0.25, False, "", "")


@pytest.mark.parametrize(
    ("changed", "allowed"),
    [
        ({"epsilon": 0.0}, True),
        ({"epsilon": -5e-324}, False),
        ({"squared_mu": 0.0}, True),
        ({"squared_mu": -5e-324}, False),
        ({"squared_mu": float("nan")}, False),
        ({"tours": 0}, True),
        ({"tours": -1}, False),
        ({"planned": 0}, True),
        ({"planned": -1}, False),
        ({"delta": 5e-324}, True),
        ({"delta": 0.0}, False),
        ({"delta": 1.0 - 1e-16}, True),
        ({"delta": 1.0}, False),
    ],
)
def test_numbers_of_an_entry(changed: dict[str, Any], allowed: bool) -> None:
    if allowed:
        replace(ENTRY, **changed)
        return
    with pytest.raises(ValueError, match="a number is out of range"):
        replace(ENTRY, **changed)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1.0])
def test_a_delta_that_is_no_probability_is_refused(tmp_path: Path, delta: float) -> None:
    table = tmp_path / "table.csv"
    table.touch()
    show_budgets([table], 1.0 - 1e-16, as_json=True)
    show_budgets([table], 5e-324, as_json=True)
    with pytest.raises(ConfigError, match="--delta must be above 0 and below 1"):
        show_budgets([table], delta, as_json=True)
