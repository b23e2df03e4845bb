"""The array types that all layers share; sparse matrices and tensors, known without an import of their
libraries."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtcd.core.errors import DataError

Array = NDArray[np.float64]
"""Numbers of the model: aggregates, representations, parameters."""
Rows = NDArray[np.intp]
"""Indices of samples."""


def is_sparse(matrix: Any) -> bool:
    """As ``scipy.sparse.issparse``: whoever has made a sparse matrix has loaded it.

    >>> is_sparse([[0.0]])
    False
    """
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(matrix))


def dense(matrix: Any) -> NDArray[Any]:
    """The matrix as an array, whether it is sparse or not.

    >>> dense([[1.0, 0.0]])
    array([[1., 0.]])
    """
    if is_sparse(matrix):
        matrix = matrix.toarray()
    return np.asarray(matrix)


def is_tensor(values: Any) -> bool:
    """Whether this is a tensor of torch."""
    return hasattr(values, "detach") and hasattr(values, "isfinite")


def plain(values: Any) -> Any:
    """The values of a tensor as an array, from whatever device, without gradients; anything else as
    it is."""
    if not is_tensor(values):
        return values
    # A sparse tensor has no array, and one on 'meta' has no numbers at all.
    if values.is_meta or str(values.layout) != "torch.strided":
        what = "sparse"
        if values.is_meta:
            what = "on the device 'meta', so it has no values"
        raise DataError(
            f"The tensor is {what}: give one with all its values (to_dense() makes one of a sparse "
            f"one)."
        )
    values = values.detach().cpu()
    if values.is_floating_point() and values.itemsize < 4:
        values = values.double()  # numpy has no bfloat16
    return values.numpy()


def all_finite(*arrays: ArrayLike) -> bool:
    """Whether all numbers of all arrays are finite.

    >>> all_finite([1.0, 2.0], [np.inf])
    False
    """
    return all(np.isfinite(one).all() for one in arrays)
