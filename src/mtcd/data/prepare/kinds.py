"""What a column of texts holds: numbers, dates, yes and no, or categories; and in which format.

It is decided for the column as a whole, from all its values. Numbers or dates in nearly all cells
make a column of these, and the other cells count as missing. What the texts leave open is refused,
with the setting that decides it: a guess would be a wrong number in silence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from typing import Any, Literal, get_args

import polars as pl

from mtcd.core.errors import DataError
from mtcd.data.prepare.clock_texts import SHAPE as CLOCK_SHAPE
from mtcd.data.prepare.clock_texts import clock_seconds
from mtcd.data.prepare.date_texts import (
    NO_YEAR,
    SHAPE,
    Order,
    date_parts,
    is_month_name,
    may_be_year_first,
    moments,
    separated_by_dots,
)
from mtcd.data.prepare.number_texts import COMMA, POINT, of_unit, readings
from mtcd.data.prepare.settings import Auto
from mtcd.data.prepare.units import WITH_POINTS, dimension
from mtcd.data.prepare.values import booleans, is_gap, numbers, times

What = Literal["numbers", "dates", "clock", "yes and no", "codes", "texts"]
NEARLY = 10
"""One of so many cells may be unreadable in a column of numbers or dates."""
FEW_CELLS = 5
"""In a column of so many cells or more, one may be unreadable."""
MOSTLY = 2
"""A column of categories in which one of so many cells is a number or date is told."""
TELEPHONE = r"^\+\d{8,15}$"
_COMPACT = {
    r"^(?:19|20|21)\d{6}$": {"year-first": "%Y%m%d"},
    r"^(?:19|20|21)\d{12}$": {"year-first": "%Y%m%d%H%M%S"},
    r"^\d{4}(?:19|20)\d{2}$": {"day-first": "%d%m%Y", "month-first": "%m%d%Y"},
}
"""Dates of digits alone: what they look like, and their formats by order."""


_READING = {POINT: "point", COMMA: "comma"}
"""The column of ``readings`` with the numbers that a decimal mark gives."""


class OpenChoiceError(DataError):
    """The values of a column can be read in several ways."""


@dataclass(frozen=True)
class Kind:
    """What a column holds, and the settings of the transformer that reads it, if it needs one.

    ``example`` is a text with what it was read as, where that was not plain; ``unread`` the number
    of cells that are no numbers or dates, in a column of categories that are mostly such.
    """

    what: What
    settings: Mapping[str, Any] | None = None
    example: tuple[str, str] | None = None
    unread: int = 0


@dataclass(frozen=True)
class _Cells:
    """Distinct texts of a column, and how many cells hold each."""

    name: str
    texts: pl.Series
    counts: pl.Series

    @staticmethod
    def of(column: pl.Series) -> _Cells:
        # each text once: a column of a million rows has some hundred of them
        counted = column.drop_nulls().rename("text").value_counts(name="cells").sort("text")
        return _Cells(column.name, counted["text"], counted["cells"])

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def holding(self, mask: pl.Series) -> int:
        """The cells with such texts."""
        return int(self.counts.filter(mask).sum())

    def without(self, mask: pl.Series) -> _Cells:
        """The cells for which ``mask`` is false."""
        return _Cells(self.name, self.texts.filter(~mask), self.counts.filter(~mask))

    def examples(self, mask: pl.Series) -> str:
        """Two of such texts."""
        shown = self.texts.filter(mask).head(2).to_list()
        return " and ".join(map(repr, shown))


def is_nearly_all(cells: int, total: int) -> bool:
    """Whether so few of all cells are left that these count as missing."""
    left = total - cells
    return cells > 0 and (left * NEARLY <= total or (left == 1 and total >= FEW_CELLS))


def kind_of(column: pl.Series, auto: Auto) -> Kind:
    """What a column of texts holds.

    Raises:
        OpenChoiceError: its numbers or dates can be read in several ways, and ``auto`` does not say
        which.
    """
    # 'unknown' is a gap among numbers and dates, but may be an answer beside yes and no
    given = _Cells.of(column)
    given = given.without(is_gap(given.texts))
    cells = given.without(is_gap(given.texts, words=True))

    # the plain case first: texts that are all numbers as programs write them
    plain = numbers(cells.texts)
    if not plain.null_count() and (cells.total or not given.total):
        special = _compact_dates(cells, auto) or _codes(cells)
        if special is not None:
            return special
        if auto.decimal != COMMA:
            _refuse_groups_by_points(cells, auto)
            return Kind("numbers")

    if not booleans(given.texts).null_count():
        return Kind("yes and no")
    if not cells.total:
        return Kind("texts")

    # dates before numbers: 14.03 could be either, 14.03.2024 is no number in any format
    dates = _dates(cells, auto)
    if dates is not None and dates.what == "dates":
        return dates
    found = _numbers(cells, plain, auto)
    if found is not None and found.what == "numbers":
        return _compact_dates(cells, auto) or _codes(cells) or found
    return _clock(cells) or found or dates or Kind("texts")


def kind_of_integers(column: pl.Series) -> Kind | None:
    """Dates, if nearly all whole numbers of a column are days such as 20240314."""
    known = column.drop_nulls()
    # cheap, and enough to leave most columns of numbers alone
    days = known.is_between(19000101, 21001231)
    seconds = known.is_between(19000101000000, 21001231235959)
    if not is_nearly_all(int((days | seconds).sum()), len(known)):
        return None
    return _compact_dates(_Cells.of(column.cast(pl.String)), Auto())


# Whole numbers that are something else


def _codes(cells: _Cells) -> Kind | None:
    """Codes: postal codes and the like, and telephone numbers.

    These are whole numbers of which some have leading zeros, of one width or with many such zeros,
    or which all have a plus sign and many digits.
    """
    digits = cells.texts.str.contains(r"^\d+$")
    padded = cells.texts.str.contains(r"^0\d+$")
    zeros = cells.holding(padded)
    whole = cells.holding(digits)
    if not zeros or not is_nearly_all(whole, cells.total):
        return _telephones(cells)

    widths = cells.texts.filter(digits).str.len_chars().n_unique()
    if widths > 1 and zeros * NEARLY < whole:
        return None  # a few numbers such as 07 among others
    return Kind("codes", example=(cells.texts.filter(padded)[0], ""))


def _telephones(cells: _Cells) -> Kind | None:
    """Texts, if nearly all are telephone numbers, such as +49301234567."""
    phones = cells.texts.str.contains(TELEPHONE)
    if not is_nearly_all(cells.holding(phones), cells.total):
        return None
    return Kind("texts")


def _compact_dates(cells: _Cells, auto: Auto) -> Kind | None:
    """Days written as 20240314 or 14032024, or moments as 20240314083000, where nearly all values
    are such."""
    for shape, orders in _COMPACT.items():
        shaped = cells.texts.str.contains(shape)
        if not is_nearly_all(cells.holding(shaped), cells.total):
            continue

        forms = dict(orders)
        if len(orders) > 1 and auto.dates is not None:
            forms = {order: form for order, form in orders.items() if order == auto.dates}
        alike = cells.texts.set(~shaped, None)
        ways = {order: times(alike, None, form) for order, form in forms.items()}
        kind = _compact_in_order(cells, forms, ways)
        if kind is not None:
            return kind
    return None


def _compact_in_order(
    cells: _Cells, forms: Mapping[str, str], ways: Mapping[str, pl.Series]
) -> Kind | None:
    if not ways:
        return None

    taken, open_ = _chosen(cells, ways)
    days = ways[taken]
    known = days.is_not_null()
    # one day alone may be any number of eight digits
    if days.drop_nulls().n_unique() < 2 or not is_nearly_all(cells.holding(known), cells.total):
        return None
    if open_ is not None:
        raise _open_dates(cells, open_, list(ways))
    first = int(known.arg_true()[0])
    return Kind("dates", {"format": forms[taken]}, (cells.texts[first], _shown(days[first], None)))


# Dates


def _dates(cells: _Cells, auto: Auto) -> Kind | None:
    """Dates in a format; the kind of texts, told as such, where they are mostly dates; None
    otherwise."""
    _refuse_missing_years(cells)
    shaped = cells.texts.str.contains(SHAPE)
    if cells.holding(shaped) * MOSTLY < cells.total:
        return None
    iso = times(cells.texts, None, None).is_not_null()
    if iso.all():
        return Kind("dates")

    parts = date_parts(cells.texts)
    ways = {order: moments(parts, order) for order in _orders(parts, auto)}
    taken, open_ = _chosen(cells, ways)
    if open_ is not None and separated_by_dots(parts.filter(open_)):
        taken, open_ = "day-first", None  # where dots are written, the day comes first

    values = ways[taken]
    known = values.is_not_null() | iso
    readable = iso
    for way in ways.values():
        readable |= way.is_not_null()
    # only of a column that will be dates, whatever their order, the user has to decide it
    if open_ is not None and is_nearly_all(cells.holding(readable), cells.total):
        raise _open_dates(cells, open_, list(ways))
    if not _enough(cells, known, auto.dates):
        return _mostly(cells, known)

    # where no text leaves its order open, new samples must not be read by a guess either
    if moments(parts, "stated").is_not_null().eq(values.is_not_null()).all():
        if cells.holding(iso) == cells.holding(known):
            return Kind("dates")
        taken = "stated"
    first = int(values.is_not_null().arg_true()[0])
    return Kind(
        "dates",
        {"order": taken},
        (cells.texts[first], _shown(values[first], parts["offset"][first])),
    )


def _orders(parts: pl.DataFrame, auto: Auto) -> list[Order]:
    """The orders to try: the one that is given, or all that the texts may have."""
    if auto.dates is not None:
        return [order for order in get_args(Order) if order == auto.dates]
    orders: list[Order] = ["day-first", "month-first"]
    if may_be_year_first(parts):
        orders.append("year-first")
    return orders


def _shown(value: datetime, offset: int | None) -> str:
    """A moment as a note shows it."""
    if offset is not None:
        return value.replace(tzinfo=timezone(timedelta(minutes=offset))).isoformat(" ")
    if (value.hour, value.minute, value.second) == (0, 0, 0):
        return value.date().isoformat()
    return value.isoformat(" ")


def _refuse_missing_years(cells: _Cells) -> None:
    """Refuse Mar-24, which is a month of 2024 or the 24th of March."""
    short = cells.texts.str.contains(NO_YEAR)
    if not is_nearly_all(cells.holding(short), cells.total):
        return

    names = cells.texts.filter(short).str.replace_all(r"[^\p{L}]", "").str.to_lowercase().unique()
    # one name alone may be any code: GEN-01
    if len(names) < 2 or not all(map(is_month_name, names.to_list())):
        return
    raise OpenChoiceError(
        f"Column {cells.name!r} holds dates such as {cells.examples(short)}, whose two digits may "
        f"be the year or the day: give their format, prepare: {{columns: {{{cells.name}: [{{dates: "
        "{format: '%b-%y'}}, impute, standardise]}}, or take them as categories (one-hot)."
    )


def _open_dates(cells: _Cells, mask: pl.Series, orders: Sequence[str]) -> OpenChoiceError:
    choices = " or ".join(orders)
    return OpenChoiceError(
        f"Column {cells.name!r} holds dates such as {cells.examples(mask)}, whose order of day and "
        f"month no value tells, or values contradict each other: set it ({choices}), prepare: "
        f"{{columns: {{{cells.name}: {{auto: {{dates: {orders[0]}}}}}}}}}."
    )


# Numbers


def _refuse_groups_by_points(cells: _Cells, auto: Auto) -> None:
    """Refuse 1.234 beside 999: thousands, or numbers of three decimals, all of which happen to be
    there."""
    if auto.decimal is not None:
        return
    bare = cells.texts.str.contains(r"^[+-]?[1-9]\d{0,2}$")
    grouped = cells.texts.str.contains(r"^[+-]?[1-9]\d{0,2}\.\d{3}$")
    zeros = cells.texts.str.contains(r"^[+-]?0$")
    if bare.any() and grouped.any() and (bare | grouped | zeros).all():
        raise _open_decimals(cells, bare | grouped)


def _numbers(cells: _Cells, plain: pl.Series, auto: Auto) -> Kind | None:
    """Numbers in a format; the kind of texts, told as such, where they are mostly numbers; None
    otherwise."""
    found = readings(cells.texts)
    bounds = found["limit"]  # texts such as <0.5
    if auto.limits == "missing" and bounds.any():
        # then they are gaps, and decide nothing of what the others are
        return _numbers(cells.without(bounds), plain.filter(~bounds), replace(auto, limits=None))
    number = found["point"].is_not_null() | found["comma"].is_not_null()
    if cells.holding(number) * MOSTLY < cells.total:
        return None

    counted = number
    if auto.limits != "value":
        counted = number & ~bounds
    unit = _unit(cells, found, counted)
    # several units, or texts among the numbers
    if unit is None:
        _refuse_limits(cells, found, number, auto)
        return _mostly(cells, counted)

    fits = counted & of_unit(found, unit)
    decimal = _decimal(cells, found, fits, unit, auto)
    values = found[_READING[decimal]]
    known = fits & values.is_not_null()
    if not _enough(cells, known, auto.decimal):
        return _mostly(cells, known)
    if decimal == POINT and not unit and not (known & plain.is_null()).any():
        return Kind("numbers")

    settings: dict[str, Any] = {"decimal": decimal, "bare": False}
    if unit:
        settings["unit"] = unit
    if auto.limits == "value":
        settings["limits"] = "value"
    return Kind("numbers", settings, _telling_example(cells, known, values, plain))


def _telling_example(
    cells: _Cells, known: pl.Series, values: pl.Series, plain: pl.Series
) -> tuple[str, str]:
    """A text that shows the format best, the longest of those that are no plain numbers, and its
    number."""
    told = pl.DataFrame({"text": cells.texts, "value": values, "told": plain != values})
    shown = told.filter(known)
    # the longest text with more than digits shows best how numbers are written
    best = shown.sort(pl.col("told").fill_null(True), pl.col("text").str.len_chars(), "text")
    text, value, _ = best.row(-1)
    return text, f"{value:.15g}"


def _unit(cells: _Cells, found: pl.DataFrame, number: pl.Series) -> str | None:
    """The unit of nearly all numbers, "" if they have none; None where texts are no numbers of one
    unit."""
    held = pl.DataFrame({"unit": found["unit"], "cells": cells.counts}).filter(number)
    by_unit = held.group_by("unit").agg(pl.col("cells").sum())
    # the most frequent first; equal ones by name, so that every process finds the same
    units = by_unit.sort("cells", "unit", descending=[True, False])["unit"].to_list()
    if units and is_nearly_all(cells.holding(number & of_unit(found, units[0])), cells.total):
        return str(units[0])
    if not is_nearly_all(cells.holding(number), cells.total):
        return None

    # numbers that cannot be compared as they are: kg beside g, or beside none
    named = [unit for unit in units if unit]
    if "" in units and len(named) == 1:
        raise _open_units(cells, found, number, ["", named[0]], named[0])
    measured = {dimension(unit) for unit in named}
    if len(named) > 1 and len(measured) == 1 and measured != {None}:
        raise _open_units(cells, found, number, named[:2], named[0])
    return None


def _open_units(
    cells: _Cells, found: pl.DataFrame, number: pl.Series, units: Sequence[str], proposed: str
) -> OpenChoiceError:
    shown = []
    for unit in units:
        mask = number & (found["unit"] == unit)
        shown.append(f"{cells.holding(mask):,} such as {cells.texts.filter(mask)[0]!r}")
    return OpenChoiceError(
        f"Column {cells.name!r} holds numbers of different units, {' and '.join(shown)}: convert "
        "them to one unit, or name the unit that those without one have, and that others count as "
        "missing: prepare: "
        f"{{columns: {{{cells.name}: [{{number: {{unit: {proposed!r}}}}}, impute, standardise]}}}}."
    )


def _refuse_limits(cells: _Cells, found: pl.DataFrame, number: pl.Series, auto: Auto) -> None:
    """Refuse numbers among which many are bounds such as <0.5, which would all count as missing."""
    limits = number & found["limit"]
    if auto.limits is not None or not limits.any():
        return
    if not is_nearly_all(cells.holding(number), cells.total):
        return

    answer = "missing"
    if 2 * cells.holding(limits) > cells.total:
        # a column that is mostly bounds would have next to nothing left
        answer = "value"
    raise OpenChoiceError(
        f"Column {cells.name!r} holds numbers, but {cells.holding(limits):,} of {cells.total:,} "
        f"are bounds such as {cells.examples(limits)}: say what these count as (missing or value), "
        f"prepare: {{columns: {{{cells.name}: {{auto: {{limits: {answer}}}}}}}}}."
    )


def _decimal(cells: _Cells, found: pl.DataFrame, fits: pl.Series, unit: str, auto: Auto) -> str:
    """The decimal mark. Raises OpenChoiceError where both marks read the numbers, as different
    ones."""
    if auto.decimal is not None:
        return auto.decimal

    both = {mark: found[name].set(~fits, None) for mark, name in _READING.items()}
    taken, open_ = _chosen(cells, both)
    if open_ is None:
        return str(taken)

    texts = cells.texts.filter(open_)
    commas, points = (bool(texts.str.contains(mark, literal=True).any()) for mark in (COMMA, POINT))
    if not commas and not unit and not found["limit"].any():
        return POINT  # 1.234 as a program writes it
    if commas and not points and unit in WITH_POINTS:
        return POINT  # $1,234
    raise _open_decimals(cells, open_)


def _open_decimals(cells: _Cells, mask: pl.Series) -> OpenChoiceError:
    return OpenChoiceError(
        f"Column {cells.name!r} holds numbers such as {cells.examples(mask)}, whose decimal mark "
        "no value tells, or values contradict each other: set it ('.' or ','), prepare: "
        f"{{columns: {{{cells.name}: {{auto: {{decimal: ','}}}}}}}}."
    )


def _clock(cells: _Cells) -> Kind | None:
    """Times of day and durations, such as 14:30."""
    shaped = cells.texts.str.contains(CLOCK_SHAPE)
    if cells.holding(shaped) * MOSTLY < cells.total:
        return None

    seconds = clock_seconds(cells.texts)
    known = seconds.is_not_null()
    if not is_nearly_all(cells.holding(known), cells.total):
        return None
    first = int(known.arg_true()[0])
    return Kind("clock", {}, (cells.texts[first], f"{seconds[first]:.15g} seconds"))


# Both


def _enough(cells: _Cells, known: pl.Series, asked: str | None) -> bool:
    """Whether so many cells can be read that the others count as missing: nearly all, or, if asked
    to, half."""
    held = cells.holding(known)
    if is_nearly_all(held, cells.total):
        return True
    return asked is not None and held * MOSTLY >= cells.total


def _mostly(cells: _Cells, known: pl.Series) -> Kind | None:
    """A column of categories that are mostly numbers or dates, but not nearly all of them."""
    held = cells.holding(known)
    if held * MOSTLY < cells.total:
        return None
    return Kind("texts", unread=cells.total - held)


def _chosen(cells: _Cells, read: Mapping[Any, pl.Series]) -> tuple[Any, pl.Series | None]:
    """Of several ways to read a column, the one that reads the most cells.

    Returns:
        The way, and None, or, where another way reads as many cells as something else, the texts in
        question: the values do not decide. A few cells against many do not count: they are taken as
        slips.
    """
    ways = sorted(read, key=lambda way: -cells.holding(read[way].is_not_null()))
    best, *others = ways
    ours = read[best].is_not_null()
    for other in others:
        theirs = read[other].is_not_null()
        ours_only = cells.holding(ours & ~theirs)
        theirs_only = cells.holding(theirs & ~ours)

        # each reads what the other cannot: the values contradict each other
        if theirs_only and theirs_only * NEARLY > ours_only:
            return best, ours ^ theirs
        # both read all of them, as different things: no value decides
        differing = ours & theirs & (read[best] != read[other]).fill_null(False)
        if not ours_only and not theirs_only and differing.any():
            return best, differing
    return best, None
