"""Numbers as people write them: 1.234,5 and 1,234.5, -$3, (12), 5-, 12 kg, 98 %, <0.5.

A text has one of two readings, by its decimal mark. Which one a column has is decided from all its
values (``kinds.py``), as '1,234' alone may be either.
"""

from __future__ import annotations

import polars as pl

from mtcd.data.prepare.units import CURRENCY, SCALES_WITH_AN_OFFSET, canonical, dimension
from mtcd.data.prepare.values import LARGEST

POINT, COMMA = ".", ","

_ODD_SPACES = "[\u00a0\u1680\u2000-\u200b\u202f\u205f\u3000\t]"
_ODD_MINUSES = "[\u2212\u2012\u2013\ufe63\uff0d]"
_ODD_APOSTROPHES = "[\u2019\u2018\u00b4`]"

_OTHER_SCRIPTS = {
    **{chr(zero + digit): str(digit) for zero in (0x0660, 0x06F0, 0xFF10) for digit in range(10)},
    **{
        "\u066b": ".",
        "\u066c": "'",
        "\uff0c": ",",
        "\uff0e": ".",
        "\uff05": "%",
        "\uffe5": "\u00a5",
    },
}
"""Arabic, Persian and full-width digits and marks, as those of ASCII."""
_OF_OTHER_SCRIPTS = f"[{''.join(_OTHER_SCRIPTS)}]"
_POWER = r"10([\^*\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b])"
_NO_CENTS = r"(\d)([.,])--?( |$)"  # 5,- is 5,0
_TIMES = r"\s?[x*\u00d7\u00b7]\s?10"
_SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True))
_SUPERSCRIPT_POWER = "10([⁻⁺]?[⁰¹²³⁴-⁹]{1,3})$"  # 3.7×10⁵ is 3.7×10^5

_PARTS = (
    r"^(?P<limit><=|>=|[<>≤≥~≈])?\s*(?P<open>\()?\s*(?P<sign>[+-])?\s*"
    r"(?P<before>[A-Za-z]{0,3}[\p{Sc}]|[A-Za-z]{2,3}\.?|zł|Kč)?\s*(?P<sign2>[+-])?\s*"
    r"(?P<body>\d(?:[\d.,' ]*\d)?|[.,]\d+)(?P<exponent>[eE][+-]?\d{1,3})?"
    r"(?P<gap>\s*)(?P<after>[^\d\s.,'()<>+\-][^()<>]{0,19}?)?\s*(?P<tail>-)?\s*(?P<close>\))?$"
)


def _body_pattern(decimal: str) -> str:
    """Digits with at most one decimal mark, and groups of thousands, all separated alike."""
    other = COMMA if decimal == POINT else POINT
    point = "\\" + decimal
    comma = "\\" + other
    groups = [rf"[1-9]\d{{0,2}}(?:{mark}\d{{3}})+" for mark in (comma, " ", "'")]
    if decimal == POINT:
        groups.append(r"[1-9]\d?(?:,\d{2})+,\d{3}")  # 12,34,567 as in India
    return rf"^(?:(?:\d+|{'|'.join(groups)})(?:{point}\d+)?|{point}\d+)$"


_BODIES = {decimal: _body_pattern(decimal) for decimal in (POINT, COMMA)}


def tidy(column: pl.Series) -> pl.Series:
    """Texts with plain spaces, minus signs and apostrophes for their many variants in Unicode."""
    plain = (
        column.cast(pl.String).str.replace_all(_ODD_SPACES, " ").str.replace_all(_ODD_MINUSES, "-")
    )
    plain = plain.str.replace_all(_ODD_APOSTROPHES, "'").str.strip_chars()
    # looked for first: most columns have none of them, and replacing takes long
    if plain.str.contains(_OF_OTHER_SCRIPTS).any():
        plain = plain.str.replace_many(_OTHER_SCRIPTS)
    if plain.str.contains(_NO_CENTS).any():
        plain = plain.str.replace(_NO_CENTS, "${1}${2}0${3}")

    raised = plain.str.contains(_SUPERSCRIPT_POWER).fill_null(False)
    if raised.any():
        flat = plain.str.replace(_SUPERSCRIPT_POWER, "10^${1}").str.replace_many(_SUPERSCRIPTS)
        plain = flat.zip_with(raised, plain)
    if plain.str.contains(_POWER).any():
        plain = plain.str.replace(_TIMES + r"\^([+-]?\d{1,3})$", "e${1}")  # 3.7 x 10^5 is a number
        # 3.7 10^9/L has a unit
        plain = plain.str.replace(r"\s+[x*\u00d7\u00b7]?\s?" + _POWER, " x10${1}")
    return plain


