"""The preparation of a client: from its columns as given to its block, fitted on its own training rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from mtcd.arrays import Array
from mtcd.errors import DataError, listing
from mtcd.prepare.column import PreparedColumn, unread
from mtcd.prepare.recipe import Recipe

FORMAT = 1
FEW = 3  # columns of a client with a note each on values that cannot be read


class Preparation(ABC):
    """A fitted preparation. New samples are prepared as the training rows were."""

    inputs: tuple[str, ...]
    """The columns as given."""
    outputs: tuple[str, ...]
    """The columns of the block."""
    sources: tuple[int, ...]
    """For each column of the block, the column as given that it comes from; the first, where that is not known."""

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
        """Sentences for the user about values of new samples that count as missing."""
        return []

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
        kinds = [column.categorical for column in self.columns for _ in column.outputs]
        return tuple(j for j, categorical in enumerate(kinds) if categorical)

    @property
    def inputs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns as given."""
        return tuple(column.name for column in self.columns)

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        """The columns of the block."""
        return tuple(name for column in self.columns for name in column.outputs)

    @property
    def sources(self) -> tuple[int, ...]:  # type: ignore[override]
        """For each column of the block, the column that it comes from."""
        return tuple(j for j, column in enumerate(self.columns) for _ in column.outputs)

    def apply(self, frame: pl.DataFrame) -> Array:
        if self.refuse_unseen:
            for column in self.columns:
                column.refuse_unseen(frame[column.name])
        if self.keeps_missing:
            return _block([part for column in self.columns for part in column.apply(frame[column.name])])
        return _block([part for column in self.columns for part in column.filled(frame[column.name])])

    def notes(self, frame: pl.DataFrame) -> list[str]:
        odd = [(column, *unread(frame[column.name], column.steps[0][0])) for column in self.columns]
        odd = [(column, count, value) for column, count, value in odd if count and column.steps[0][0].unread]
        if len(odd) > FEW:
            shown = listing([f"{column.name} ({count:,}, such as {value!r})" for column, count, value in odd])
            total = sum(count for _, count, _ in odd)
            return [f"{total:,} values of {len(odd)} columns cannot be read and count as missing: {shown}."]
        return [
            f"{count} value(s) of column {column.name!r} that are {column.steps[0][0].unread}, such as {value!r}, "
            "count as missing."
            for column, count, value in odd
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "kind": "columns",
            "columns": [column.to_json() for column in self.columns],
            "on_unseen": "error" if self.refuse_unseen else "ignore",
        } | ({"missing": "keep"} if self.keeps_missing else {})

    @staticmethod
    def from_json(stored: dict[str, Any]) -> ColumnPreparation:
        """The preparation again. Raises ValueError, KeyError or TypeError."""
        if (stored["format"], stored["kind"]) != (FORMAT, "columns"):
            raise ValueError(f"a preparation of format {stored['format']} and kind {stored['kind']!r}")
        columns = tuple(PreparedColumn.from_json(column) for column in stored["columns"])
        return ColumnPreparation(columns, stored["on_unseen"] == "error", stored.get("missing") == "keep")


def fit_columns(client: str, frame: pl.DataFrame, recipe: Recipe) -> tuple[ColumnPreparation, Array, list[str]]:
    """The preparation of a client fitted on its training rows, their block, and notes for the user."""
    columns, parts, notes, missing = [], [], [], {}
    for name in frame.columns:
        column, made = PreparedColumn.fit(frame[name], recipe.steps(name), recipe.keeps_missing)
        columns.append(column)
        parts += made
        if not recipe.keeps_missing and (lost := max(part.null_count() for part in made)):
            odd, first = unread(frame[name], column.steps[0][0])
            missing[name] = lost, f"{name} ({lost:,}, such as {first!r})" if odd else f"{name} ({lost:,})"
        if frame[name].null_count() == frame.height:
            notes.append(f"Column {name!r} has no value in any training row.")
    if missing:
        total, shown = sum(lost for lost, _ in missing.values()), listing([said for _, said in missing.values()])
        values, are = ("value", "is") if total == 1 else ("values", "are")
        raise DataError(
            f"{total:,} {values} of client {client!r} {are} still missing after preparation, of {frame.height:,} rows "
            f"each: {shown}. Add impute to the steps of these columns, or prepare them automatically (auto)."
        )
    preparation = ColumnPreparation(tuple(columns), recipe.refuse_unseen, recipe.keeps_missing)
    check_outputs(client, preparation.outputs)
    return preparation, _block(parts), [*notes, *preparation.notes(frame)]


def check_outputs(client: str, names: Sequence[str]) -> None:
    """Reject two columns of one name."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise DataError(f"Preparation gives client {client!r} two columns {twice!r}: rename one of its columns.")


def _block(parts: Sequence[pl.Series]) -> Array:
    """The columns side by side, column-major."""
    block = np.empty((len(parts[0]), len(parts)), order="F")
    for j, part in enumerate(parts):
        block[:, j] = part.to_numpy()
    return block
