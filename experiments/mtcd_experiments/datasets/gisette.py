"""Gisette: handwritten 4 against 9, of the feature selection challenge of NIPS 2003.

The files are those of the UCI repository. It publishes no checksums; these are the ones that two
independent projects published for their downloads from there.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtcd_experiments.datasets.entry import Dataset, Raw
from mtcd_experiments.datasets.folder import content, verified

DATA, LABELS = "gisette_train.data", "gisette_train.labels"
SHA256 = {
    DATA: "6d4c5e998afe67937b9e77a3334e03c85e545ebc65a6eb1333ffc14125cfc389",
    LABELS: "42bd681fe51b161f033df773df14a0116e492676555ab14616c1b72edc054075",
}
LARGEST = 999


def parse(data: bytes, labels: bytes) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """A line of whole numbers per sample, and a line +1 or -1 per sample, which become 1 and 0."""
    values = np.loadtxt(io.BytesIO(data), dtype=np.uint16, ndmin=2)
    signs = np.loadtxt(io.BytesIO(labels), dtype=np.int64, ndmin=1)
    return values, (signs > 0).astype(np.int64)


def read(files: Mapping[str, Path], seed: int) -> Raw:
    """The 6000 training samples."""
    data, labels = (
        verified(content(files[name]), SHA256[name], files[name]) for name in (DATA, LABELS)
    )
    values, classes = parse(data, labels)
    return Raw(
        values,
        LARGEST,
        classes,
        "gisette: the training set of the NIPS 2003 challenge, divided by 999.",
    )


GISETTE = Dataset(
    title="Gisette",
    subfolder="gisette",
    files=((DATA, LABELS),),
    how=f"download gisette.zip from https://archive.ics.uci.edu/dataset/170/gisette and copy {DATA} and {LABELS} "
    "out of its folder GISETTE, under these names (plain or .gz), into the data folder.",
    read=read,
)
