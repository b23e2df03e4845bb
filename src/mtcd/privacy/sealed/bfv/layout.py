"""Where samples and columns lie in the slots of ciphertexts, so that a product X^T g needs few
rotations.

The slots of a ciphertext are two rows of n/2, which rotate together. Samples are laid out in cyclic
*segments*: up to n/2 samples are repeated in every segment, and each segment computes other
columns; more samples fill one segment after the other, over several ciphertexts, and each segment
computes all columns.

Slot j of a segment holds partial sums of one column. The columns repeat in blocks of nearly equal
size, so that any D consecutive slots contain all columns, where D is the largest block. The product
is then a sum of D diagonals, each multiplied with the vector rotated by 0 to D - 1 slots. The key
holder adds the partial sums of each column (``fold``) after decryption, which saves rotations; it
learns nothing from them, since every slot is masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mtcd.core.errors import ConfigError

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Layout:
    """The slots for ``samples`` samples and ``columns`` columns in ciphertexts of ring degree
    ``degree``."""

    degree: int
    samples: int
    columns: int

    def __post_init__(self) -> None:
        if not 1 <= self.columns <= self.most_columns:
            raise ConfigError(
                f"A party with {self.columns} columns cannot take part in a sealed training of "
                f"{self.samples} samples: 1 to {self.most_columns} columns fit. Split the columns "
                "over more parties."
            )

    @property
    def row(self) -> int:
        return self.degree // 2

    @property
    def repeated(self) -> bool:
        """Whether every segment holds all samples."""
        return self.samples <= self.row

    @property
    def segment(self) -> int:
        """The number of slots of a segment: a power of two."""
        if self.repeated:
            return 1 << (self.samples - 1).bit_length()
        return self.row

    @property
    def ciphertexts(self) -> int:
        if self.repeated:
            return 1
        return -(-self.samples // self.degree)

    @property
    def most_columns(self) -> int:
        if self.repeated:
            return self.degree
        return self.row

    @property
    def _width(self) -> int:
        """The number of columns of a segment."""
        segments = 1
        if self.repeated:
            segments = self.degree // self.segment
        return -(-self.columns // segments)

    @property
    def diagonals(self) -> int:
        """D: the multiplications per ciphertext."""
        return -(-self.segment // (self.segment // self._width))

    def spread(self, values: Integers) -> list[Integers]:
        """One value per sample as the slots of each ciphertext."""
        if self.repeated:
            segment = np.zeros(self.segment, np.int64)
            segment[: self.samples] = values
            return [np.tile(segment, self.degree // self.segment)]
        slots = np.zeros(self.ciphertexts * self.degree, np.int64)
        slots[: self.samples] = values
        return list(slots.reshape(self.ciphertexts, self.degree))

    def gather(self, slots: list[Integers]) -> Integers:
        """The inverse of ``spread``; of repeated samples it takes the first."""
        return np.concatenate(slots)[: self.samples]

    @cached_property
    def _blocks(self) -> tuple[Integers, Integers]:
        """For every slot: its column, or -1, and the size of its block."""
        count = self.segment // self._width
        # of nearly equal size: any D consecutive slots then contain all columns
        # Boundaries at multiples of segment / count, rounded: block sizes differ by one at most.
        starts = np.arange(count + 1) * self.segment // count
        sizes = np.diff(starts)
        offset = np.arange(self.segment) - np.repeat(starts[:-1], sizes)
        column = np.where(offset < self._width, offset, -1)
        # Columns are spread over the segments where all samples are repeated: each computes its
        # own.
        segments = self.degree // self.segment
        first = np.arange(segments) * self._width if self.repeated else np.zeros(segments, np.int64)
        columns = np.where(column < 0, -1, first[:, None] + column).reshape(-1)
        columns[columns >= self.columns] = -1
        return columns.astype(np.int64), np.tile(np.repeat(sizes, sizes), segments)

    def diagonal(self, matrix: Integers, ciphertext: int, shift: int) -> Integers:
        """The slots by which a ciphertext, given by its number, is multiplied after a rotation to
        the left."""
        columns, sizes = self._blocks
        # Where the vector is after the rotation: slot j then holds sample j + shift of its segment.
        slot = np.arange(self.degree)
        if self.repeated:
            sample = (slot + shift) % self.segment
        else:
            sample = (
                ciphertext * self.degree + slot // self.row * self.row + (slot + shift) % self.row
            )
        # a block shorter than the shift would count a sample twice
        used = (columns >= 0) & (shift < sizes) & (sample < self.samples)
        values = np.zeros(self.degree, np.int64)
        values[used] = matrix[sample[used], columns[used]]
        return values

    def rotate(self, slots: Integers, shift: int) -> Integers:
        """Both rows rotated by ``shift`` slots to the left, as the scheme does it with
        ciphertexts."""
        return np.roll(slots.reshape(2, self.row), -shift, axis=1).reshape(-1)

    def steps(self, stride: int) -> Iterator[tuple[int, list[int]]]:
        """Giant steps, the last one first, each with its baby steps: diagonal number giant * stride
        + baby."""
        # The last giant step first, so that one rotation moves all that was added before (Horner's
        # rule).
        for giant in reversed(range(-(-self.diagonals // stride))):
            yield giant, [baby for baby in range(stride) if giant * stride + baby < self.diagonals]

    def fold(self, slots: Integers, modulus: int) -> Integers:
        """One value per column, from 0 to t - 1: the sum of its slots modulo t. Sums of n numbers
        below t fit int64."""
        columns, _ = self._blocks
        sums = np.zeros(self.columns, np.int64)
        np.add.at(sums, columns[columns >= 0], slots[columns >= 0] % modulus)
        return sums % modulus

    def best_stride(self) -> int:
        """The number of baby steps with the least rotations and transforms; weights from
        measurements of SEAL."""
        rotation, transform = 3.0, 0.7

        def cost(stride: int) -> float:
            giants = -(-self.diagonals // stride)
            babies = min(stride, self.diagonals)
            # Rotations are for each ciphertext, giant steps for their sum.
            return self.ciphertexts * ((babies - 1) * rotation + babies * transform) + giants * (
                rotation + transform
            )

        return min(range(1, self.diagonals + 1), key=cost)


def centred(values: Integers, modulus: int) -> Integers:
    """The representatives between -t/2 and t/2."""
    reduced = values % modulus
    result: Integers = np.where(reduced > modulus // 2, reduced - modulus, reduced)
    return result
