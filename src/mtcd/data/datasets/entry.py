"""What the catalogue knows of a data set, and what its reader gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtcd.data.vertical import Block


@dataclass(frozen=True, eq=False)
class Raw:
    """A data set as it is stored: whole numbers, which the features are once divided by ``scale``."""

    values: Block  # samples x features
    scale: float
    labels: NDArray[np.int64]  # 0 and 1
    note: str  # what it is, for the user


@dataclass(frozen=True)
class Dataset:
    """A data set that can be loaded where its files are at hand."""

    title: str
    subfolder: str
    files: tuple[tuple[str, ...], ...]  # any one of these sets of files will do
    how: str  # to get them
    read: Callable[[Mapping[str, Path], int], Raw]  # from the files found, and a seed
