"""Files of a budget, or tables, that cannot be read: nobody may take them for empty."""

from pathlib import Path

import pytest

from mtcd.core.errors import MtcdError
from mtcd.privacy.sealed.dp.spending import TableBudget


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
