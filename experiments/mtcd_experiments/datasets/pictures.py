"""From stored pictures to the parts that each client sees."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.data.dataset import VerticalDataset
from mtcd_experiments.datasets.entry import Pictures, RawPictures
from mtcd_experiments.datasets.folder import content, damaged

Bytes = NDArray[np.uint8]


def vertical(
    entry: Pictures,
    raw: RawPictures,
    clients: int,
    rows: NDArray[np.intp],
    test_rows: NDArray[np.intp],
) -> VerticalDataset:
    """These samples, cut for the clients and normalised by mean and deviation of the whole training
    set."""
    pieces = entry.cut(raw.train.shape[1:], clients)
    mean, deviation = statistics(raw.train, entry.by_channel)
    note = f"{raw.note} Values from 0 to 1, less {_listed(mean)}, divided by {_listed(deviation)}."

    def seen(pictures: Bytes) -> dict[str, Any]:
        return {
            f"client_{k}": _normal(pictures, piece, mean, deviation)
            for k, piece in enumerate(pieces)
        }

    test = VerticalDataset(seen(raw.test[test_rows]), raw.test_labels[test_rows])
    return VerticalDataset(seen(raw.train[rows]), raw.train_labels[rows], test=test, notes=(note,))


def statistics(pictures: Bytes, by_channel: bool) -> tuple[Array, Array]:
    """Mean and standard deviation of values scaled to 0..1: of each channel, or of all (in one row
    of one)."""
    channels = pictures.shape[1] if by_channel else 1
    total, squares = np.zeros(channels, dtype=np.uint64), np.zeros(channels, dtype=np.uint64)
    for start in range(0, len(pictures), 250):  # whole numbers: exact, and without a large copy
        some = pictures[start : start + 250].astype(np.uint32)
        axes = (0, 2, 3) if by_channel else None
        total += some.sum(axis=axes, dtype=np.uint64)
        squares += (some**2).sum(axis=axes, dtype=np.uint64)
    count = pictures.size / channels
    mean = total / count
    deviation = np.sqrt(squares / count - mean**2) / 255
    # pictures of one shade only are left as they are
    return mean / 255, np.where(deviation > 0, deviation, 1.0)


def read_arrays(
    files: Mapping[str, Path], name: str, *keys: str
) -> tuple[bytes, list[NDArray[Any]]]:
    """The arrays in an npz file, and its content."""
    found = content(files[name])
    try:
        with np.load(io.BytesIO(found), allow_pickle=False) as arrays:
            return found, [arrays[key] for key in keys]
    except Exception as error:  # anything can come out of a file that is of another kind
        raise damaged(files[name], str(error)) from None


def _normal(
    pictures: Bytes, piece: tuple[slice, ...], mean: Array, deviation: Array
) -> NDArray[np.float32]:
    cut = pictures[(slice(None), *piece)].astype(np.float32)
    cut /= 255
    cut -= mean[:, None, None].astype(np.float32)
    cut /= deviation[:, None, None].astype(np.float32)
    return cut


def _listed(numbers: Array) -> str:
    return " ".join(f"{number:.4f}" for number in numbers)
