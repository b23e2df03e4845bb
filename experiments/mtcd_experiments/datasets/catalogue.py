"""The data sets by name, and how they are loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from mtcd.core.checks import check_whole
from mtcd.core.errors import DataError, did_you_mean, listing
from mtcd.core.seeding import stream
from mtcd.data.dataset import VerticalDataset
from mtcd.data.splitting import split
from mtcd.data.vertical import VerticalData
from mtcd_experiments.datasets.basehock import BASEHOCK
from mtcd_experiments.datasets.beijing_air import BEIJING_AIR
from mtcd_experiments.datasets.cifar10 import CIFAR10
from mtcd_experiments.datasets.entry import (
    CatalogueEntry,
    Dataset,
    Forecast,
    Pictures,
    RawSeries,
    Series,
)
from mtcd_experiments.datasets.folder import absence, find_all
from mtcd_experiments.datasets.gisette import GISETTE
from mtcd_experiments.datasets.gisette_like import GISETTE_LIKE
from mtcd_experiments.datasets.modelnet10 import MODELNET10
from mtcd_experiments.datasets.pictures import vertical

E = TypeVar("E", bound=CatalogueEntry)

DATASETS: dict[str, Dataset] = {
    "gisette": GISETTE,
    "gisette-like": GISETTE_LIKE,
    "basehock": BASEHOCK,
}
PICTURES: dict[str, Pictures] = {"cifar10": CIFAR10, "modelnet10": MODELNET10}
SERIES: dict[str, Series] = {"beijing-air": BEIJING_AIR}
ALL: dict[str, CatalogueEntry] = {**DATASETS, **PICTURES, **SERIES}


@overload
def load_dataset(  # type: ignore[overload-overlap]  # the literal names are the more special case
    name: Literal["cifar10", "modelnet10"],
    clients: int,
    samples: int | None = ...,
    features: None = ...,
    seed: int = ...,
    test_samples: int | None = ...,
) -> VerticalDataset: ...


@overload
def load_dataset(
    name: str,
    clients: int,
    samples: int | None = ...,
    features: int | None = ...,
    seed: int = ...,
    test_samples: int | None = ...,
    forecast: Forecast | None = ...,
) -> VerticalData: ...


def load_dataset(
    name: str,
    clients: int,
    samples: int | None = None,
    features: int | None = None,
    seed: int = 0,
    test_samples: int | None = None,
    forecast: Forecast | None = None,
) -> VerticalData | VerticalDataset:
    """A public data set, split over the clients.

    The environment variable MTCD_DATA names the folder that holds the files (docs/datasets.md).

    Parameters
    ----------
    name : str
        'gisette', 'gisette-like' or 'basehock', which are tables; 'cifar10' or 'modelnet10', which
        are pictures for split networks, with a test set; or 'beijing-air'.
    clients : int
        K, the number of clients.
    samples : int, optional
        The size of a random part; all samples unless given.
    features : int, optional
        The number of columns of a random part.
    seed : int, default 0
        Determines random parts.
    test_samples : int, optional
        The size of a random part of the test set.
    forecast : Forecast, optional
        What is predicted of 'beijing-air'.

    Returns
    -------
    VerticalData or VerticalDataset
        The samples, split over the clients.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.load_dataset("gisette", clients=10)  # doctest: +SKIP
    """
    if name in SERIES:
        if features is not None:
            raise DataError(
                f"{name!r} holds series, of which no features can be drawn: leave 'features' out."
            )
        return load_series(name, clients, samples, seed, test_samples, forecast)
    check_no_forecast(name, forecast)
    if name in PICTURES:
        if features is not None:
            raise DataError(
                f"{name!r} holds pictures, of which no features can be drawn: leave 'features' out."
            )
        return load_pictures(name, clients, samples, seed, test_samples)
    if test_samples is not None and name in DATASETS:
        raise DataError(f"{name!r} has no test set: leave 'test_samples' out.")
    return load_table(name, clients, samples, features, seed)


def load_pictures(
    name: str,
    clients: int,
    samples: int | None = None,
    seed: int = 0,
    test_samples: int | None = None,
) -> VerticalDataset:
    """Pictures with a test set, of which each client sees a part; labels are 0, 1, ...

    The quadrants of ``cifar10`` (4 clients; the halves with 2, all with 1), or the views of
    ``modelnet10`` (a number of clients that divides that of the views). Normalised by the
    statistics of the training set.
    """
    if name in DATASETS:
        raise DataError(
            f"{name!r} is a table, not pictures: {listing(list(PICTURES))} are pictures."
        )
    check_whole("seed", seed, least=0)
    check_whole("clients", clients)
    entry = _entry(PICTURES, name)
    raw = entry.read(_files(entry))
    rows = _part("samples", len(raw.train_labels), samples, seed)
    test_rows = _part("test samples", len(raw.test_labels), test_samples, seed)
    for labels in (raw.train_labels[rows], raw.test_labels[test_rows]):
        _check_classes(name, labels)
    data = vertical(entry, raw, clients, rows, test_rows)
    whole = samples is None and test_samples is None
    part = f"A part of it: {len(rows)} samples and {len(test_rows)} test samples, drawn with seed {seed}."
    return data if whole else replace(data, notes=(f"{data.notes[0]} {part}",))


def load_series(
    name: str,
    clients: int,
    samples: int | None = None,
    seed: int = 0,
    test_samples: int | None = None,
    forecast: Forecast | None = None,
) -> VerticalData:
    """What each station measured in the past hours, a later measurement of one as the label, and a
    year to test on.

    The clients are the station whose measurement is predicted, and those nearest to it.
    """
    check_whole("seed", seed, least=0)
    check_whole("clients", clients)
    data = _entry(SERIES, name).forecast(read_series(name), forecast or Forecast(), clients)
    assert data.test is not None
    if samples is None and test_samples is None:
        return data
    rows = _part("samples", data.samples, samples, seed)
    test_rows = _part("test samples", data.test.samples, test_samples, seed)
    part = f"A part of it: {len(rows)} samples and {len(test_rows)} test samples, drawn with seed {seed}."
    drawn = data.take(rows)
    return replace(
        drawn, notes=(f"{data.notes[0]} {part}",), test=data.test.take(test_rows, like=drawn)
    )


def read_series(name: str) -> RawSeries:
    """The measurements of all stations, of which any forecast is made."""
    entry = _entry(SERIES, name)
    return entry.read(_files(entry))


def check_no_forecast(name: str, forecast: Forecast | None) -> None:
    """Reject a forecast of data that are no series."""
    if forecast is not None and name in ALL and name not in SERIES:
        raise DataError(
            f"{name!r} has nothing to forecast: leave 'forecast' out, or take "
            f"{listing(list(SERIES))}."
        )


def load_table(
    name: str, clients: int, samples: int | None = None, features: int | None = None, seed: int = 0
) -> VerticalData:
    """A table, its features split evenly over the clients, with labels 0 and 1."""
    if name in PICTURES:
        raise DataError(
            f"{name!r} holds pictures, which a linear model has no use for: train a split network "
            f"on it."
        )
    check_whole("seed", seed, least=0)
    entry = _entry(DATASETS, name)
    raw = entry.read(_files(entry), seed)
    rows = _part("samples", raw.values.shape[0], samples, seed)
    columns = _part("features", raw.values.shape[1], features, seed)
    labels = raw.labels[rows]
    _check_classes(name, labels)
    # a part that is all of it is not copied
    values = raw.values
    if samples is not None:
        values = values[rows]
    if features is not None:
        values = values[:, columns]

    data = split(values / raw.scale, labels, clients, [f"x{j}" for j in columns])

    part = ""
    if samples is not None or features is not None:
        part = (
            f" A part of it: {len(rows)} samples and {len(columns)} features, drawn with seed "
            f"{seed}."
        )

    return replace(data, notes=(raw.note + part,))


def is_present(name: str) -> bool:
    """Whether the files of this data set are in the data folder."""
    entry = _entry(ALL, name)
    return find_all(entry.subfolder, entry.files) is not None


def first_present(names: Sequence[str]) -> str:
    """The first of these data sets whose files are in the data folder."""
    present = [name for name in names if is_present(name)]
    if not present:
        raise DataError("\n".join(_absent(_entry(ALL, name)) for name in names))
    return present[0]


def _entry(entries: Mapping[str, E], name: str) -> E:
    if name not in entries:
        raise DataError(f"There is no data set {name!r}: {did_you_mean(name, ALL)}")
    return entries[name]


def _files(entry: CatalogueEntry) -> dict[str, Path]:
    files = find_all(entry.subfolder, entry.files)
    if files is None:
        raise DataError(_absent(entry))
    return files


def _check_classes(name: str, labels: NDArray[np.int64]) -> None:
    if len(np.unique(labels)) < 2:
        raise DataError(
            f"All {len(labels)} samples drawn from {name!r} are of one class: ask for more samples."
        )


def _absent(entry: CatalogueEntry) -> str:
    return f"{entry.title} is not at hand: {absence(entry.subfolder, entry.files)} To get it: {entry.how}"


def _part(what: str, total: int, wanted: int | None, seed: int) -> NDArray[np.intp]:
    """Which rows or columns to keep, in their order."""
    if wanted is None:
        return np.arange(total)
    check_whole(what, wanted)
    if wanted > total:
        raise DataError(
            f"The data set has {total} {what}, fewer than {wanted}: ask for {total} or fewer."
        )
    return np.sort(stream(seed, f"part of {what}").choice(total, wanted, replace=False))
