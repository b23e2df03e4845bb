"""Tensors of torch as arrays of NumPy. Nothing here imports torch: a tensor is known by what it can
do."""

from __future__ import annotations

from typing import Any

from mtcd.core.errors import DataError


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
