"""Forecasts as a vertical problem: each station holds its own past, the label is what one of them
measures later.

Nothing of a test year reaches the training: its labels and measurements come later than all labels
trained on, gaps are filled from the past, and means are those of the hours before it.
"""

from __future__ import annotations

import numpy as np

from mtcd.core.arrays import Array, Rows
from mtcd.core.errors import DataError, did_you_mean
from mtcd.data.vertical import HeldOut, VerticalData
from mtcd_experiments.datasets.entry import Forecast, RawSeries

LAGS = (0, 1, 3, 6, 12, 24)  # hours before now
PREDICTED = "PM2.5"
OLDEST = 12  # hours for which the last measurement stands in for one that is missing
CLOCK = ("hour.sin", "hour.cos", "half-day.sin", "half-day.cos", "year.sin", "year.cos")
PERIODS = (24.0, 12.0, 24 * 365.25)


def forecast(raw: RawSeries, asked: Forecast, clients: int) -> VerticalData:
    """The target and the stations nearest to it, so many in all, with the test year as the test
    set."""
    _check(raw, asked, clients)
    target = raw.clients.index(asked.target)
    start, end = (_hour(raw, year) for year in (asked.year, asked.year + 1))
    now = np.arange(max(LAGS), end - asked.hours)
    labels = raw.values[:, target, raw.channels.index(PREDICTED)][now + asked.hours]
    measured = ~np.isnan(labels)
    training, testing = (now + asked.hours < start) & measured, (now >= start) & measured
    if not (training.any() and testing.any()):
        raise DataError(
            f"There is nothing to train or to test on {asked.hours:,} hours ahead: ask for fewer "
            f"hours."
        )
    filled = _filled(raw.values, start)
    nearest = np.argsort(distances(raw.positions)[target], kind="stable")[:clients]
    stations = sorted(int(k) for k in nearest)

    def part(
        kind: type[VerticalData], chosen: Rows, test: VerticalData | None = None
    ) -> VerticalData:
        blocks = [_past(filled[:, k], now[chosen]) for k in stations]
        columns = [_names(raw.clients[k], raw.channels) for k in stations]
        place = stations.index(target)
        blocks[place] = np.asfortranarray(
            np.hstack([blocks[place], _clock(raw, now[chosen] + asked.hours)])
        )
        columns[place] += tuple(f"{asked.target}.{name}" for name in CLOCK)
        names = tuple(raw.clients[k] for k in stations)
        note = f"{raw.note} {_told(raw, asked, int((~measured).sum()))}"
        return kind(
            names, tuple(columns), tuple(blocks), labels[chosen], (note,) if test else (), test=test
        )

    return part(VerticalData, np.flatnonzero(training), part(HeldOut, np.flatnonzero(testing)))


def _check(raw: RawSeries, asked: Forecast, clients: int) -> None:
    if asked.target not in raw.clients:
        raise DataError(
            f"There is no station {asked.target!r}: {did_you_mean(asked.target, raw.clients)}"
        )
    if clients > len(raw.clients):
        raise DataError(
            f"There are {len(raw.clients)} stations, fewer than {clients}: ask for that many or "
            f"fewer."
        )
    first, last = (
        int(str(hour)[:4]) for hour in (raw.first, raw.first + np.timedelta64(len(raw.values), "h"))
    )
    if not first < asked.year < last:
        raise DataError(
            f"forecast.year is {asked.year}, but must be {first + 1} to {last - 1}: years start in "
            f"March."
        )


def distances(positions: Array) -> Array:
    """Kilometres between all pairs of places, given in degrees east and north, within one
    region."""
    east, north = np.radians(positions).T * 6371.0
    flat = np.stack([east * np.cos(np.radians(positions[:, 1].mean())), north], axis=1)
    between: Array = np.linalg.norm(flat[:, None] - flat[None], axis=2)
    return between


def _hour(raw: RawSeries, year: int) -> int:
    """How many hours after the first one March of that year starts."""
    return int((np.datetime64(f"{year:04}-03-01T00", "h") - raw.first).astype(int))


def _filled(values: Array, start: int) -> Array:
    """Without gaps: the last measurement if it is not too old, else the mean of the hours before
    ``start``."""
    hours = np.arange(len(values))[:, None, None]
    last = np.maximum.accumulate(np.where(np.isnan(values), -1, hours), axis=0)
    recent = (last >= 0) & (hours - last <= OLDEST)
    means = np.nanmean(values[:start], axis=0)
    filled: Array = np.where(recent, np.take_along_axis(values, np.maximum(last, 0), axis=0), means)
    return filled


def _past(measured: Array, now: Rows) -> Array:
    """What one station measured at these hours and before: a column for each channel and lag."""
    columns = [measured[now - lag, channel] for channel in range(measured.shape[1]) for lag in LAGS]
    return np.stack(columns).T  # column-major, as blocks are


def _names(station: str, channels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(
        f"{station}.{channel}{f'-{lag}h' if lag else ''}" for channel in channels for lag in LAGS
    )


def _clock(raw: RawSeries, hours: Rows) -> Array:
    """Time of day and of year, which are known in advance, as waves."""
    since_midnight = hours + int((raw.first - raw.first.astype("datetime64[D]")).astype(int))
    waves = [
        wave(2 * np.pi * since_midnight / period) for period in PERIODS for wave in (np.sin, np.cos)
    ]
    return np.stack(waves, axis=1)


def _told(raw: RawSeries, asked: Forecast, unlabelled: int) -> str:
    missing = np.isnan(raw.values).mean()
    return (
        f"Predicted: {PREDICTED} at {asked.target} {asked.hours} hours ahead; tested on March "
        f"{asked.year} to February "
        f"{asked.year + 1}, trained on all before. {missing:.1%} of the measurements are missing: "
        f"the last one of the "
        f"station stands in for {OLDEST} hours, then the mean before the test year. {unlabelled:,} "
        f"hours without a "
        "measured label are left out."
    )
