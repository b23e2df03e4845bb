"""CIFAR-10: pictures of 32 x 32 pixels of ten kinds of things, 50,000 for training and 10,000 for
the test.

Read from the python version that its makers publish, packed or unpacked, or from ``cifar10.npz``,
the same as arrays x_train, y_train, x_test and y_test. Clients see the whole picture, its halves or
its quadrants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import DataError
from mtcd_experiments.datasets import safe_pickle
from mtcd_experiments.datasets.entry import Pictures, RawPictures
from mtcd_experiments.datasets.folder import content, damaged, members
from mtcd_experiments.datasets.pictures import read_arrays

PACKED, UNPACKED, COPY = "cifar-10-python.tar.gz", "cifar-10-batches-py/", "cifar10.npz"
MD5 = {PACKED: "c58f30108f718f92721af3b95e74349a"}  # as published
BATCHES = [f"data_batch_{j}" for j in range(1, 6)]
TEST = "test_batch"
CLASSES, SIDE = 10, 32
SIZES = {"batch": 10_000}  # pictures in each of the five batches, and in the test set

Labelled = tuple[NDArray[np.uint8], NDArray[np.int64]]


def read(files: Mapping[str, Path]) -> RawPictures:
    """All pictures, channels first."""
    parts = _from_copy(files) if COPY in files else _from_batches(files)
    name, path = next(iter(files.items()))
    (train, train_labels), (test, test_labels) = parts
    for labels, batches in ((train_labels, len(BATCHES)), (test_labels, 1)):
        counts = np.bincount(labels, minlength=CLASSES).tolist()
        if counts != [batches * SIZES["batch"] // CLASSES] * CLASSES:
            raise damaged(path, f"the classes are not equally many: {counts}")
    note = f"cifar10: {len(train)} pictures for training and {len(test)} for the test, read from {name}."
    return RawPictures(train, train_labels, test, test_labels, note)


def cut(shape: tuple[int, ...], clients: int) -> list[tuple[slice, ...]]:
    """The whole picture, the left and right half, or the quadrants: top left, top right, bottom
    left, bottom right."""
    first, second, whole = slice(0, SIDE // 2), slice(SIDE // 2, SIDE), slice(0, SIDE)
    rows_and_columns = {
        1: [(whole, whole)],
        2: [(whole, first), (whole, second)],
        4: [(first, first), (first, second), (second, first), (second, second)],
    }
    if clients not in rows_and_columns:
        raise DataError(f"A picture of cifar10 is cut for 1, 2 or 4 clients, not for {clients}.")
    return [(slice(None), rows, columns) for rows, columns in rows_and_columns[clients]]


def parse(batch: bytes, path: Path) -> Labelled:
    """One batch of the python version: per picture a row of red, then green, then blue, each row by
    row."""
    try:
        found = safe_pickle.load(batch)
        return _checked(
            found[b"data"].values.reshape(-1, 3, SIDE, SIDE), found[b"labels"], SIZES["batch"]
        )
    except Exception as error:  # anything can come out of a file that is of another kind
        raise damaged(path, str(error) or type(error).__name__) from None


def _from_batches(files: Mapping[str, Path]) -> list[Labelled]:
    if PACKED in files:
        packed = files[PACKED]
        _check_md5(packed)
        contents = members(packed, [UNPACKED + name for name in (*BATCHES, TEST)])
        batches = [parse(contents[UNPACKED + name], packed) for name in (*BATCHES, TEST)]
    else:
        paths = [files[UNPACKED] / name for name in (*BATCHES, TEST)]
        batches = [parse(content(path), path) for path in paths]
    pictures, labels = zip(*batches[:-1], strict=True)
    return [(np.concatenate(pictures), np.concatenate(labels)), batches[-1]]


def _from_copy(files: Mapping[str, Path]) -> list[Labelled]:
    _, (x, y, x_test, y_test) = read_arrays(files, COPY, "x_train", "y_train", "x_test", "y_test")
    parts = []
    for pictures, labels, batches in ((x, y, len(BATCHES)), (x_test, y_test, 1)):
        try:
            parts.append(_checked(pictures.transpose(0, 3, 1, 2), labels, batches * SIZES["batch"]))
        except ValueError as error:
            raise damaged(files[COPY], str(error)) from None
    return parts


def _checked(pictures: NDArray[Any], labels: Any, count: int) -> Labelled:
    """The same, if they are as many pictures and labels as there should be."""
    if pictures.shape != (count, 3, SIDE, SIDE) or pictures.dtype != np.uint8:
        raise ValueError(
            f"there are {len(pictures)} pictures of {pictures.shape[1:]}, {pictures.dtype}, not "
            f"{count}"
        )
    classes = np.asarray(labels)
    if classes.shape != (count,) or classes.dtype.kind not in "iu":
        raise ValueError(f"the labels are no list of {count} whole numbers")
    if not ((classes >= 0) & (classes < CLASSES)).all():
        raise ValueError("there are labels other than 0 to 9")
    return pictures, classes.astype(np.int64)


def _check_md5(path: Path) -> None:
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(
                file, lambda: hashlib.md5(usedforsecurity=False)
            ).hexdigest()
    except OSError as error:
        raise damaged(path, str(error)) from None
    if digest != MD5[PACKED]:
        raise damaged(path, f"its md5 is {digest}, but should be {MD5[PACKED]}")


CIFAR10 = Pictures(
    title="CIFAR-10",
    subfolder="cifar10",
    files=((PACKED,), (UNPACKED,), (COPY,)),
    how=f"download {PACKED} (python version) from https://www.cs.toronto.edu/~kriz/cifar.html into the data folder.",
    read=read,
    cut=cut,
    by_channel=True,
)
