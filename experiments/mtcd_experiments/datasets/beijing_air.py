"""Beijing multi-site air quality: what 12 stations measured, every hour from March 2013 to February
2017.

The files of the UCI repository (a CSV file per station), or ``beijing_air.npz`` with the same as
arrays. No checksum is published that could be pinned, so the content is checked.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd_experiments.datasets.air_forecast import forecast
from mtcd_experiments.datasets.entry import RawSeries, Series
from mtcd_experiments.datasets.folder import content, damaged
from mtcd_experiments.datasets.pictures import read_arrays

# degrees east and north, as the station list of the KDD Cup 2018 gives them (35 stations, these
# among them)
POSITIONS = {
    "Aotizhongxin": (116.397, 39.982),
    "Changping": (116.230, 40.217),
    "Dingling": (116.220, 40.292),
    "Dongsi": (116.417, 39.929),
    "Guanyuan": (116.339, 39.929),
    "Gucheng": (116.184, 39.914),
    "Huairou": (116.628, 40.328),
    "Nongzhanguan": (116.461, 39.937),
    "Shunyi": (116.655, 40.127),
    "Tiantan": (116.407, 39.886),
    "Wanliu": (116.287, 39.987),
    "Wanshouxigong": (116.352, 39.878),
}
MEASURED = ("PM2.5", "PM10", "SO2", "NO2", "CO", "O3", "TEMP", "PRES", "DEWP", "RAIN", "WSPM")
WIND = ("wind.north", "wind.east")  # metres per second, from there
COMPASS = (
    "N",
    "NNE",
    "NE",
    "ENE",
    "E",
    "ESE",
    "SE",
    "SSE",
    "S",
    "SSW",
    "SW",
    "WSW",
    "W",
    "WNW",
    "NW",
    "NNW",
)
FIRST, HOURS = "2013-03-01T00", 35_064  # four years, one of them a leap year
COPY = "beijing_air.npz"
ORIGINALS = tuple(f"PRSA_Data_{station}_20130301-20170228.csv" for station in POSITIONS)


def read(files: Mapping[str, Path]) -> RawSeries:
    """All measurements, NaN where there is none, with the wind as two speeds in place of its
    direction."""
    values, compass = _read_copy(files) if COPY in files else _read_originals(files)
    angle = np.where(compass < 0, np.nan, compass * (2 * np.pi / len(COMPASS)))
    speed = values[:, :, MEASURED.index("WSPM")]
    wind = (speed * np.cos(angle), speed * np.sin(angle))
    source = COPY if COPY in files else "the files of the UCI repository"
    return RawSeries(
        clients=tuple(POSITIONS),
        channels=(*MEASURED, *WIND),
        values=np.concatenate([values, np.stack(wind, axis=2)], axis=2),
        first=np.datetime64(FIRST, "h"),
        positions=np.array(list(POSITIONS.values())),
        note=f"beijing-air: hourly measurements of {len(POSITIONS)} stations, read from {source}.",
    )


def _read_copy(files: Mapping[str, Path]) -> tuple[Array, NDArray[np.int64]]:
    path = files[COPY]
    _, (values, compass, hours, stations, channels) = read_arrays(
        files, COPY, "X", "wd", "time", "stations", "channels"
    )
    if stations.tolist() != list(POSITIONS) or channels.tolist() != list(MEASURED):
        raise damaged(path, "it holds other stations or channels")
    if values.shape != (HOURS, len(POSITIONS), len(MEASURED)) or compass.shape != values.shape[:2]:
        raise damaged(
            path,
            f"X has the shape {values.shape} and wd {compass.shape}, but there are {HOURS:,} hours",
        )
    _check(path, values, compass, hours)
    return values.astype(float), compass.astype(np.int64)


def _read_originals(files: Mapping[str, Path]) -> tuple[Array, NDArray[np.int64]]:
    values = np.empty((HOURS, len(POSITIONS), len(MEASURED)))
    compass = np.empty((HOURS, len(POSITIONS)), dtype=np.int64)
    for k, name in enumerate(ORIGINALS):
        path = files[name]
        try:
            table = pl.read_csv(
                io.BytesIO(content(path)), null_values=["NA"], infer_schema_length=None
            )
            numbers = table.select(pl.col(MEASURED).cast(pl.Float64)).to_numpy()
            hours = table.select("year", "month", "day", "hour").to_numpy()
            winds = table["wd"].to_list()
        except pl.exceptions.PolarsError as error:
            raise damaged(path, str(error).splitlines()[0]) from None
        if unknown := set(winds) - {None, *COMPASS}:
            raise damaged(path, f"it has a wind from {sorted(unknown)[0]!r}")
        directions = np.array([-1 if wind is None else COMPASS.index(wind) for wind in winds])
        _check(path, numbers, directions, hours)
        values[:, k], compass[:, k] = numbers, directions
    return values, compass


def _check(path: Path, values: NDArray[Any], compass: NDArray[Any], hours: NDArray[Any]) -> None:
    """Reject measurements of other hours, and values that no station can measure."""
    times = np.datetime64(FIRST, "h") + np.arange(HOURS).astype("timedelta64[h]")
    days = times.astype("datetime64[D]")
    months = times.astype("datetime64[M]")
    parts = (
        times.astype("datetime64[Y]").astype(int) + 1970,
        months.astype(int) % 12 + 1,
        (days - months.astype("datetime64[D]")).astype(int) + 1,
        (times - days).astype(int),
    )
    if hours.shape != (HOURS, 4) or (hours != np.stack(parts, axis=1)).any():
        raise damaged(path, f"its rows are not the {HOURS:,} hours from {FIRST} on")
    pollutants = values[..., : MEASURED.index("TEMP")]
    if (
        np.isinf(values).any()
        or (pollutants < 0).any()
        or not np.isin(compass, range(-1, len(COMPASS))).all()
    ):
        raise damaged(path, "it holds infinite or negative values, or winds from nowhere")


BEIJING_AIR = Series(
    title="Beijing multi-site air quality",
    subfolder="beijing_air",
    files=((COPY,), ORIGINALS),
    how=(
        "download PRSA2017_Data_20130301-20170228.zip from "
        "https://archive.ics.uci.edu/dataset/501/beijing+multi+site+air+quality+data and unpack "
        "its CSV files into "
        "the folder beijing_air of the data folder."
    ),
    read=read,
    forecast=forecast,
)
