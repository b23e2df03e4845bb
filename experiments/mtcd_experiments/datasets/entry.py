"""The entries of the catalogue of data sets, and the results of their readers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.checks import check_whole
from mtcd.data.vertical import Block, VerticalData


@dataclass(frozen=True, eq=False)
class Raw:
    """A data set as it is stored: whole numbers, which the features are once divided by
    ``scale``."""

    values: Block  # samples x features
    scale: float
    labels: NDArray[np.int64]  # 0 and 1
    note: str  # what it is, for the user


@dataclass(frozen=True, eq=False)
class RawPictures:
    """Pictures as they are stored: from 0 to 255, samples x channels (or views) x rows x
    columns."""

    train: NDArray[np.uint8]
    train_labels: NDArray[np.int64]  # 0, 1, ...
    test: NDArray[np.uint8]
    test_labels: NDArray[np.int64]
    note: str


@dataclass(frozen=True, eq=False)
class RawSeries:
    """Measurements of stations, hour by hour; NaN where there is none."""

    clients: tuple[str, ...]
    channels: tuple[str, ...]
    values: Array  # hours x clients x channels
    first: np.datetime64  # the first hour
    positions: Array  # clients x degrees east and north
    note: str


@dataclass(frozen=True)
class Forecast:
    """PM2.5 at a station of Beijing's air, some hours ahead.

    Parameters
    ----------
    target : str, default 'Dongsi'
        The station.
    hours : int, default 6
        How far ahead.
    year : int, default 2016
        The test year begins in March of this year.

    Examples
    --------
    >>> import mtcd
    >>> tomorrow = mtcd.Forecast("Dongsi", hours=24)
    >>> data = mtcd.load_dataset("beijing-air", 12, forecast=tomorrow)  # doctest: +SKIP
    """

    target: str = "Dongsi"
    hours: int = 6
    year: int = 2016

    def __post_init__(self) -> None:
        check_whole("forecast.hours", self.hours)
        check_whole("forecast.year", self.year)


@dataclass(frozen=True)
class CatalogueEntry:
    """The common part of all entries of the catalogue."""

    title: str
    subfolder: str
    # any one of these sets of files will do; a folder's name ends in /
    files: tuple[tuple[str, ...], ...]
    how: str  # to get them


@dataclass(frozen=True)
class Dataset(CatalogueEntry):
    """A table that can be loaded where its files are at hand."""

    read: Callable[[Mapping[str, Path], int], Raw]  # from the files found, and a seed


@dataclass(frozen=True)
class Pictures(CatalogueEntry):
    """Pictures that can be loaded where their files are at hand."""

    read: Callable[[Mapping[str, Path]], RawPictures]
    # which part of a picture of this shape each client sees, for a number of clients
    cut: Callable[[tuple[int, ...], int], list[tuple[slice, ...]]]
    by_channel: bool  # whether each channel has a mean and a standard deviation of its own


@dataclass(frozen=True)
class Series(CatalogueEntry):
    """Measurements over time, of which later ones are predicted from earlier ones."""

    read: Callable[[Mapping[str, Path]], RawSeries]
    forecast: Callable[[RawSeries, Forecast, int], VerticalData]  # for a number of clients
