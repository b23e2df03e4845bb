"""Held-out samples: which they are, and their outputs in the masked sum at the end.

All parties draw the same rows, from the number of common samples and the seed. No party trains on
them, and their labels stay with the label holder, which learns the sum of all parties' outputs for
them after the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import DataError
from mtcd.data.draws import drawn_holdout
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.node.passing import fits
from mtcd.federation.transport import HEAD_BYTES, MEGABYTE


@dataclass(frozen=True)
class Drawn:
    """The rows to train on and the held-out ones, in the agreed order, with a note on the draw."""

    training: Sequence[int]
    held_out: Sequence[int] = ()
    notes: tuple[str, ...] = ()


def drawn(config: BundleConfig, rows: Sequence[int]) -> Drawn:
    """The agreed rows as one process draws them; all are for training if the bundle holds out none."""
    if config.holdout is None:
        return Drawn(rows)
    # The same draw as in one process, so that a federation and `mtcd train` score the same samples.
    with advised():
        stay, apart, note = drawn_holdout(config.holdout, len(rows), config.seed)
    return Drawn([rows[i] for i in stay], [rows[i] for i in apart], (note,))


@contextmanager
def advised() -> Iterator[None]:
    """Add to errors about the draw what to do about it."""
    try:
        yield
    except DataError as error:
        raise DataError(
            f"holdout: {error} Create bundles with another holdout or seed in the federation file."
        ) from None


def check_fits(numbers: int, config: BundleConfig) -> None:
    """Refuse a hold-out that could not be evaluated at the end: the masked sum of all samples is
    one message."""
    limit = config.limits.message_mb
    if (
        config.holdout is not None
        # The masked sum travels with the names and certificates of all parties that are to add to
        # it.
        and 8 * (numbers + 2) + HEAD_BYTES * len(config.parties) > limit * MEGABYTE
    ):
        raise DataError(
            f"holdout: the outputs of all samples do not fit into a message of {limit} MB, in "
            "which they are added up at the end. Set a larger limits.message_mb in the federation "
            "file, or leave holdout out."
        )


def with_held_out(
    part: NDArray[np.float64], outputs: NDArray[Any], parties: int
) -> NDArray[np.float64]:
    """A party's part of the masked sum, with its outputs for held-out samples, and a 0.

    Outputs that are too large to be added are left out, with a 1 instead: of training samples they
    mean divergence, but a held-out sample may be an outlier.
    """
    # Fixed point: a sum of masked numbers wraps around beyond its range.
    whole = fits(outputs, parties)
    if whole:
        shown, missing = outputs.ravel(), 0.0
    else:
        shown, missing = np.zeros(outputs.size), 1.0
    return np.concatenate([part.ravel(), shown, [missing]])


def held_out_of(total: NDArray[np.float64], start: int) -> NDArray[np.float64] | None:
    """The sum of outputs for held-out samples, which begins at ``start``; None if a party has left
    them out."""
    outputs = total[start:-1]
    # The last number counts the parties that have left their outputs out.
    return outputs if outputs.size and total[-1] == 0 else None
