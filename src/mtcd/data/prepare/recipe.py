"""What is to be done with the columns of a client, as it is given in a config or in Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtcd.core.errors import ConfigError, did_you_mean
from mtcd.data.prepare.kinds import Kind
from mtcd.data.prepare.settings import Auto, read_auto
from mtcd.data.prepare.transformer import Transformer, make_transformer

AUTO, TREES = "auto", "trees"
KEYS = ("columns", "default", "on_unseen", "missing")
Steps = tuple[Transformer, ...] | Auto
"""The steps of a column, or the settings of the automatic choice."""


@dataclass(frozen=True)
class ColumnRecipe:
    """The steps of some columns by name, and of all others."""

    columns: Mapping[str, Steps] = field(default_factory=dict)
    default: Steps = field(default_factory=Auto)
    refuse_unseen: bool = False
    keeps_missing: bool = False
    """Whether missing values stay missing, for trees; the automatic choice of steps is then that of
    trees."""
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """What columns that are prepared automatically hold, where that was decided from more rows than
    those to fit."""

    def steps(self, column: str) -> Steps:
        """The steps of a column."""
        return self.columns.get(column, self.default)


def read_recipe(given: Any) -> ColumnRecipe:
    """The recipe from ``auto``, ``trees`` or a mapping.

    ``{columns: {name: steps}, default: steps, on_unseen: ignore | error, missing: impute | keep}``;
    ``trees`` is short for ``{missing: keep}``.
    """
    if given == AUTO:
        return ColumnRecipe()
    if given == TREES:
        return ColumnRecipe(keeps_missing=True)
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"prepare must be 'auto', 'trees' or a mapping with the key columns, but is {given!r}."
        )
    for key in given:
        if key not in KEYS:
            raise ConfigError(f"prepare has no key {key!r}: {did_you_mean(str(key), KEYS)}")
    columns = given.get("columns") or {}
    unseen = given.get("on_unseen", "ignore")
    if not isinstance(columns, Mapping):
        raise ConfigError(
            f"prepare.columns must map names of columns to steps, but is {columns!r}."
        )
    if unseen not in ("ignore", "error"):
        raise ConfigError(f"prepare.on_unseen must be 'ignore' or 'error', but is {unseen!r}.")
    if given.get("missing", "impute") not in ("impute", "keep"):
        raise ConfigError(
            f"prepare.missing must be 'impute' or 'keep', but is {given['missing']!r}."
        )
    steps = {str(name): read_steps(what) for name, what in columns.items()}
    return ColumnRecipe(
        steps,
        read_steps(given.get("default", AUTO)),
        unseen == "error",
        given.get("missing") == "keep",
    )


def read_steps(given: Any) -> Steps:
    """The steps of a column: a name, ``{name: settings}``, or a list of these; ``auto`` stands
    alone."""
    alone = given[0] if isinstance(given, list | tuple) and len(given) == 1 else given
    if alone == AUTO:
        return Auto()
    if isinstance(alone, Auto):
        return alone
    if isinstance(alone, Mapping) and list(alone) == [AUTO]:
        return read_auto(alone[AUTO])
    steps = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    if not steps:
        raise ConfigError(
            "prepare: a column has an empty list of steps: write keep to take its numbers as they "
            "are."
        )
    return tuple(_step(step) for step in steps)


def _step(given: Any) -> Transformer:
    if isinstance(given, Transformer):
        return given
    if given == AUTO or (isinstance(given, Mapping) and AUTO in given):
        raise ConfigError(
            "prepare: auto chooses all steps of a column: it stands alone, without other steps."
        )
    if isinstance(given, Mapping):
        if len(given) != 1:
            raise ConfigError(
                f"prepare: a step is a name or {{name: settings}}, but is {dict(given)!r}."
            )
        name, settings = next(iter(given.items()))
    else:
        name = given
        settings = {}
    if not isinstance(name, str) or not isinstance(settings, Mapping | None):
        raise ConfigError(f"prepare: a step is a name or {{name: settings}}, but is {given!r}.")
    return make_transformer(name, {str(key): value for key, value in (settings or {}).items()})


def client_recipes(
    given: Any, clients: Sequence[str], held: Iterable[Sequence[str]]
) -> tuple[Any, ...]:
    """One for each client: a :class:`ColumnRecipe`, or an object with ``fit`` and ``transform`` of
    scikit-learn.

    ``given`` is one recipe for all, or a mapping from clients to recipes or transformers; clients
    that it does not name have ``auto``.
    """
    each = isinstance(given, Mapping) and given and not set(given) <= set(KEYS)
    if each and (unknown := [name for name in given if name not in clients]):
        hint = did_you_mean(str(unknown[0]), [*clients, *KEYS])
        raise ConfigError(
            f"prepare names {unknown[0]!r}, which is neither a client nor a key of prepare: {hint}"
        )
    found = []
    for client in clients:
        own = given.get(client, AUTO) if each else given
        found.append(own if is_foreign(own) else read_recipe(own))
    columns = [list(names) for names in held]
    for recipe, names in zip(found, columns, strict=True):
        if isinstance(recipe, ColumnRecipe):
            _check_columns(recipe, names if each else [name for own in columns for name in own])
    return tuple(found)


def is_foreign(given: Any) -> bool:
    """Whether this is a transformer as those of scikit-learn."""
    return hasattr(given, "fit") and hasattr(given, "transform") and not isinstance(given, type)


def _check_columns(recipe: ColumnRecipe, names: Sequence[str]) -> None:
    for column in recipe.columns:
        if column not in names:
            raise ConfigError(
                f"prepare.columns names {column!r}, which no client holds; "
                f"{did_you_mean(column, names)}"
            )
