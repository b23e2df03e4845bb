"""The columns of all clients as given, and their preparations, which are fitted on the rows that
are trained on."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.data.prepare.foreign import ForeignPreparation, fit_foreign
from mtcd.data.prepare.preparation import ColumnPreparation, Preparation, decided, fit_columns
from mtcd.data.prepare.recipe import ColumnRecipe, client_recipes
from mtcd.data.prepare.values import as_columns

Places = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class Preparations:
    """The fitted preparations of all clients. ``positions`` tells where their columns as given
    stood originally."""

    parts: tuple[Preparation, ...]
    positions: Places
    notes: tuple[str, ...] = ()

    @property
    def inputs(self) -> tuple[tuple[str, ...], ...]:
        """The columns as given, client by client."""
        return tuple(part.inputs for part in self.parts)

    @property
    def outputs(self) -> tuple[tuple[str, ...], ...]:
        """The columns of the blocks."""
        return tuple(part.outputs for part in self.parts)

    @property
    def places(self) -> Places:
        """The positions of the columns of the blocks: in the order of the columns that they come
        from."""
        # where a column as given became several, these keep their order
        keys: list[list[tuple[int, int, int]]] = []
        for k, (part, given) in enumerate(zip(self.parts, self.positions, strict=True)):
            keys.append([(given[source], k, j) for j, source in enumerate(part.sources)])

        rank = {key: i for i, key in enumerate(sorted(itertools.chain(*keys)))}
        return tuple(tuple(rank[key] for key in own) for own in keys)

    def apply(self, frames: Sequence[pl.DataFrame]) -> tuple[Array, ...]:
        """The blocks of new samples."""
        return tuple(part.apply(frame) for part, frame in zip(self.parts, frames, strict=True))

    def notes_on_new(self, clients: Sequence[str], frames: Sequence[pl.DataFrame]) -> list[str]:
        """Sentences for the user about values of new samples that are not as in the training rows,
        by client."""
        notes = []
        for client, part, frame in zip(clients, self.parts, frames, strict=True):
            own = part.notes_on_new(frame)
            notes += [f"{client}: {note}" for note in own]
        return notes

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            "clients": [part.to_json() for part in self.parts],
            "positions": [list(places) for places in self.positions],
        }

    @staticmethod
    def from_json(stored: Mapping[str, Any], trusted: Sequence[str] = ()) -> Preparations:
        """All of it again. Raises ValueError, KeyError or TypeError."""
        parts = tuple(preparation_from_json(part, trusted) for part in stored["clients"])
        made = Preparations(parts, tuple(tuple(map(int, places)) for places in stored["positions"]))
        if [len(names) for names in made.inputs] != [len(places) for places in made.positions]:
            raise ValueError("the preparations do not have the columns that they name")
        return made


@dataclass(frozen=True, eq=False)
class RawColumns:
    """The columns of all clients before preparation, and what is to be done with them."""

    clients: tuple[str, ...]
    frames: tuple[pl.DataFrame, ...]
    positions: Places
    recipes: tuple[Any, ...]

    @staticmethod
    def of(
        clients: Sequence[str], frames: Sequence[pl.DataFrame], positions: Places, prepare: Any
    ) -> RawColumns:
        """With ``prepare`` as in :func:`mtcd.split`."""
        recipes = client_recipes(prepare, clients, [frame.columns for frame in frames])
        given = tuple(as_columns(frame) for frame in frames)
        known = []
        for client, frame, recipe in zip(clients, given, recipes, strict=True):
            if isinstance(recipe, ColumnRecipe) and frame.height:
                # by all rows, before any split: folds must not read a column in two ways
                recipe = decided(client, frame, recipe)
            known.append(recipe)
        return RawColumns(tuple(clients), given, positions, tuple(known))

    def take(self, rows: NDArray[np.intp]) -> RawColumns:
        """These rows, in this order."""
        return replace(self, frames=tuple(frame[rows] for frame in self.frames))

    def fit(self, labels: NDArray[np.generic]) -> tuple[Preparations, tuple[Array, ...]]:
        """The preparations fitted on all rows, with notes for the user, and the blocks of these
        rows."""
        parts = []
        blocks = []
        notes: list[str] = []
        for client, frame, recipe in zip(self.clients, self.frames, self.recipes, strict=True):
            part, block, own_notes = fit_preparation(client, frame, recipe, labels)
            parts.append(part)
            blocks.append(block)
            notes += own_notes
        return Preparations(tuple(parts), self.positions, tuple(notes)), tuple(blocks)


def fit_preparation(
    client: str, frame: pl.DataFrame, recipe: Any, labels: NDArray[np.generic]
) -> tuple[Preparation, Array, list[str]]:
    """The preparation of one client, the block of its training rows, and notes for the user."""
    if isinstance(recipe, ColumnRecipe):
        return fit_columns(client, frame, recipe)
    return fit_foreign(client, frame, recipe, labels)


def preparation_from_json(stored: Mapping[str, Any], trusted: Sequence[str] = ()) -> Preparation:
    """A preparation of either kind. Raises ValueError, KeyError or TypeError."""
    if stored["kind"] == "skops":
        return ForeignPreparation.from_json(dict(stored), trusted)
    return ColumnPreparation.from_json(dict(stored))
