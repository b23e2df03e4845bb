"""The automatic choice of steps for a column, by its type and its training values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from mtcd.core.errors import listing
from mtcd.data.prepare.kinds import Kind, kind_of, kind_of_integers
from mtcd.data.prepare.settings import Auto
from mtcd.data.prepare.transformer import Transformer, make_transformer
from mtcd.data.prepare.values import is_category, is_text, is_time, texts

MOST_CATEGORIES = 40
"""Texts with more distinct values are hashed."""
HASHED = 32
"""Into so many columns."""


@dataclass(frozen=True)
class Choice:
    """The steps that were chosen for a column, and why: ``categories`` is the number of distinct
    texts of a column of texts, with an ``example``.
    """

    column: str
    steps: tuple[Transformer, ...]
    kind: Kind
    categories: int = 0
    example: str = ""
    hashed: bool = False


def automatic(
    column: pl.Series,
    auto: Auto | None = None,
    keep_missing: bool = False,
    kind: Kind | None = None,
) -> Choice:
    """Numbers: impute the median, standardise. Dates: the same for their parts. Texts: by their
    values.

    A column of categories (Categorical, Enum) is one of texts, whatever its values are. With
    ``keep_missing``, for trees: numbers as they are, texts as categories; nothing is imputed.
    ``kind`` is what the column holds, where that is decided already.
    """
    kind = kind or kind_of_column(column, auto or Auto())
    if kind.what in ("texts", "codes"):
        return _of_texts(column, kind, keep_missing)
    return Choice(column.name, _steps(kind, keep_missing), kind)


def kind_of_column(column: pl.Series, auto: Auto) -> Kind:
    """What a column of any type holds.

    Raises:
        OpenChoiceError: its texts can be read in several ways, and ``auto`` does not say which.
    """
    if is_category(column):
        return Kind("texts")
    if is_text(column):
        return kind_of(column, auto)
    if is_time(column):
        return Kind("dates")
    if column.dtype == pl.Boolean:
        return Kind("yes and no")
    if column.dtype.is_integer() and (dates := kind_of_integers(column)) is not None:
        return dates
    return Kind("numbers")


def _steps(kind: Kind, keep_missing: bool) -> tuple[Transformer, ...]:
    """The steps of numbers, of dates, and of yes and no."""
    names = {"dates": "dates", "clock": "clock", "yes and no": "boolean"}
    first: tuple[Transformer, ...] = ()
    if kind.what in names:
        first = (make_transformer(names[kind.what], dict(kind.settings or {})),)
    elif kind.settings is not None:
        first = (make_transformer("number", dict(kind.settings)),)
    if keep_missing:
        return first or (make_transformer("keep", {}),)
    if kind.what == "yes and no":
        return (*first, make_transformer("impute", {"strategy": "most-frequent"}))
    return (*first, make_transformer("impute", {}), make_transformer("standardise", {}))


def _of_texts(column: pl.Series, kind: Kind, keep_missing: bool) -> Choice:
    known = texts(column).drop_nulls()
    distinct = known.n_unique()
    example = known[0] if len(known) else ""
    name = "hash" if distinct > MOST_CATEGORIES else "one-hot"
    if keep_missing:
        name = "categories"
    steps = (make_transformer(name, {"columns": HASHED} if name == "hash" else {}),)
    return Choice(column.name, steps, kind, distinct, example, hashed=name == "hash")


def notes_on(choices: Sequence[Choice], client: str) -> list[str]:
    """Sentences for the user on what was guessed: each kind of guess once, with all columns that it
    is about."""
    notes = []
    for what, called in (
        ("numbers", "numbers"),
        ("dates", "dates"),
        ("clock", "seconds of a time of day"),
    ):
        read = [one.kind.example for one in choices if one.kind.what == what]
        names = [one.column for one in choices if one.kind.what == what]
        shown = [
            f"{name} ({e[0]!r} as {e[1]})"
            for name, e in zip(names, read, strict=True)
            if e is not None
        ]
        if shown:
            notes.append(
                f"Columns of {client!r} are read as {called} in a format of their own: "
                f"{_all(shown)}."
            )
    codes = [one for one in choices if one.kind.what == "codes"]
    if codes:
        shown = [
            f"{one.column} (such as {one.kind.example[0]!r})" for one in codes if one.kind.example
        ]
        notes.append(
            f"Columns of {client!r} with leading zeros are taken as codes, which are categories: "
            f"{_all(shown)}. To take one as numbers, give its steps: [number, impute, standardise]."
        )
    mixed = [
        f"{one.column} ({one.kind.unread:,} values are neither)"
        for one in choices
        if one.kind.unread
    ]
    if mixed:
        notes.append(
            f"Columns of {client!r} that are mostly numbers or dates are taken as categories: "
            f"{_all(mixed)}."
        )
    hashed = [
        f"{one.column} ({one.categories:,} values, such as {one.example!r})"
        for one in choices
        if one.hashed
    ]
    if hashed:
        notes.append(
            f"Columns of {client!r} with more than {MOST_CATEGORIES} categories are hashed into "
            f"{HASHED} columns each, which categories share: {_all(hashed)}."
        )
    return notes


def _all(shown: Sequence[str]) -> str:
    """All of them: what is guessed must not hide behind 'and 4 more'."""
    return listing(shown, len(shown))
