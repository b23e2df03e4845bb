"""What ``mtcd budget`` shows of the labels of a table."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from mtcd.privacy.labels.draws import TableDraws


class LabelBudgets:
    """The account of labels, beside those of features."""

    def facts(self, table: Path) -> dict[str, Any] | None:
        """What the labels of a table have spent, as plain values; None without a release."""
        draws = TableDraws(table)
        releases = draws.releases()
        if not releases:
            return None
        return {
            "file": str(draws.path),
            "epsilon": draws.epsilon,
            "releases": [
                {name: value for name, value in asdict(one).items() if name != "labels"}
                for one in releases
            ],
        }

    def lines(self, facts: dict[str, Any]) -> list[str]:
        """The same in words, a line for each release."""
        return [
            f"{one['began']}: labels, {one['mechanism']}, {_promise(one['epsilon'])}"
            for one in facts["releases"]
        ]


def _promise(epsilon: float | None) -> str:
    """What a release promises, in words."""
    return "no guarantee" if epsilon is None else f"epsilon {epsilon:g}"


LABEL_BUDGETS = LabelBudgets()
