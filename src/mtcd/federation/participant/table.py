"""A party's table: its rows, their ids and, at the label holder, labels and weights. It stays on
the party's host."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, DataError, did_you_mean
from mtcd.data.checks import check_weights
from mtcd.data.prepare import ColumnRecipe
from mtcd.data.prepare.recipe import client_recipes
from mtcd.data.prepare.values import as_column
from mtcd.data.shares import check_owned_once
from mtcd.data.table_files import Table, read_table
from mtcd.data.table_values import check_features, feature, labels_of
from mtcd.data.tables import listed_columns
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.participant.kinds import party_kind

Labels = NDArray[np.generic]
GIVEN_ORDER = "given order"
HOW_TO_LEAVE_OUT = "name the columns to use: --columns"


class ColumnsError(DataError):
    """The table can be read, but its columns cannot be used."""


class LabelsError(DataError):
    """The columns of labels or weights are missing, or cannot be used."""


class LossError(ConfigError):
    """A loss of the user's own contradicts itself."""


@dataclass(frozen=True, eq=False)
class PartyTable:
    """A table in memory, in the order of the file. ``ids`` is None with ``alignment: given
    order``."""

    path: Path
    ids: tuple[str, ...] | None
    columns: tuple[str, ...]
    values: Array
    labels: Labels | None = None
    notes: tuple[str, ...] = ()
    frame: pl.DataFrame | None = None
    """The columns as given, where they are to be prepared; ``values`` has no columns then."""
    recipe: ColumnRecipe | None = None
    weights: Array | None = None
    true_labels: Labels | None = None
    """Where ``labels`` are those that others may see instead: the labels of the table, which stay
    here."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(self.values)

    def take(self, rows: Sequence[int]) -> PartyTable:
        """The columns of these rows, in this order."""
        frame = None if self.frame is None else self.frame[list(rows)]
        return replace(self, values=self.values[list(rows)], frame=frame)


def own_table(
    config: BundleConfig,
    folder: Path,
    data: Path | None = None,
    key: str | None = None,
    columns: Sequence[str] | None = None,
    label: str | None = None,
    prepare: Any = None,
    weights: str | None = None,
) -> PartyTable:
    """The table of the party whose bundle is in ``folder``; arguments override the bundle.

    ``key`` is the id column. Without ``columns``, all columns but those of ids, labels and weights
    are used.
    """
    path = data if data is not None else _beside(folder, config.data.table)
    if path is None:
        raise DataError(
            f"The bundle of {config.name!r} names no table: give one with --data table.csv."
        )
    return read_party_table(
        path,
        config.name,
        id_column(config, key),
        config.data.columns if columns is None else columns,
        # The order of the checks is that of a person's way through the table: file, labels,
        # columns.
        _label_column(config, label),
        HOW_TO_LEAVE_OUT,
        _recipe(config) if prepare is None else prepare,
        _weight_column(config, weights),
    )


def _recipe(config: BundleConfig) -> Any:
    """How the party prepares its columns: as its bundle says, or as its kind of model takes
    them."""
    if config.data.prepare is not None:
        return config.data.prepare
    return party_kind(config.model).recipe(config)


def read_party_table(
    path: Path,
    party: str,
    key: str | None,
    columns: Sequence[str] | None,
    label: str | None = None,
    way_out: str | None = None,
    prepare: Any = None,
    weight: str | None = None,
) -> PartyTable:
    """Read a table with these columns; for new samples, those of the block, all of which are
    required.

    With ``prepare``, a recipe for the columns, they may hold anything.
    """
    table = read_table(Path(path), key, None if prepare is None else (label, weight))
    # Each step runs under the kind of its error. Other parties are told the kind alone, as the text
    # may show values of the table.
    with _raised_as(LabelsError):
        if weight in (label, key) and weight is not None:
            raise DataError(
                f"Column {weight!r} cannot be the weight and the label or the id: name another "
                "(--weights)."
            )
        for role, name, option in (("label", label, "--label"), ("weight", weight, "--weights")):
            if name is not None and name not in table.columns:
                raise DataError(
                    f"{path} has no {role} column {name!r}: {did_you_mean(name, table.columns)} "
                    f"({option})"
                )
    with _raised_as(ColumnsError):
        used = _used_columns(table, party, key, columns, {label: "the label", weight: "the weight"})
    with _raised_as(LabelsError):
        weights = None
        if weight is not None:
            weights = _weights(table, weight)
        labels: Labels | None = None
        notes: Sequence[str] = ()
        if label is not None:
            labels, notes = labels_of(table.path, table.columns.pop(label))
    ids = None if key is None else tuple(table.ids["id"].to_list())
    with _raised_as(ColumnsError):
        if prepare is not None:
            # Texts and dates stay as they are until all parties are agreed on the rows: a recipe is
            # fitted to the rows that are trained on, not to the held-out ones.
            (recipe,) = client_recipes(prepare, [party], [used])
            frame = pl.DataFrame([as_column(table.columns.pop(column)) for column in used])
            nothing = np.empty((table.rows, 0))
            return PartyTable(
                table.path, ids, tuple(used), nothing, labels, tuple(notes), frame, recipe, weights
            )
        check_features(
            table.path, [table.columns[column] for column in used], "--prepare auto", way_out
        )
        # Column by column, each removed from the table as it is copied: the table is in memory
        # once.
        values = np.empty((table.rows, len(used)), order="F")
        for j, column in enumerate(used):
            values[:, j] = feature(table.path, table.columns.pop(column), way_out)
    return PartyTable(table.path, ids, tuple(used), values, labels, tuple(notes), weights=weights)


@contextmanager
def _raised_as(kind: type[DataError]) -> Iterator[None]:
    """Raise an error on data as this kind: others are told what it is about, but not its text."""
    try:
        yield
    except DataError as error:
        # With the cause, and not with the error itself: its text is in the new one.
        raise kind(str(error)) from error.__cause__


def _weights(table: Table, column: str) -> Array:
    """The weights of all rows of the table."""
    weights = feature(table.path, table.columns.pop(column), None)
    try:
        check_weights(weights, table.rows)
    except DataError as error:
        raise DataError(f"Column {column!r} of {table.path}: {error}") from None
    return weights


def _used_columns(
    table: Table,
    party: str,
    key: str | None,
    columns: Sequence[str] | None,
    roles: Mapping[str | None, str],
) -> list[str]:
    barred = {name: role for name, role in roles.items() if name is not None}
    if columns is None:
        used = [column for column in table.columns if column not in barred]
    else:
        used = listed_columns(party, table, columns, barred, key)
        # A column that is listed twice would be two features that differ in nothing.
        check_owned_once({party: used})
    if not used:
        raise DataError(
            f"No column of {table.path} is left to train on: {party!r} needs one besides id and "
            "label."
        )
    return used


def id_column(config: BundleConfig, key: str | None) -> str | None:
    """The id column; None with ``alignment: given order``, which ignores ids."""
    # An option that does nothing is refused: the user believes that samples are matched.
    if config.alignment == GIVEN_ORDER:
        if key is not None:
            raise ColumnsError(
                f"--id {key}: 'alignment: given order' does not use ids. Leave --id out."
            )
        return None
    found = config.data.id if key is None else key
    if found is None:
        raise ColumnsError(
            f"The bundle of {config.name!r} does not name the column with the ids, on which "
            "samples are aligned: name it, for example with --id patient."
        )
    return found


def _label_column(config: BundleConfig, label: str | None) -> str | None:
    """The label column; None if another party holds the labels."""
    if config.name != config.labels.held_by:
        if label is not None:
            raise LabelsError(
                f"--label {label}: {config.labels.held_by!r} holds the labels. Leave --label out."
            )
        return None
    found = config.labels.column if label is None else label
    if found is None:
        raise LabelsError(
            f"{config.name!r} holds the labels, but the bundle does not name their column: name "
            "it, for example with --label outcome."
        )
    return found


def _weight_column(config: BundleConfig, weights: str | None) -> str | None:
    """The column of weights; None if there is none, or another party holds the labels."""
    if config.name != config.labels.held_by and weights is not None:
        raise LabelsError(
            f"--weights {weights}: weights come with the labels, which {config.labels.held_by!r} "
            "holds. Leave --weights out."
        )
    found = config.labels.weights if weights is None else weights
    if found is not None and (why := party_kind(config.model).no_weights):
        raise ConfigError(f"--weights {found}: {why}")
    return found


def _beside(folder: Path, table: Path | None) -> Path | None:
    """Resolve the table of a bundle: relative to the bundle's folder first, then to the current
    folder."""
    if table is None:
        return None
    beside = folder / table
    # A path that exists in neither folder is left at the bundle, whose name the error then shows.
    if os.path.exists(beside) or not os.path.exists(table):
        return beside
    return table
