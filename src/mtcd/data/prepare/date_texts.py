"""Dates as people write them: 14.03.2024, 3/14/24 2:30 PM, 14 Mar 2024, March 14, 2024,
20240314T0830.

The order of day and month of 03/04/2024 is not in the text: it is decided from all values of a
column (``kinds.py``), or given. All texts of a column are read at once.
"""

from __future__ import annotations

import re
from typing import Literal

import polars as pl

_HOURS = {
    **dict.fromkeys(("z", "utc", "ut", "gmt", "wet"), 0),
    **dict.fromkeys(("cet", "mez", "west"), 1),
    **dict.fromkeys(("cest", "mesz", "eet"), 2),
    **dict.fromkeys(("eest", "msk"), 3),
    "jst": 9,
    # of mails (RFC 5322)
    **{"edt": -4, "est": -5, "cdt": -5, "cst": -6, "mdt": -6, "mst": -7, "pdt": -7, "pst": -8},
}
_NUMBER = re.compile(r"(?:utc|gmt)?(?P<sign>[+-])(?P<hours>\d{2}):?(?P<minutes>\d{2})?")


def offset_of(zone: str) -> int | None:
    """The minutes that a time zone is before UTC; None of a name that is not known.

    >>> offset_of("+02:00"), offset_of("EST"), offset_of("Uhr")
    (120, -300, None)
    """
    zone = zone.lower()
    if zone in _HOURS:
        return 60 * _HOURS[zone]
    found = _NUMBER.fullmatch(zone)
    if found is None:
        return None
    hours = int(found["hours"])
    minutes = int(found["minutes"] or 0)
    if hours > 23 or minutes > 59:
        return None
    sign = -1 if found["sign"] == "-" else 1
    return sign * (60 * hours + minutes)


Order = Literal["day-first", "month-first", "year-first"]
Stated = Literal["stated"]
"""Of dates that say it themselves, by the name of the month or a year in front."""
ORDERS: tuple[Order, ...] = ("day-first", "month-first", "year-first")
PIVOT = 69  # two-digit years from here on are of the last century, as in strptime

_MONTHS = {
    name: number
    for number, names in enumerate(
        [
            # English, German, French, Spanish, Italian, Dutch, Portuguese
            "jan january januar jän jänner janv janvier ene enero gen gennaio januari janeiro",
            "feb february februar févr fév février febrero febbraio februari fev fevereiro",
            "mar march mär märz mrz mars marzo mrt maart março",
            "apr april avr avril abr abril aprile",
            "may mai mayo mag maggio mei maio",
            "jun june juni juin junio giu giugno junho",
            "jul july juli juil juillet julio lug luglio julho",
            "aug august août aout ago agosto augustus",
            "sep sept september septembre septiembre set settembre setembro",
            "oct october okt oktober octobre octubre ott ottobre out outubro",
            "nov november novembre noviembre novembro",
            "dec december dez dezember déc décembre dic diciembre dicembre dezembro",
        ],
        start=1,
    )
    for name in names.split()
}
_WEEKDAYS = (
    "mon|tue|wed|thu|fri|sat|sun|mo|di|mi|do|fr|sa|so|lun|mar|mer|jeu|ven|sam|dim|mié|jue|vie|sáb|sab|dom|"
    "gio|ma|wo|vr|za|zo|seg|ter|qua|qui|sex"
)
_WEEKDAY = rf"(?:(?:{_WEEKDAYS})[\p{{L}}\-]*\.?,?\s+)?"
_NAME = r"(?P<name>\p{L}{3,10})\.?"
_OF = r"(?:de\s+|del\s+|of\s+)?"
_YEAR = r"(?P<year>\d{4}|\d{2})"
_CLOCK = (
    r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,](?P<fraction>\d{1,9}))?)?"
    r"(?:\s*(?P<half>[ap])\.?m\.?|\s*uhr)?"
)
_ZONE = r"(?P<zone>[a-z]{1,5}|(?:utc|gmt)?[+-]\d{2}(?::?\d{2})?)(?:\s?[\[(][\p{L}\s/_+\-]+[\])])?"
_TIME = rf"(?:\s*[T,:\s]\s*{_CLOCK}(?:\s*{_ZONE})?)?"

