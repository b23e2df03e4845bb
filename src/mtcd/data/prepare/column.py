"""One column of a client, prepared: its steps, fitted on the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from mtcd.core.errors import DataError
from mtcd.data.prepare.automatic import Choice, automatic
from mtcd.data.prepare.kinds import Kind
from mtcd.data.prepare.recipe import Steps
from mtcd.data.prepare.settings import Auto
from mtcd.data.prepare.transformer import Fitted, name_of, state_from_json, state_to_json
from mtcd.data.prepare.values import is_gap, is_text


@dataclass(frozen=True)
class Odd:
    """Values of a column that are not as those of the training rows were: how many, of how many,
    and the first.

    ``what`` they are, and what is done with them ``instead``.
    """

    column: str
    what: str
    instead: str
    count: int
    total: int
    example: object


@dataclass(frozen=True)
class PreparedColumn:
    """A column and its fitted steps; each step is applied to every column that the one before
    gives.

    ``means`` of the resulting columns stand in for what is missing in new samples; ``had_missing``:
    whether the value of a training row is missing, or cannot be read.
    """

    name: str
    steps: tuple[tuple[Fitted, ...], ...]
    outputs: tuple[str, ...]
    means: tuple[float, ...]
    had_missing: bool

    @staticmethod
    def fit(
        column: pl.Series, steps: Steps, keep_missing: bool = False, kind: Kind | None = None
    ) -> tuple[PreparedColumn, list[pl.Series], Choice | None]:
        """Fit the steps on the training rows of a column; ``kind`` is what it holds, where that is
        decided already.

        Returns:
            The fitted column; the columns that it becomes, with nulls; the automatic choice, if it
            was one.
        """
        parts = [column]
        fitted = []
        missing = bool(column.null_count())
        choice = None
        if isinstance(steps, Auto):
            choice = automatic(column, steps, keep_missing, kind)
            steps = choice.steps

        for step in steps:
            states = tuple(step.fit(part) for part in parts)
            made: list[pl.Series] = []
            for state, part in zip(states, parts, strict=True):
                own = state.apply(part)
                # what cannot be read counts as missing from here on
                odd = _unseen(state, part, own)
                _check_reads_some(state, part, odd)
                missing |= odd.any()
                made += own
            parts = made
            fitted.append(states)

        for part in parts:
            if is_text(part):
                raise DataError(
                    f"Column {column.name!r} still holds texts after "
                    f"{name_of(type(fitted[-1][0]))}: add a step that gives numbers, such as "
                    "one-hot."
                )

        names = tuple(part.name for part in parts)
        means = tuple(_mean(part) for part in parts)
        return PreparedColumn(column.name, tuple(fitted), names, means, missing), parts, choice

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
        parts = zip(self.apply(column), self.means, strict=True)
        return [part.fill_null(mean) for part, mean in parts]

    def odd(self, column: pl.Series) -> list[Odd]:
        """The values that cannot be read, or are of a category that no training row has; each is
        counted once."""
        parts = [column]
        told = pl.Series([False]).new_from_index(0, len(column))
        total = len(column) - column.null_count()

        found = []
        for states in self.steps:
            made: list[pl.Series] = []
            for state, part in zip(states, parts, strict=True):
                own = state.apply(part)
                made += own
                # a value that one step cannot read is null for all that follow
                mask = _news(state, part, own) & ~told
                told |= mask
                if mask.any():
                    count, first = int(mask.sum()), column[int(mask.arg_true()[0])]
                    found.append(Odd(self.name, state.unread, state.instead, count, total, first))
            parts = made
        return found

    def refuse_unseen(self, column: pl.Series) -> None:
        """Raise an error where a value is of a category that no training row has, or missing or
        unreadable."""
        # where a training row misses its value, others may, and are filled in as that one was
        parts = [column]
        odd = column.is_null() & (not self.had_missing)
        for states in self.steps:
            for state, part in zip(states, parts, strict=True):
                if state.knows_categories or not self.had_missing:
                    odd |= state.unseen(part)
            parts = _applied(states, parts)
        if not odd.any():
            return

        row = int(odd.arg_true()[0])
        what = "is missing"
        if column[row] is not None:
            what = f"holds {column[row]!r}, as no training row does"
        raise DataError(
            f"Column {self.name!r} {what}, in row {row + 1} (and in {odd.sum()} row(s) in all): "
            "mend the value, or prepare with on_unseen: ignore."
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

        # from a file that anybody may have written: what does not fit would fail far from here
        parts = made.apply(pl.Series(made.name, [None], dtype=pl.String))
        if (tuple(part.name for part in parts), len(made.means)) != (made.outputs, len(parts)):
            raise ValueError(f"the steps of column {made.name!r} do not give its columns")
        return made


def unread(column: pl.Series, state: Fitted) -> tuple[int, object]:
    """How many values of a column its first step cannot read, and the first of them."""
    odd = state.unseen(column)
    if not odd.any():
        return 0, None
    return int(odd.sum()), column[int(odd.arg_true()[0])]


def _unseen(state: Fitted, column: pl.Series, made: list[pl.Series]) -> pl.Series:
    """``state.unseen(column)``, where ``state.apply(column)`` is known: reading millions of texts
    takes seconds."""
    # only of steps that do not say it in a way of their own
    if type(state).unseen is Fitted.unseen:
        return column.is_not_null() & made[0].is_null()
    return state.unseen(column)


def _news(state: Fitted, column: pl.Series, made: list[pl.Series]) -> pl.Series:
    """The same of ``state.news(column)``."""
    if type(state).news is Fitted.news:
        return _unseen(state, column, made)
    return state.news(column)


def _check_reads_some(state: Fitted, column: pl.Series, odd: pl.Series) -> None:
    """Refuse a step that can read none of the values: all would count as missing."""
    known = ~is_gap(column)
    if known.any() and odd.filter(known).all():
        row = int(known.arg_true()[0])
        raise DataError(
            f"Column {column.name!r}: {name_of(type(state))} reads {state.reads}, but none of the "
            f"values is such: row {row + 1} holds {column[row]!r}. Choose another step, such as "
            "one-hot for texts, or auto."
        )


def _applied(states: Sequence[Fitted], parts: Sequence[pl.Series]) -> list[pl.Series]:
    """The columns that these become by one step."""
    made: list[pl.Series] = []
    for state, part in zip(states, parts, strict=True):
        made += state.apply(part)
    return made


def _mean(part: pl.Series) -> float:
    found = part.mean()
    if found is None:  # no training row has a value
        return 0.0
    return float(found)  # type: ignore[arg-type]
