"""What is to be done with the columns of a client, as it is given in a config or in Python."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtcd.core.errors import ConfigError, check_known, did_you_mean
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
        check_known(key, KEYS, f"prepare has no key {key!r}:")

    columns = given.get("columns") or {}
    if not isinstance(columns, Mapping):
        raise ConfigError(
            f"prepare.columns must map names of columns to steps, but is {columns!r}."
        )
    unseen = _one_of(given, "on_unseen", ("ignore", "error"))
    missing = _one_of(given, "missing", ("impute", "keep"))

    steps = {str(name): read_steps(what) for name, what in columns.items()}
    default = read_steps(given.get("default", AUTO))
    return ColumnRecipe(steps, default, unseen == "error", missing == "keep")


def _one_of(given: Mapping[str, Any], key: str, values: tuple[str, str]) -> Any:
    """The value of a key with two values, the first unless given."""
    first, second = values
    value = given.get(key, first)
    if value not in values:
        raise ConfigError(f"prepare.{key} must be '{first}' or '{second}', but is {value!r}.")
    return value


def read_steps(given: Any) -> Steps:
    """The steps of a column: a name, ``{name: settings}``, or a list of these; ``auto`` stands
    alone."""
    steps = [given]
    if isinstance(given, Sequence) and not isinstance(given, str):
        steps = list(given)
    if not steps:
        raise ConfigError(
            "prepare: a column has an empty list of steps: write keep to take its numbers as they "
            "are."
        )

    if len(steps) == 1:
        auto = _auto(steps[0])
        if auto is not None:
            return auto
    return tuple(_step(step) for step in steps)


def _auto(given: Any) -> Auto | None:
    """The settings of the automatic choice, if that is what is given."""
    if isinstance(given, Auto):
        return given
    if given == AUTO:
        return Auto()
    if isinstance(given, Mapping) and list(given) == [AUTO]:
        return read_auto(given[AUTO])
    return None


def _step(given: Any) -> Transformer:
    if isinstance(given, Transformer):
        return given
    # beside other steps, it is not clear which of them would see its columns
    if given == AUTO or (isinstance(given, Mapping) and AUTO in given):
        raise ConfigError(
            "prepare: auto chooses all steps of a column: it stands alone, without other steps."
        )

    name, settings = given, None
    shown = given

    if isinstance(given, Mapping):
        shown = dict(given)
        if len(given) == 1:
            name, settings = next(iter(given.items()))
    # a mapping of several keys is no name either
    if not isinstance(name, str) or not isinstance(settings, Mapping | None):
        raise ConfigError(f"prepare: a step is a name or {{name: settings}}, but is {shown!r}.")
    return make_transformer(name, {str(key): value for key, value in (settings or {}).items()})


def client_recipes(
    given: Any, clients: Sequence[str], held: Iterable[Sequence[str]]
) -> tuple[Any, ...]:
    """One for each client: a :class:`ColumnRecipe`, or an object with ``fit`` and ``transform`` of
    scikit-learn.

    ``given`` is one recipe for all, or a mapping from clients to recipes or transformers; clients
    that it does not name have ``auto``.
    """
    columns = [list(names) for names in held]
    # keys that are none of a recipe are names of clients
    if isinstance(given, Mapping) and not set(given) <= set(KEYS):
        _check_clients(given, clients)
        recipes = [given.get(client, AUTO) for client in clients]
    else:
        # a recipe for all names columns of any of them
        recipes = [given] * len(clients)
        columns = [list(itertools.chain(*columns))] * len(clients)

    found = []
    for recipe, names in zip(recipes, columns, strict=True):
        if not is_foreign(recipe):
            recipe = read_recipe(recipe)
        found.append(recipe)
        if isinstance(recipe, ColumnRecipe):
            _check_columns(recipe, names)
    return tuple(found)


def _check_clients(given: Mapping[Any, Any], clients: Sequence[str]) -> None:
    for name in given:
        if name not in clients:
            hint = did_you_mean(str(name), [*clients, *KEYS])
            raise ConfigError(
                f"prepare names {name!r}, which is neither a client nor a key of prepare: {hint}"
            )


def is_foreign(given: Any) -> bool:
    """Whether this is a transformer as those of scikit-learn."""
    # by its methods: scikit-learn need not be installed. A class, not yet called, is a slip
    return hasattr(given, "fit") and hasattr(given, "transform") and not isinstance(given, type)


def _check_columns(recipe: ColumnRecipe, names: Sequence[str]) -> None:
    for column in recipe.columns:
        if column not in names:
            raise ConfigError(
                f"prepare.columns names {column!r}, which no client holds; "
                f"{did_you_mean(column, names)}"
            )
