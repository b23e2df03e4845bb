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


GUESSES: dict[str, str] = {
    "numbers": "Columns of {client!r} are read as numbers in a format of their own: {columns}.",
    "dates": "Columns of {client!r} are read as dates in a format of their own: {columns}.",
    "clock": "Columns of {client!r} are read as seconds of a time of day in a format of their own: "
    "{columns}.",
    "codes": "Columns of {client!r} with leading zeros are taken as codes, which are categories: "
    "{columns}. To take one as numbers, give its steps: [number, impute, standardise].",
}
"""The note on columns that are read as this kind, where that was not plain."""
MIXED = "Columns of {client!r} that are mostly numbers or dates are taken as categories: {columns}."
HASHED_ONES = (
    "Columns of {client!r} with more than "
    f"{MOST_CATEGORIES} categories are hashed into {HASHED} columns each, which categories share: "
    "{columns}."
)


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
    # by its type: categories that look like numbers are names all the same
    if is_category(column):
        return Kind("texts")
    if is_text(column):
        return kind_of(column, auto)
    if is_time(column):
        return Kind("dates")
    if column.dtype == pl.Boolean:
        return Kind("yes and no")
    # 20240314 is stored as a number by many programs
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

    # trees sort and split values as they are, with those that are missing on a side of their own
    if keep_missing:
        return first or (make_transformer("keep", {}),)
    # the mean of 0 and 1 is neither: the answer most people gave is
    if kind.what == "yes and no":
        return (*first, make_transformer("impute", {"strategy": "most-frequent"}))
    return (*first, make_transformer("impute", {}), make_transformer("standardise", {}))


def _of_texts(column: pl.Series, kind: Kind, keep_missing: bool) -> Choice:
    known = texts(column).drop_nulls()
    distinct = known.n_unique()
    example = "".join(known.head(1))

    hashed = distinct > MOST_CATEGORIES and not keep_missing
    if keep_missing:
        step = make_transformer("categories", {})
    elif hashed:
        step = make_transformer("hash", {"columns": HASHED})
    else:
        step = make_transformer("one-hot", {})
    return Choice(column.name, (step,), kind, distinct, example, hashed)


def notes_on(choices: Sequence[Choice], client: str) -> list[str]:
    """Sentences for the user on what was guessed: each kind of guess once, with all columns that it
    is about."""
    # by the sentence that they stand in, in the order in which the sentences are told
    guessed: dict[str, list[str]] = {sentence: [] for sentence in GUESSES.values()}
    guessed |= {MIXED: [], HASHED_ONES: []}
    for one in choices:
        kind = one.kind
        if kind.example is not None:
            text, value = kind.example
            shown = f"{one.column} ({text!r} as {value})"
            if kind.what == "codes":
                shown = f"{one.column} (such as {text!r})"
            guessed[GUESSES[kind.what]].append(shown)

        if kind.unread:
            guessed[MIXED].append(f"{one.column} ({kind.unread:,} values are neither)")

        if one.hashed:
            said = f"{one.column} ({one.categories:,} values, such as {one.example!r})"
            guessed[HASHED_ONES].append(said)

    notes = []
    for sentence, columns in guessed.items():
        if columns:
            # all of them: what is guessed must not hide behind 'and 4 more'
            told = listing(columns, len(columns))
            notes.append(sentence.format(client=client, columns=told))
    return notes
