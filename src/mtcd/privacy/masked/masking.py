"""What all parties know of the masked sums of a run: its numbers as words, and the numbers of its
syncs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.fixed_point import FixedPoint, Words
from mtcd.privacy.masked.pair_masks import I8, KEY_WORDS
from mtcd.protocol.batches import Batches

NO_KEYS: Words = np.zeros((0, KEY_WORDS), I8)
NO_GENERATION = -1


def upload_sync(number: int) -> int:
    """The number that masks have for a sync of uploads."""
    return 2 * number


def token_sync(t: int) -> int:
    """The number that masks have for a sync of tokens."""
    return 2 * t + 1


def is_of_tokens(sync: int) -> bool:
    """Whether a number is of a sync of tokens."""
    return sync % 2 == 1


def signed_content(key: Words, uploads: int) -> bytes:
    """What a client signs: its public key, and the number of its uploads."""
    return key.tobytes() + uploads.to_bytes(8, "big")


@dataclass(frozen=True)
class UploadBatches:
    """The batches of a run, one for each sync, by whose number it is known. ``batch_of``: the batch
    for which a message requests an upload; None for other messages."""

    batches: Batches
    batch_of: Callable[[Any], int | None]

    @property
    def none_summed(self) -> NDArray[np.uint8]:
        """For each sample, that it was in no sum."""
        return np.zeros(self.batches.samples, np.uint8)

    def rows(self, batch: int) -> Any:
        """The samples of a batch."""
        rows = self.batches.rows(batch)
        if rows is None:
            return slice(None)
        return rows

    def places(self, batch: int, width: int) -> Any:
        """Of the numbers of a batch and of the penalty, in those of all samples, which the penalty
        follows."""
        rows = self.batches.rows(batch)
        if rows is None:
            return slice(None)
        # The order of numbers in an upload: sample by sample, the penalty at the end.
        return np.append(
            np.add.outer(rows * width, np.arange(width)).ravel(), self.batches.samples * width
        )


@dataclass(frozen=True, eq=False)
class Masking:
    """What all parties know of the masked sums of a run.

    ``like``: an aggregate, whose kind and shape sums have. ``token_holders``: by iteration, the
    client from which each token returns to the server; None where clients upload representations
    instead. ``upload_batches``: the syncs, where masks are double.
    """

    clients: int
    numbers: FixedPoint
    like: Any
    token_holders: Callable[[int], Sequence[int]] | None = None
    upload_batches: UploadBatches | None = None

    @property
    def width(self) -> int:
        """The numbers of one sample."""
        return math.prod(self.like.shape[1:])

    @property
    def all_zeros(self) -> Words:
        """Of all samples, and of the penalty."""
        assert self.upload_batches is not None
        return np.zeros(self.upload_batches.batches.samples * self.width + 1, self.numbers.dtype)

    def encoded(self, array: Any, penalty: float, summands: int) -> Words:
        """An array or tensor and a penalty, as words; no words if they are too large: the training
        has diverged."""
        # aggregates of split networks are tensors
        if not isinstance(array, np.ndarray):
            array = array.detach().cpu().numpy()

        # Rounded once, here: sums of integers are exact, whatever their order.
        values = np.append(array.astype(np.float64), penalty)
        if not self.numbers.fits(values, summands):
            return self.no_words
        return self.numbers.encode(values, summands)

    @property
    def no_words(self) -> Words:
        """In the place of numbers that do not fit. A federation refuses to send it."""
        return np.zeros(0, self.numbers.dtype)

    def decoded(self, words: Words) -> tuple[Any, float]:
        """The array, of the kind of an aggregate, and the penalty; NaN for no words."""
        if words.size:
            numbers = self.numbers.decode(words)
        else:
            numbers = np.full(math.prod(self.like.shape) + 1, np.nan)

        # NaN, and not an error: a diverged training is reported as one.
        array = numbers[:-1].reshape(tuple(self.like.shape))
        # of the device and type of the aggregate
        if not isinstance(self.like, np.ndarray):
            array = self.like.new_tensor(array)
        return array, float(numbers[-1])
