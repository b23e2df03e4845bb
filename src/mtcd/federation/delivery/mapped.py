"""Numbers in a file, changed in place: for what is too large to be written at every commit."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import MtcdError


def mapped_numbers(path: Path, shape: tuple[int, ...], fresh: bool) -> Array:
    """As the file has them; zeros if it is ``fresh``. A crashed process leaves all that it had
    written.

    Zeros are written out, so that a full disk is noticed here and not when a number is changed.
    """
    try:
        if fresh:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                for _ in range(shape[0]):
                    file.write(np.zeros(shape[1:]).tobytes())
        size = path.stat().st_size
        # By its size, as the file says nothing of itself.
        if size != 8 * int(np.prod(shape, dtype=np.int64)):
            raise MtcdError(
                f"{path} is not of this training: put back the file that was there, or start the "
                "federation again with new folders."
            )
        return np.memmap(path, np.dtype("<f8"), "r+", shape=shape)
    except OSError as error:
        raise MtcdError(f"{path} cannot be used: {error.strerror or error}.") from None
