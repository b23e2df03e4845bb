"""The data sets by name, and how they are loaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mtcd.checks import check_whole
from mtcd.data.datasets.basehock import BASEHOCK
from mtcd.data.datasets.entry import Dataset
from mtcd.data.datasets.folder import absence, find_all
from mtcd.data.datasets.gisette import GISETTE
from mtcd.data.datasets.gisette_like import GISETTE_LIKE
from mtcd.data.vertical import VerticalData, split
from mtcd.errors import DataError, did_you_mean
from mtcd.seeding import stream

DATASETS: dict[str, Dataset] = {"gisette": GISETTE, "gisette-like": GISETTE_LIKE, "basehock": BASEHOCK}


def load_dataset(
    name: str, clients: int, samples: int | None = None, features: int | None = None, seed: int = 0
) -> VerticalData:
    """A public data set, its features split evenly over the clients, with labels 0 and 1.

    ``name`` is ``gisette``, ``gisette-like`` or ``basehock``; the environment variable MTCD_DATA names the
    folder that holds their files. ``samples`` and ``features`` ask for a random part, drawn from ``seed``.
    """
    check_whole("seed", seed, least=0)
    entry = _entry(name)
    files = find_all(entry.subfolder, entry.files)
    if files is None:
        raise DataError(_absent(entry))
    raw = entry.read(files, seed)
    rows = _part("samples", raw.values.shape[0], samples, seed)
    columns = _part("features", raw.values.shape[1], features, seed)
    labels = raw.labels[rows]
    if len(np.unique(labels)) < 2:
        raise DataError(f"All {len(rows)} samples drawn from {name!r} are of one class: ask for more samples.")
    values = raw.values if samples is None else raw.values[rows]
    values = values if features is None else values[:, columns]
    data = split(values / raw.scale, labels, clients, [f"x{j}" for j in columns])
    whole = samples is None and features is None
    part = "" if whole else f" A part of it: {len(rows)} samples and {len(columns)} features, drawn with seed {seed}."
    return replace(data, notes=(raw.note + part,))


def is_present(name: str) -> bool:
    """Whether the files of this data set are in the data folder."""
    entry = _entry(name)
    return find_all(entry.subfolder, entry.files) is not None


def first_present(names: Sequence[str]) -> str:
    """The first of these data sets whose files are in the data folder."""
    present = [name for name in names if is_present(name)]
    if not present:
        raise DataError("\n".join(_absent(_entry(name)) for name in names))
    return present[0]


def _entry(name: str) -> Dataset:
    if name not in DATASETS:
        raise DataError(f"There is no data set {name!r}: {did_you_mean(name, DATASETS)}")
    return DATASETS[name]


def _absent(entry: Dataset) -> str:
    return f"{entry.title} is not at hand: {absence(entry.subfolder, entry.files)} To get it: {entry.how}"


def _part(what: str, total: int, wanted: int | None, seed: int) -> NDArray[np.intp]:
    """Which rows or columns to keep, in their order."""
    if wanted is None:
        return np.arange(total)
    check_whole(what, wanted)
    if wanted > total:
        raise DataError(f"The data set has {total} {what}, fewer than {wanted}: ask for {total} or fewer.")
    return np.sort(stream(seed, f"part of {what}").choice(total, wanted, replace=False))