def readings(column: pl.Series) -> pl.DataFrame:
    """Texts as numbers in both ways.

    Returns:
        A row for each text: ``point`` and ``comma``, its number with either decimal mark (null:
        none); ``unit``, "" where it has none; ``limit``, whether it is a bound on a number, such as
        <0.5.
    """
    texts = tidy(column)
    parts = texts.str.extract_groups(_PARTS).struct.unnest()
    unit = _units(parts)

    # (12) is -12 in accounts; with one bracket missing it is nothing
    closed = parts["open"].is_null() == parts["close"].is_null()
    grouped_phone = (parts["sign"] == "+").fill_null(False) & parts["body"].str.contains(
        " "
    ).fill_null(False)
    fine = closed & unit.is_not_null() & ~grouped_phone

    negative = parts["open"].is_not_null() | (parts["tail"] == "-").fill_null(False)
    for sign in ("sign", "sign2"):
        negative |= (parts[sign] == "-").fill_null(False)

    found = {
        name: _signed(_cast(parts["body"], parts["exponent"], decimal), negative, fine)
        for name, decimal in (("point", POINT), ("comma", COMMA))
    }
    # as programs write them, such as 1e-5, which no pattern of people's numbers has
    plain = _finite(texts.cast(pl.Float64, strict=False))
    found["point"] = plain.zip_with(plain.is_not_null(), found["point"])

    unit = unit.set(plain.is_not_null(), "")
    return pl.DataFrame({**found, "unit": unit, "limit": parts["limit"].is_not_null()})


def read_numbers(column: pl.Series, decimal: str, unit: str, bare: bool, limits: bool) -> pl.Series:
    """Texts in one format as numbers, null where a text is not in it.

    ``bare``: also those without the unit; ``limits``: a bound, such as <0.5, is the number itself.
    """
    # each text once: patterns take a microsecond each
    distinct = column.drop_nulls().unique()
    found = readings(distinct)
    fits = of_unit(found, unit, bare)
    if not limits:
        fits &= ~found["limit"]

    values = found["point" if decimal == POINT else "comma"].set(~fits, None)
    return column.replace_strict(distinct, values, default=None, return_dtype=pl.Float64).alias(
        column.name
    )


def of_unit(found: pl.DataFrame, unit: str, bare: bool = False) -> pl.Series:
    """Whether each of the ``readings`` has this unit; 0 needs none, and with ``bare`` no number
    does."""
    fits = (found["unit"] == unit).fill_null(False)
    if not unit:
        return fits
    without = (found["unit"] == "").fill_null(False)
    if bare:
        return fits | without
    zero = ((found["point"] == 0.0) | (found["comma"] == 0.0)).fill_null(False)
    return fits | (without & zero) if zero_needs_no(unit) else fits


def zero_needs_no(unit: str) -> bool:
    """Whether 0 is the same without this unit."""
    return dimension(unit) != SCALES_WITH_AN_OFFSET


def _units(parts: pl.DataFrame) -> pl.Series:
    """The unit of each text, before or after its number; null where there are two, or what is there
    is none."""
    before = _canonical(parts["before"], only=CURRENCY)
    after = _canonical(parts["after"])
    spaced = (parts["gap"] != "").fill_null(False)
    word = parts["after"].str.strip_chars().str.to_lowercase()
    after = after.zip_with(after.is_not_null() | ~spaced, word)

    has_before = parts["before"].is_not_null()
    has_after = parts["after"].is_not_null()
    unit = after.zip_with(has_after, before)
    unit = unit.set(~has_before & ~has_after, "")
    twice = has_before & has_after & (before != after).fill_null(True)
    return unit.set(twice | (has_before & before.is_null()) | parts["body"].is_null(), None)


def _canonical(words: pl.Series, only: str | None = None) -> pl.Series:
    distinct = words.drop_nulls().unique()
    known = [canonical(word) for word in distinct.to_list()]
    if only is not None:
        known = [unit if unit is not None and dimension(unit) == only else None for unit in known]
    return words.replace_strict(
        distinct, pl.Series(known, dtype=pl.String), default=None, return_dtype=pl.String
    )


def _cast(body: pl.Series, exponent: pl.Series, decimal: str) -> pl.Series:
    fits = body.str.contains(_BODIES[decimal]).fill_null(False)
    other = COMMA if decimal == POINT else POINT
    digits = body.str.replace_all(f"[' {other}]", "").str.replace(decimal, ".", literal=True)
    values = (digits + exponent.fill_null("")).cast(pl.Float64, strict=False)
    return _finite(values.set(~fits, None))


def _signed(values: pl.Series, negative: pl.Series, fine: pl.Series) -> pl.Series:
    return (-values).zip_with(negative, values).set(~fine.fill_null(False), None)


def _finite(values: pl.Series) -> pl.Series:
    """Null where a number is infinite, NaN, or so large that its square could overflow."""
    return values.set(
        ~(values.abs() <= LARGEST).fill_null(True) | values.is_nan().fill_null(False), None
    )
