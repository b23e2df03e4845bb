"""Dates as numbers: their parts, and the days since an origin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from mtcd.core.errors import ConfigError
from mtcd.data.prepare.date_texts import Order, Stated
from mtcd.data.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.data.prepare.values import in_zone, is_time, times, written_times

Part = Literal["year", "month", "day", "weekday", "hour", "days"]
MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True)
class Dated(Fitted):
    """The parts to give, the origin of the days, the time zone of the parts, and the format of
    texts."""

    parts: tuple[Part, ...]
    origin: str
    zone: str | None
    format: str | None
    order: Order | Stated | None = None
    reads, unread = "dates", "no dates"

    def __post_init__(self) -> None:
        ZoneInfo(self.zone or "UTC")  # raises an error if there is none
        datetime.fromisoformat(self.origin)

    def apply(self, column: pl.Series) -> list[pl.Series]:
        local = times(column, self.zone, self.format, self.order)
        return [
            self._part(local, part).cast(pl.Float64).alias(f"{column.name}.{part}")
            for part in self.parts
        ]

    def _part(self, local: pl.Series, part: Part) -> pl.Series:
        if part == "days":
            since: pl.Series = local - datetime.fromisoformat(self.origin)
            return since.dt.total_microseconds() / MICROSECONDS_A_DAY
        found: pl.Series = getattr(local.dt, part)()
        return found


@TRANSFORMERS.register("dates")
@dataclass(frozen=True)
class Dates(Transformer):
    """The ``parts`` of dates as numbers (weekday: 1 is Monday), and the days since an ``origin``.

    Without ``parts``: all, the hour only where times of day differ. Without ``origin``: the
    earliest training date. Times with a time zone are converted to ``zone``, by default that of the
    column, or UTC. Texts are read in the ISO format (2024-03-01, 2024-03-01T08:30+01:00), by a
    ``format`` such as '%d.%m.%Y', or, with an ``order``, in all everyday formats (14.03.2024,
    3/14/24 2:30 PM, 14 Mar 2024): day-first, month-first, year-first, or stated, which takes only
    those whose month is named or whose year comes first.
    """

    fitted = Dated
    parts: tuple[Part, ...] | None = None
    origin: str | None = None
    zone: str | None = None
    format: str | None = None
    order: Order | Stated | None = None

    def __post_init__(self) -> None:
        if self.parts is not None and (not self.parts or len(set(self.parts)) < len(self.parts)):
            raise ConfigError("prepare: dates: name each part once, and at least one.")
        if self.format is not None and self.order is not None:
            raise ConfigError(
                "prepare: dates: a format says the order already: leave one of the two out."
            )
        if self.origin is not None:
            _check_origin(self.origin)
        try:
            ZoneInfo(self.zone or "UTC")
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigError(f"prepare: dates: there is no time zone {self.zone!r}.") from None

    def fit(self, column: pl.Series) -> Dated:
        # the zone is fixed here: new samples may be written in another, and are converted
        zone = self.zone
        if is_time(column):
            # the column knows where it was measured
            zone = zone or getattr(column.dtype, "time_zone", None)
            known = times(column, zone, None).drop_nulls()
        else:
            written = written_times(column, self.format, self.order)
            if zone is None and written["offset"].is_not_null().any():
                zone = "UTC"
            known = in_zone(written, zone).drop_nulls()

        parts: tuple[Part, ...] = get_args(Part)
        if len(known) == 0 or known.dt.hour().n_unique() == 1:
            parts = tuple(part for part in parts if part != "hour")

        # days are counted from a midnight
        start = datetime(2000, 1, 1)
        first = known.min()
        if isinstance(first, datetime):
            start = datetime(first.year, first.month, first.day)
        origin = self.origin or start.isoformat()
        return Dated(self.parts or parts, origin, zone, self.format, self.order)


def _check_origin(text: str) -> None:
    try:
        origin = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"prepare: dates: origin is {text!r}, not a date such as 2000-01-01."
        ) from None
    if origin.tzinfo is not None:
        raise ConfigError("prepare: dates: origin is a date without a time zone.")
