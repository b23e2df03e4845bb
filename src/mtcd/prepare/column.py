"""One column of a client, prepared: its steps, fitted on the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mtcd.errors import DataError
from mtcd.prepare.automatic import automatic_steps
from mtcd.prepare.recipe import Steps
from mtcd.prepare.transformer import Fitted, name_of, state_from_json, state_to_json
from mtcd.prepare.values import is_gap, is_text


@dataclass(frozen=True)
class PreparedColumn:
    """A column and its fitted steps; each step is applied to every column that the one before gives.

    ``means`` of the resulting columns stand in for what is missing in new samples; ``had_missing``: whether the
    value of a training row is missing, or cannot be read.
    """

    name: str
    steps: tuple[tuple[Fitted, ...], ...]
    outputs: tuple[str, ...]
    means: tuple[float, ...]
    had_missing: bool

    @staticmethod
    def fit(column: pl.Series, steps: Steps, keep_missing: bool = False) -> tuple[PreparedColumn, list[pl.Series]]:
        """Fit the steps on the training rows of a column; also the columns that it becomes, with nulls."""
        parts, fitted, missing = [column], [], bool(column.null_count())
        for step in automatic_steps(column, keep_missing) if steps is None else steps:
            states = tuple(step.fit(part) for part in parts)
            for state, part in zip(states, parts, strict=True):
                _check_reads_some(state, part)
            missing |= any(state.unseen(part).any() for state, part in zip(states, parts, strict=True))
            parts = _applied(states, parts)
            fitted.append(states)
        for part in parts:
            if is_text(part):
                raise DataError(
                    f"Column {column.name!r} still holds texts after {name_of(type(fitted[-1][0]))}: add a step that "
                    "gives numbers, such as one-hot."
                )
        names, means = tuple(part.name for part in parts), tuple(_mean(part) for part in parts)
        return PreparedColumn(column.name, tuple(fitted), names, means, missing), parts

    @property
    def categorical(self) -> bool:
        """Whether it becomes numbers of categories."""
        return any(state.categorical for state in self.steps[-1])

    def apply(self, column: pl.Series) -> list[pl.Series]:
        """The columns that new samples become; null where a value is missing."""
        parts = [column]
        for states in self.steps:
            parts = _applied(states, parts)
        return parts

    def filled(self, column: pl.Series) -> list[pl.Series]:
        """The same with the means of the training rows for missing values."""
        return [part.fill_null(mean) for part, mean in zip(self.apply(column), self.means, strict=True)]

    def refuse_unseen(self, column: pl.Series) -> None:
        """Raise an error where a value is of a category that no training row has, or missing or unreadable."""
        parts, odd = [column], column.is_null() & (not self.had_missing)
        for states in self.steps:
            for state, part in zip(states, parts, strict=True):
                if state.knows_categories or not self.had_missing:
                    odd |= state.unseen(part)
            parts = _applied(states, parts)
        if odd.any():
            row = int(odd.arg_true()[0])
            what = f"holds {column[row]!r}, as no training row does" if column[row] is not None else "is missing"
            raise DataError(
                f"Column {self.name!r} {what}, in row {row + 1} (and in {odd.sum()} row(s) in all): mend the value, or "
                "prepare with on_unseen: ignore."
            )

    def to_json(self) -> dict[str, Any]:
        """The column as plain values."""
        return {
            "name": self.name,
            "steps": [[state_to_json(state) for state in states] for states in self.steps],
            "outputs": list(self.outputs),
            "means": list(self.means),
            "had_missing": self.had_missing,
        }

    @staticmethod
    def from_json(stored: dict[str, Any]) -> PreparedColumn:
        """The column again. Raises ValueError, KeyError or TypeError."""
        made = PreparedColumn(
            str(stored["name"]),
            tuple(tuple(state_from_json(state) for state in states) for states in stored["steps"]),
            tuple(str(name) for name in stored["outputs"]),
            tuple(float(mean) for mean in stored["means"]),
            bool(stored["had_missing"]),
        )
        parts = made.apply(pl.Series(made.name, [None], dtype=pl.String))
        if tuple(part.name for part in parts) != made.outputs or len(made.means) != len(made.outputs):
            raise ValueError(f"the steps of column {made.name!r} do not give its columns")
        return made


def unread(column: pl.Series, state: Fitted) -> tuple[int, object]:
    """How many values of a column its first step cannot read, and the first of them."""
    odd = state.unseen(column)
    return int(odd.sum()), column[int(odd.arg_true()[0])] if odd.any() else None


def _check_reads_some(state: Fitted, column: pl.Series) -> None:
    """Refuse a step that can read none of the values: all would count as missing."""
    known = ~is_gap(column)
    if known.any() and state.unseen(column).filter(known).all():
        row = int(known.arg_true()[0])
        raise DataError(
            f"Column {column.name!r}: {name_of(type(state))} reads {state.reads}, but none of the values is such: row "
            f"{row + 1} holds {column[row]!r}. Choose another step, such as one-hot for texts, or auto."
        )


def _applied(states: Sequence[Fitted], parts: Sequence[pl.Series]) -> list[pl.Series]:
    """The columns that these become by one step."""
    return [out for state, part in zip(states, parts, strict=True) for out in state.apply(part)]


def _mean(part: pl.Series) -> float:
    found = part.mean()
    return 0.0 if found is None else float(found)  # type: ignore[arg-type]
