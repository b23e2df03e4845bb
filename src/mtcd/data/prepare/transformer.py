"""Transformers: the settings of one step of a column's preparation, and the state that it has after
fitting.

Each is a file in ``transformers``: a frozen dataclass of settings, registered under its name, whose
``fit`` gives a frozen dataclass of fitted state. Both are plain values, so that they are read from
a config and kept as JSON. One class is both where there is nothing to fit (:class:`Stateless`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import asdict
from datetime import date
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Self

import polars as pl

from mtcd.core.errors import ConfigError, did_you_mean
from mtcd.core.registry import Registry

if TYPE_CHECKING:
    from pydantic import TypeAdapter


NEW_CATEGORY = "of no category in the training rows"


class Fitted(ABC):
    """The state of a step, fitted on the training rows of one column."""

    knows_categories: ClassVar[bool] = False
    """Whether it knows all categories of the training rows, so that another one is unseen."""
    categorical: ClassVar[bool] = False
    """Whether it gives numbers of categories, whose order means nothing."""
    reads: ClassVar[str] = "numbers"
    unread: ClassVar[str] = "no numbers"
    """What it reads, and what a value is that it cannot read, for messages."""
    instead: ClassVar[str] = "count as missing"
    """What is done with such values."""

    @abstractmethod
    def apply(self, column: pl.Series) -> list[pl.Series]:
        """The columns that this one becomes; null where a value cannot be given."""

    def unseen(self, column: pl.Series) -> pl.Series:
        """Whether each value is there, but cannot be read or, where categories are known, is none
        of them."""
        return column.is_not_null() & self.apply(column)[0].is_null()

    def news(self, column: pl.Series) -> pl.Series:
        """Whether each value is one that the user is told of: it is unseen, or was in no training
        row."""
        return self.unseen(column)


class Transformer(ABC):
    """The settings of a step. ``fitted`` is the class of its state."""

    fitted: ClassVar[type[Fitted]]

    @abstractmethod
    def fit(self, column: pl.Series) -> Fitted:
        """The state, from the training rows of a column."""


class Stateless(Transformer, Fitted):
    """A transformer that has nothing to fit: it is its own state."""

    def __init_subclass__(cls) -> None:
        cls.fitted = cls

    def fit(self, column: pl.Series) -> Self:
        return self


TRANSFORMERS: Registry[type[Transformer]] = Registry(
    Transformer,
    "mtcd.transformers",
    "mtcd.data.prepare.transformers",
    "prepare: no transformer is called '{}';",
)


def make_transformer(name: str, settings: dict[str, Any]) -> Transformer:
    """A transformer by its name, with these settings."""
    from pydantic import ValidationError

    kind = TRANSFORMERS[name]
    plain = {
        key: value.isoformat() if isinstance(value, date) else value
        for key, value in settings.items()
    }
    try:
        made: Transformer = _adapter(kind).validate_python(plain)
        return made
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0]) if first["loc"] else ""
        # plugins need not be dataclasses
        known = list(getattr(kind, "__dataclass_fields__", {}))
        if known and key not in known:
            raise ConfigError(
                f"prepare: {name} has no setting {key!r}; {did_you_mean(key, known)}"
            ) from None
        if not known:
            raise ConfigError(f"prepare: {name} has no settings: leave {key!r} out.") from None
        raise ConfigError(
            f"prepare: {name}: {key} {first['msg'].removeprefix('Input ')}, but is "
            f"{first['input']!r}."
        ) from None


@cache
def name_of(kind: type[Fitted]) -> str:
    """The name of the transformer with such a state."""
    return next(
        name for name, transformer in TRANSFORMERS.usable().items() if transformer.fitted is kind
    )


def state_to_json(state: Fitted) -> dict[str, Any]:
    """The fitted state as plain values."""
    return {"kind": name_of(type(state)), **asdict(state)}  # type: ignore[call-overload]


def state_from_json(stored: dict[str, Any]) -> Fitted:
    """The fitted state again; every value is checked. Raises ValueError."""
    values = dict(stored)
    kind = values.pop("kind")
    if not isinstance(kind, str) or kind not in TRANSFORMERS:
        raise ValueError(f"there is no transformer {kind!r}")
    try:
        # checked like settings: the file may be from anybody
        state: Fitted = _adapter(TRANSFORMERS[kind].fitted).validate_python(values)
    except ConfigError as error:  # of a transformer that is its own state
        raise ValueError(str(error)) from None
    return state


@cache
def _adapter(kind: type) -> TypeAdapter[Any]:
    """The checks of a dataclass by its types; pydantic takes a while to import, and few need it."""
    from pydantic import ConfigDict, TypeAdapter

    if "__pydantic_config__" not in vars(kind):
        checked = ConfigDict(extra="forbid", coerce_numbers_to_str=True, allow_inf_nan=False)
        kind.__pydantic_config__ = checked  # type: ignore[attr-defined]
    return TypeAdapter(kind)
