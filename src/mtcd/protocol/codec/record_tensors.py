"""Tensors as bytes, for journals. PyTorch is imported when there is a tensor to read, and not
before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import MtcdError

DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
)


def tensor_bytes(value: Any) -> tuple[str, list[int], NDArray[np.uint8]]:
    """Its kind of numbers, its shape, and its bytes in the order of the places, however these lie
    in memory."""
    import torch

    dtype = str(value.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise MtcdError(f"A tensor of {dtype} cannot be kept.")
    # In the order of the places: a transposed tensor lies otherwise, and comes back plain.
    flat = value.detach().cpu().contiguous().reshape(-1)
    bytes_of: NDArray[np.uint8] = flat.view(torch.uint8).numpy()
    return dtype, list(value.shape), bytes_of


def tensor_of(dtype: str, shape: Sequence[int], data: bytes | memoryview) -> Any:
    """Rebuild a tensor, in its own memory."""
    import torch

    if dtype not in DTYPES:
        raise MtcdError(
            f"The journal holds a tensor of {dtype}, which is unknown: it is of another version."
        )
    kind = getattr(torch, dtype)
    if not data:
        return torch.empty(tuple(shape), dtype=kind)
    # a copy, as sums may be rounded otherwise where numbers lie as they lie in the bytes
    return torch.frombuffer(bytearray(data), dtype=kind).reshape(tuple(shape)).clone()
