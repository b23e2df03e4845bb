"""The preparation of a client: from its columns as given to its block, fitted on its own training
rows."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, listing
from mtcd.data.prepare.automatic import kind_of_column, notes_on
from mtcd.data.prepare.column import Odd, PreparedColumn, unread
from mtcd.data.prepare.kinds import Kind, OpenChoiceError
from mtcd.data.prepare.recipe import ColumnRecipe
from mtcd.data.prepare.settings import Auto
from mtcd.data.prepare.transformer import NEW_CATEGORY

FORMAT = 1
FEW = 3  # columns of a client with a note each on values that cannot be read
MOST = 100  # columns in a note


class Preparation(ABC):
    """A fitted preparation. New samples are prepared as the training rows were."""

    inputs: tuple[str, ...]
    """The columns as given."""
    outputs: tuple[str, ...]
    """The columns of the block."""
    sources: tuple[int, ...]
    """For each column of the block, the column as given that it comes from; the first, where that
    is not known."""

    keeps_missing = False
    """Whether the block has NaN where a value is missing."""

    @property
    def categorical(self) -> tuple[int, ...]:
        """The columns of the block that hold the numbers of categories."""
        return ()

    @abstractmethod
    def apply(self, frame: pl.DataFrame) -> Array:
        """The block of new samples, from their columns as given."""

    def notes(self, frame: pl.DataFrame) -> list[str]:
        """Sentences for the user about values that cannot be read, or that no training row has."""
        return []

    def notes_on_new(self, frame: pl.DataFrame) -> list[str]:
        """The same about new samples: also about values that are missing where those of no training
        row are."""
        return self.notes(frame)

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """The preparation as plain values."""


@dataclass(frozen=True)
class ColumnPreparation(Preparation):
    """Every column by its own steps: the built-in transformers."""

    columns: tuple[PreparedColumn, ...]
    refuse_unseen: bool = False
    keeps_missing: bool = False

    @property
    def categorical(self) -> tuple[int, ...]:
        return tuple(j for j, k in enumerate(self.sources) if self.columns[k].categorical)

    @property
    def inputs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns as given."""
        return tuple(column.name for column in self.columns)

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of the block."""
        return tuple(itertools.chain.from_iterable(column.outputs for column in self.columns))

    @property
    def sources(self) -> tuple[int, ...]:  # type: ignore[override]
        """For each column of the block, the column that it comes from."""
        sources: list[int] = []
        for j, column in enumerate(self.columns):
            sources += [j] * len(column.outputs)
        return tuple(sources)

    def apply(self, frame: pl.DataFrame) -> Array:
        parts: list[pl.Series] = []
        for column in self.columns:
            given = frame[column.name]
            if self.refuse_unseen:
                column.refuse_unseen(given)
            if self.keeps_missing:
                parts += column.apply(given)
            else:
                parts += column.filled(given)
        return _block(parts)

    def notes(self, frame: pl.DataFrame) -> list[str]:
        odd: list[Odd] = []
        for column in self.columns:
            odd += column.odd(frame[column.name])
        return odd_notes(odd)

    def notes_on_new(self, frame: pl.DataFrame) -> list[str]:
        notes = self.notes(frame)
        if self.keeps_missing:
            return notes
        known = [column.name for column in self.columns if not column.had_missing]
        lost = {name: frame[name].null_count() for name in known}
        shown = [f"{name} ({count:,})" for name, count in lost.items() if count]
        if shown:
            notes.append(
                f"Values are missing, and filled in, that no training row misses: "
                f"{listing(shown, MOST)}."
            )
        return notes

    def to_json(self) -> dict[str, Any]:
        stored: dict[str, Any] = {
            "format": FORMAT,
            "kind": "columns",
            "columns": [column.to_json() for column in self.columns],
            "on_unseen": "ignore",
        }
        if self.refuse_unseen:
            stored["on_unseen"] = "error"
        if self.keeps_missing:
            # only where it is so: other preparations stay readable by older versions
            stored["missing"] = "keep"
        return stored

    @staticmethod
    def from_json(stored: dict[str, Any]) -> ColumnPreparation:
        """The preparation again. Raises ValueError, KeyError or TypeError."""
        if (stored["format"], stored["kind"]) != (FORMAT, "columns"):
            raise ValueError(
                f"a preparation of format {stored['format']} and kind {stored['kind']!r}"
            )
        columns = tuple(PreparedColumn.from_json(column) for column in stored["columns"])
        return ColumnPreparation(
            columns, stored["on_unseen"] == "error", stored.get("missing") == "keep"
        )


def decided(client: str, frame: pl.DataFrame, recipe: ColumnRecipe) -> ColumnRecipe:
    """The recipe with what the columns that are prepared automatically hold, from all rows there
    are.

    So a single row decides for all, whether it is trained on or not: folds and held-out rows are
    read alike.
    """
    kinds: dict[str, Kind] = {}
    still_open: dict[str, str] = {}
    for name in frame.columns:
        steps = recipe.steps(name)
        if not isinstance(steps, Auto):
            continue
        try:
            kinds[name] = kind_of_column(frame[name], steps)
        except OpenChoiceError as error:  # all of them are told at once
            still_open[name] = str(error)
    if still_open:
        raise _open_choices(client, still_open)
    return replace(recipe, kinds=kinds)


def fit_columns(
    client: str, frame: pl.DataFrame, recipe: ColumnRecipe
) -> tuple[ColumnPreparation, Array, list[str]]:
    """The preparation of a client fitted on its training rows, their block, and notes for the
    user."""
    if not recipe.kinds:
        recipe = decided(client, frame, recipe)
    columns = []
    parts = []
    notes = []
    missing: dict[str, int] = {}
    choices = []
    for name in frame.columns:
        given, steps = frame[name], recipe.steps(name)
        column, made, choice = PreparedColumn.fit(
            given, steps, recipe.keeps_missing, recipe.kinds.get(name)
        )

        columns.append(column)
        parts += made
        if choice is not None:
            choices.append(choice)
        # no error: other samples may have values, and a constant column does no harm
        if given.null_count() == frame.height:
            notes.append(f"Column {name!r} has no value in any training row.")

        lost = max(part.null_count() for part in made)
        if lost and not recipe.keeps_missing:
            odd, first = unread(given, column.steps[0][0])
            example = ""
            if odd:
                example = f", such as {first!r}"
            missing[f"{name} ({lost:,}{example})"] = lost

    if missing:
        raise _still_missing(client, missing, frame.height)

    preparation = ColumnPreparation(tuple(columns), recipe.refuse_unseen, recipe.keeps_missing)
    # one-hot columns may be named as another column already is
    check_outputs(client, preparation.outputs)
    notes += [*notes_on(choices, client), *preparation.notes(frame)]
    return preparation, _block(parts), notes


def _still_missing(client: str, missing: Mapping[str, int], rows: int) -> DataError:
    """One error for all columns that are left with missing values, by what is said of each."""
    total = sum(missing.values())
    values, are = "values", "are"
    if total == 1:
        values, are = "value", "is"
    return DataError(
        f"{total:,} {values} of client {client!r} {are} still missing after preparation, of "
        f"{rows:,} rows each: {listing(list(missing))}. Add impute to the steps of these columns, "
        "or prepare them automatically (auto)."
    )


def _open_choices(client: str, errors: Mapping[str, str]) -> DataError:
    """One error for all columns that can be read in several ways; without values for other
    parties."""
    return DataError(
        f"Client {client!r}: {' '.join(errors.values())}",
        shared=f"Client {client!r} has columns that can be read in several ways, and must say how: "
        f"{listing([repr(name) for name in errors])}.",
    )


def odd_notes(odd: Sequence[Odd]) -> list[str]:
    """A sentence for each column with odd values, or one for all, where they are many."""
    # by what is said of them together; a dict keeps the order of the columns
    alike: dict[tuple[str, str], list[Odd]] = {}
    for one in odd:
        what = "cannot be read"
        if one.what == NEW_CATEGORY:
            what = f"are {NEW_CATEGORY}"
        alike.setdefault((what, one.instead), []).append(one)

    notes = []
    for (what, instead), same in alike.items():
        # a sentence each while they are few, one for all otherwise: notes must stay readable
        if len(same) <= FEW:
            notes += [_odd_note(one) for one in same]
            continue

        shown = [f"{one.column} ({one.count:,}, such as {one.example!r})" for one in same]
        total = sum(one.count for one in same)
        notes.append(
            f"{total:,} values of {len(same)} columns {what} and {instead}: {listing(shown, MOST)}."
        )
    return notes


def _odd_note(one: Odd) -> str:
    all_of_them = ""
    if one.count == one.total and one.total > 1:
        all_of_them = " (all of them)"
    return (
        f"{one.count} value(s) of column {one.column!r}{all_of_them} that are {one.what}, such as "
        f"{one.example!r}, {one.instead}."
    )


def check_outputs(client: str, names: Sequence[str]) -> None:
    """Reject two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(
            f"Preparation gives client {client!r} two columns {twice!r}: rename one of its columns."
        )


def _block(parts: Sequence[pl.Series]) -> Array:
    """The columns side by side, column-major."""
    block = np.empty((len(parts[0]), len(parts)), order="F")
    for j, part in enumerate(parts):
        block[:, j] = part.to_numpy()
    return block