_NUMBERED = [
    # year, month, day
    r"(?P<year>\d{4})(?P<mark>[-/.])\s?(?P<month>\d{1,2})(?P<mark2>[-/.])\s?(?P<day>\d{1,2})\.?"
    + _TIME,
    r"(?P<year>\d{4})\s?[年년]\s?(?P<month>\d{1,2})\s?[月월]\s?(?P<day>\d{1,2})\s?[日일]" + _TIME,
    r"(?P<year>\d{4})(?P<month>\d{2})(?P<day>\d{2})T"
    r"(?P<hour>\d{2}):?(?P<minute>\d{2})(?::?(?P<second>\d{2})(?:\.(?P<fraction>\d{1,9}))?)?"
    + rf"(?:{_ZONE})?",
    r"(?P<year>\d{4})[-/](?P<month>\d{1,2})",
    r"(?P<month>\d{1,2})/(?P<year>\d{4})",
]
_OPEN = [
    # the order of the first two, or of all three, is open
    r"(?P<a>\d{1,2})(?P<mark>[-/.])\s?(?P<b>\d{1,2})(?P<mark2>[-/.])\s?(?P<c>\d{4}|\d{2})" + _TIME,
]
_NAMED = [
    _WEEKDAY
    + r"(?P<day>\d{1,2})(?:st|nd|rd|th|er|\.)?[\s\-/.]*"
    + _OF
    + _NAME
    + r"[\s\-/.,']*"
    + _OF
    + _YEAR
    + _TIME,
    _WEEKDAY + _NAME + r"[\s\-/]+(?P<day>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})" + _TIME,
    _WEEKDAY + _NAME + rf"\s+(?P<day>\d{{1,2}})\s+{_CLOCK}\s+(?:{_ZONE}\s+)?(?P<year>\d{{4}})",
    r"(?P<year>\d{4})[\s\-/]" + _NAME + r"[\s\-/](?P<day>\d{1,2})" + _TIME,
    _NAME + r"[\s\-/.,]+" + _OF + r"(?P<year>\d{4})",
]
_PATTERNS = [*_NUMBERED, *_OPEN, *_NAMED]
_PARTS = ("year", "month", "day", "name", "a", "b", "c", "mark", "mark2")
_TIMES = ("hour", "minute", "second", "fraction", "half", "zone")

SHAPE = (
    r"(?i)^\D{0,14}\d{1,4}\D{1,14}\d{1,4}|^\p{L}{3,10}[\s\-/.,]+(?:del?\s+)?\d{4}$|^\d{8}t\d{4}"
    r"|^\d{1,2}\p{L}{3}\d{2,4}$"
)
"""What every date looks like, for a quick look at many texts."""
NO_YEAR = r"(?i)^(?:\p{L}{3,10}[\s\-']{1,2}\d{2}|\d{2}[\s\-]\p{L}{3,10})$"
"""A month by name and two digits, as in Mar-24: either the year or the day."""


def date_parts(texts: pl.Series) -> pl.DataFrame:
    """The parts of dates, for :func:`moments`; null where a text is no date.

    Returns:
        A row for each text: ``year``, ``month`` and ``day``, where the text says which is which;
        ``a``, ``b`` and ``c``, its three numbers, where it does not, with the ``mark`` between
        them; ``micro``, the time of day in microseconds; ``offset``, the minutes of its time zone
        before UTC, null where it has none.
    """
    found = _groups(texts.str.strip_chars())
    numbers = {
        part: found[part].cast(pl.Int64, strict=False)
        for part in ("year", "month", "day", "a", "b", "c")
    }
    numbers["month"] = numbers["month"].zip_with(
        found["name"].is_null(), _month_numbers(found["name"])
    )
    numbers["day"] = numbers["day"].set(
        numbers["day"].is_null() & numbers["month"].is_not_null(), 1
    )
    numbers["year"] = _full_years(found["year"])

    micro = _microseconds(found)
    offset = _offsets(found["zone"])
    fine = micro.is_not_null() & (found["zone"].is_null() | offset.is_not_null())
    # 3.4/2024 is a slip, not a date
    fine &= (found["mark"] == found["mark2"]).fill_null(True)

    digits = {"a_digits": found["a"].str.len_chars(), "c_digits": found["c"].str.len_chars()}
    parts = {**numbers, **digits, "mark": found["mark"], "micro": micro, "offset": offset}
    return pl.DataFrame({name: part.set(~fine, None) for name, part in parts.items()})


def moments(parts: pl.DataFrame, order: Order | Stated) -> pl.Series:
    """The local moments of dates whose parts are given; null where there is no such date in this
    order.

    With ``stated``, only dates that say their order are read. A month without a day is its first
    day.

    >>> parts = date_parts(pl.Series(["14.03.24", "March 14, 2024 2:30 pm"]))
    >>> moments(parts, "day-first").to_list()
    [datetime.datetime(2024, 3, 14, 0, 0), datetime.datetime(2024, 3, 14, 14, 30)]
    >>> moments(parts, "month-first").to_list()
    [None, datetime.datetime(2024, 3, 14, 14, 30)]
    """
    year = parts["year"]
    month = parts["month"]
    day = parts["day"]
    if order != "stated":
        open_year, open_month, open_day = _in_order(parts, order)
        stated = year.is_not_null()
        year = year.zip_with(stated, open_year)
        month = month.zip_with(stated, open_month)
        day = day.zip_with(stated, open_day)
    return _days(year, month, day).cast(pl.Datetime("us")) + parts["micro"].cast(pl.Duration("us"))


