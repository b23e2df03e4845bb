"""BASEHOCK: 1993 postings to newsgroups about baseball or hockey, as counts of 4862 words.

``BASEHOCK.mat`` is the file of the scikit-feature collection, ``basehock.npz`` the same as arrays X
and y. No checksum is published that could be pinned, so the content is checked, and the note has
the file's checksum.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from inspect import signature
from pathlib import Path

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.data.vertical import Block
from mtcd_experiments.datasets.entry import Dataset, Raw
from mtcd_experiments.datasets.folder import content, damaged

COPY, ORIGINAL = "basehock.npz", "BASEHOCK.mat"
SHAPE, CLASSES = (1993, 4862), [0, 994, 999]  # how many labels are 0, 1, 2


def read(files: Mapping[str, Path], seed: int) -> Raw:
    """The counts as they are, sparse (1.4% are not 0); classes 1 and 2 become labels 0 and 1."""
    name, parse = (COPY, parse_copy) if COPY in files else (ORIGINAL, parse_original)
    found = content(files[name])
    try:
        counts, classes = parse(found)
    except Exception as error:  # anything can come out of a file that is of another kind
        raise damaged(files[name], str(error)) from None
    if why := _wrong(counts, classes):
        raise damaged(files[name], why)
    digest = hashlib.sha256(found).hexdigest()[:16]
    return Raw(
        counts, 1.0, classes - 1, f"basehock: word counts, read from {name} (sha256 {digest}...)."
    )


def parse_copy(npz: bytes) -> tuple[Block, NDArray[np.int64]]:
    """Arrays X and y."""
    arrays = np.load(io.BytesIO(npz))
    return scipy.sparse.csr_array(arrays["X"]), arrays["y"].astype(np.int64)


def parse_original(mat: bytes) -> tuple[Block, NDArray[np.int64]]:
    """Matrices X and Y, of one column."""
    # newer releases of scipy warn until they are told which kind of sparse matrix to make; older
    # ones do not ask
    asked = signature(scipy.io.loadmat).parameters
    options = {"spmatrix": False} if "spmatrix" in asked else {}
    arrays = scipy.io.loadmat(io.BytesIO(mat), variable_names=["X", "Y"], **options)
    return scipy.sparse.csr_array(arrays["X"]), arrays["Y"].ravel().astype(np.int64)


def _wrong(counts: Block, classes: NDArray[np.int64]) -> str:
    """A description of invalid content, or None."""
    if counts.shape != SHAPE:
        return f"X has the shape {counts.shape}, but should have {SHAPE}"
    if not ((counts.data >= 0) & (counts.data == np.rint(counts.data))).all():
        return "X holds values that are no counts"
    if sorted(set(classes)) != [1, 2] or np.bincount(classes).tolist() != CLASSES:
        return "Y does not hold 994 times 1 and 999 times 2"
    return ""


BASEHOCK = Dataset(
    title="BASEHOCK",
    subfolder="basehock",
    files=((COPY,), (ORIGINAL,)),
    how=f"download {ORIGINAL} from https://jundongl.github.io/scikit-feature/datasets.html into the data folder.",
    read=read,
)
