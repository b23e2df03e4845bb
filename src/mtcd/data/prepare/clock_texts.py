"""Times of day and durations as people write them: 14:30, 2:30 PM, 01:02:03.5, 14h30, 2h 5m, 1 days
02:00:00."""

from __future__ import annotations

import polars as pl

_PATTERNS = [
    r"(?:(?P<days>[+-]?\d{1,5}) days?,?\s+\+?|(?P<sign>-))?(?P<hours>\d{1,3}):(?P<minutes>[0-5]\d)"
    r"(?::(?P<seconds>[0-5]\d(?:[.,]\d{1,9})?))?(?:\s*(?P<half>[ap])\.?m\.?|\s*uhr)?",
    r"(?P<hours>\d{1,2})\s*h\s*(?P<minutes>[0-5]\d)",
    r"(?:(?P<days>\d{1,5})\s*d(?:ays?)?\s*)?(?:(?P<hours>\d{1,4})\s*h(?:(?:ou)?rs?)?\s*)?"
    r"(?P<minutes>\d{1,4})\s*m(?:in(?:ute)?s?)?\s*(?:(?P<seconds>\d{1,4}(?:\.\d{1,9})?)\s*s(?:ec(?:ond)?s?)?)?",
    r"(?:(?P<days>\d{1,5})\s*d(?:ays?)?\s*)?(?P<hours>\d{1,4})\s*h(?:(?:ou)?rs?)?",
]
_SECONDS = {"days": 86_400.0, "hours": 3600.0, "minutes": 60.0, "seconds": 1.0}

SHAPE = r"(?i)\d:\d|\d\s*(?:h|d|m)[a-z]*\s*\d"
"""What nearly every such text has, and no single number has."""


def clock_seconds(texts: pl.Series) -> pl.Series:
    """The seconds since midnight, or of a duration; null where a text is neither.

    >>> clock_seconds(pl.Series(["14:30", "2:30 PM", "1h 5m", "soon"])).to_list()
    [52200.0, 52200.0, 3900.0, None]
    """
    texts = texts.str.strip_chars()
    found = pl.Series([None], dtype=pl.Float64).new_from_index(0, len(texts))
    for pattern in _PATTERNS:
        groups = texts.str.extract_groups(rf"(?i)^(?:{pattern})$").struct.unnest()
        # the first pattern that fits counts
        found = found.zip_with(found.is_not_null(), _total(groups))
    return found


def _total(groups: pl.DataFrame) -> pl.Series:
    """The seconds of one pattern's groups; null where there is no such time."""
    parts = [
        groups[part].str.replace(",", ".", literal=True).cast(pl.Float64) for part in _known(groups)
    ]
    factors = [_SECONDS[part] for part in _known(groups)]
    total = sum(
        (part.fill_null(0.0) * factor for part, factor in zip(parts, factors, strict=True)),
        start=0.0,
    )

    assert isinstance(total, pl.Series)
    matched = groups["minutes" if "minutes" in groups.columns else "hours"].is_not_null()
    total = total.set(~matched, None)
    if "half" not in groups.columns:
        return total

    half = groups["half"].str.to_lowercase()
    hours = groups["hours"].cast(pl.Float64)
    noon = (hours == 12.0).fill_null(False).cast(pl.Float64) * 43_200.0
    afternoon = (half == "p").fill_null(False).cast(pl.Float64) * 43_200.0

    # 14 pm and -2 am are no times
    on_dial = hours.is_between(1, 12) & groups["days"].is_null() & groups["sign"].is_null()
    total = total.zip_with(
        half.is_null(), (total - noon + afternoon).set(~on_dial.fill_null(False), None)
    )

    negative = groups["sign"].is_not_null()
    return (-total).zip_with(negative, total)


def _known(groups: pl.DataFrame) -> list[str]:
    return [part for part in _SECONDS if part in groups.columns]