def separated_by_dots(parts: pl.DataFrame) -> bool:
    """Whether all are dates such as 03.04.2024, which are written with the day first wherever dots
    are used."""
    return bool((parts["mark"] == ".").fill_null(False).all())


def may_be_year_first(parts: pl.DataFrame) -> bool:
    """Whether some are dates such as 24-03-14, whose first number may be the year."""
    return bool(((parts["mark"] == "-") & (parts["c_digits"] == 2)).fill_null(False).any())


def is_month_name(text: str) -> bool:
    """Whether the letters of a text, such as Mar-24, name a month."""
    return "".join(letter for letter in text if letter.isalpha()).lower() in _MONTHS


def _groups(texts: pl.Series) -> pl.DataFrame:
    """What the first pattern that fits a text finds in it: a row for each text, and a column for
    each group."""
    names = [*_PARTS, *_TIMES]
    rows = pl.Series("row", range(len(texts)), dtype=pl.Int64)
    left = texts.is_not_null()
    found = []

    for pattern in _PATTERNS:
        whole = rf"(?i)^(?:{pattern})$"
        fits = left & texts.str.contains(whole).fill_null(False)
        if not fits.any():
            continue

        groups = texts.filter(fits).str.extract_groups(whole).struct.unnest()
        missing = [
            pl.lit(None, pl.String).alias(name) for name in names if name not in groups.columns
        ]
        found.append(groups.with_columns(missing).select(names).with_columns(rows.filter(fits)))
        # the first pattern that fits counts
        left &= ~fits

    others = rows.filter(left | texts.is_null())
    nothing = {
        name: pl.Series([None], dtype=pl.String).new_from_index(0, len(others)) for name in names
    }
    found.append(pl.DataFrame({**nothing, "row": others}))
    return pl.concat(found).sort("row").drop("row")


def _month_numbers(names: pl.Series) -> pl.Series:
    return names.str.to_lowercase().replace_strict(_MONTHS, default=None, return_dtype=pl.Int64)


def _full_years(years: pl.Series) -> pl.Series:
    """Years of four digits; two are of this century or the last."""
    numbers = years.cast(pl.Int64, strict=False)
    short = (years.str.len_chars() <= 2).fill_null(False)
    return numbers.zip_with(~short, numbers + 1900 + 100 * (numbers < PIVOT).cast(pl.Int64))


def _in_order(parts: pl.DataFrame, order: Order) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Year, month and day."""
    a = parts["a"]
    b = parts["b"]
    c = parts["c"]
    if order == "year-first":
        short = (parts["c_digits"] == 2) & (parts["a_digits"] == 2)
        return _of_two_digits(a).set(~short.fill_null(False), None), b, c
    year = c.zip_with((parts["c_digits"] == 4).fill_null(False), _of_two_digits(c))
    return (year, b, a) if order == "day-first" else (year, a, b)


def _of_two_digits(numbers: pl.Series) -> pl.Series:
    return numbers + 1900 + 100 * (numbers < PIVOT).cast(pl.Int64)


def _days(year: pl.Series, month: pl.Series, day: pl.Series) -> pl.Series:
    """Days of the calendar; null where there is no such day."""
    digits = [
        year.cast(pl.String).str.zfill(4),
        month.cast(pl.String).str.zfill(2),
        day.cast(pl.String).str.zfill(2),
    ]
    # the calendar decides: 30 February is no day
    found = (digits[0] + digits[1] + digits[2]).str.to_date("%Y%m%d", strict=False)
    return found.set(~year.is_between(1, 9999).fill_null(False), None)


def _microseconds(found: pl.DataFrame) -> pl.Series:
    """The time of day, 0 where none is given; null where there is no such time."""
    hour, minute, second = (
        found[part].cast(pl.Int64).fill_null(0) for part in ("hour", "minute", "second")
    )
    half = found["half"].str.to_lowercase()
    afternoon = (half == "p").fill_null(False)
    fine = half.is_null() | hour.is_between(1, 12)
    # 12 am is midnight, and 12 pm is noon
    hour = hour.zip_with(half.is_null(), hour % 12 + 12 * afternoon.cast(pl.Int64))

    fine &= (hour <= 23) & (minute <= 59) & (second <= 59)
    # microseconds: further digits are cut off
    fraction = found["fraction"].fill_null("0").str.pad_end(6, "0").str.slice(0, 6).cast(pl.Int64)
    total = ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction
    return total.set(~fine, None)


def _offsets(zones: pl.Series) -> pl.Series:
    """The minutes of time zones; null of none, and of one that is not known."""
    distinct = zones.drop_nulls().unique()
    known = pl.Series([offset_of(zone) for zone in distinct.to_list()], dtype=pl.Int64)
    return zones.replace_strict(distinct, known, default=None, return_dtype=pl.Int64)
