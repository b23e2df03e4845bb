"""Dates as numbers: their parts, and the days since an origin."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import polars as pl

from mtcd.errors import ConfigError
from mtcd.prepare.transformer import TRANSFORMERS, Fitted, Transformer
from mtcd.prepare.values import has_zone, times

Part = Literal["year", "month", "day", "weekday", "hour", "days"]
MICROSECONDS_A_DAY = 86_400_000_000


@dataclass(frozen=True)
class Dated(Fitted):
    """The parts to give, the origin of the days, the time zone of the parts, and the format of texts."""

    parts: tuple[Part, ...]
    origin: str
    zone: str | None
    format: str | None
    reads, unread = "dates", "no dates"

    def __post_init__(self) -> None:
        ZoneInfo(self.zone or "UTC")  # raises an error if there is none
        datetime.fromisoformat(self.origin)

    def apply(self, column: pl.Series) -> list[pl.Series]:
        local = times(column, self.zone, self.format)
        return [self._part(local, part).cast(pl.Float64).alias(f"{column.name}.{part}") for part in self.parts]

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

    Without ``parts``: all, the hour only where times of day differ. Without ``origin``: the earliest training date.
    Times with a time zone are converted to ``zone``, by default that of the column, or UTC. Texts are read in the ISO
    format (2024-03-01, 2024-03-01T08:30+01:00), or by a ``format`` such as '%d.%m.%Y'.
    """

    fitted = Dated
    parts: tuple[Part, ...] | None = None
    origin: str | None = None
    zone: str | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        if self.parts is not None and (not self.parts or len(set(self.parts)) < len(self.parts)):
            raise ConfigError("prepare: dates: name each part once, and at least one.")
        try:
            origin = None if self.origin is None else datetime.fromisoformat(self.origin)
        except ValueError:
            raise ConfigError(f"prepare: dates: origin is {self.origin!r}, not a date such as 2000-01-01.") from None
        if origin is not None and origin.tzinfo is not None:
            raise ConfigError("prepare: dates: origin is a date without a time zone.")
        try:
            ZoneInfo(self.zone or "UTC")
        except (ZoneInfoNotFoundError, ValueError, OSError):
            raise ConfigError(f"prepare: dates: there is no time zone {self.zone!r}.") from None

    def fit(self, column: pl.Series) -> Dated:
        zone = self.zone
        if zone is None and has_zone(column, self.format):
            zone = column.dtype.time_zone if isinstance(column.dtype, pl.Datetime) else "UTC"
        known = times(column, zone, self.format).drop_nulls()
        parts: tuple[Part, ...] = get_args(Part)
        if len(known) == 0 or known.dt.hour().n_unique() == 1:
            parts = tuple(part for part in parts if part != "hour")
        first = known.min()
        start = (
            datetime(2000, 1, 1) if not isinstance(first, datetime) else datetime(first.year, first.month, first.day)
        )
        return Dated(self.parts or parts, self.origin or start.isoformat(), zone, self.format)
