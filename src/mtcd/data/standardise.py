"""Features with zero mean and unit variance, and the numbers that bring new samples to the same
scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array, is_sparse
from mtcd.core.errors import DataError, listing
from mtcd.data.vertical import Block, VerticalData


@dataclass(frozen=True, eq=False)
class Scaling:
    """The means that each client subtracts from its columns, and the deviations by which it divides
    them.

    The means of sparse blocks are 0: subtracting others would make them dense.
    """

    means: tuple[Array, ...]
    scales: tuple[Array, ...]

    def __repr__(self) -> str:
        return f"Scaling({sum(map(len, self.means)):,} columns of {len(self.means):,} client(s))"

    def apply(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Scaled copies of the blocks, one per client: of the data it was made from, or of new
        samples."""
        if len(blocks) != len(self.means):
            raise DataError(
                f"The scaling is for {len(self.means)} clients, but there are {len(blocks)} blocks."
            )
        return tuple(self._scaled(k, block) for k, block in enumerate(blocks))

    def _scaled(self, k: int, block: Block) -> Block:
        width = len(self.means[k])
        if block.ndim != 2 or block.shape[1] != width:
            raise DataError(
                f"Client number {k} was scaled with {width} columns, but brings shape "
                f"{block.shape}."
            )
        if is_sparse(block):
            if self.means[k].any():
                raise DataError(
                    f"Client number {k} was scaled with means to subtract, which would make sparse "
                    "features dense: give .toarray() of them."
                )
            return block @ scipy.sparse.diags_array(1 / self.scales[k])

        # into one new block, which is then divided in place: blocks may fill half the memory
        scaled: Array = np.subtract(block, self.means[k], order="F")
        scaled /= self.scales[k]
        return scaled


def standardise(data: VerticalData) -> tuple[VerticalData, Scaling]:
    """The data with zero mean and unit variance in every column, and the scaling that did it; the
    test set is scaled in the same way. Samples count by their weights.

    Constant columns become 0, and are named in the notes. Sparse columns keep their means, and with
    them their zeros.
    """
    means = []
    scales = []
    constants = []
    sparse = []
    for client, columns, block in zip(data.clients, data.columns, data.blocks, strict=True):
        if is_sparse(block):
            # told to the user: their means stay, which other scalers would take away
            sparse.append(client)
            means.append(np.zeros(block.shape[1]))
            scales.append(_sparse_deviations(block, data.weights))
            continue

        counted = block
        if data.weights is not None and not data.weights.all():
            counted = block[data.weights > 0]
        # by the values themselves: rounding can leave a constant column a tiny variance
        constant = counted.min(axis=0) == counted.max(axis=0)
        mean, deviations = _moments(block, data.weights)
        # exactly its value, so that the scaled column is 0, and not a rounding
        means.append(np.where(constant, counted[0], mean))
        scales.append(np.where(constant, 1.0, deviations))
        constants += [f"{columns[j]} ({client})" for j in np.flatnonzero(constant)]

    scaling = Scaling(tuple(means), tuple(scales))
    notes = list(data.notes)
    if constants:
        notes.append(f"Columns that are constant became 0: {listing(constants)}.")
    if sparse:
        notes.append(
            "Sparse columns are divided by their deviations, but not centred: those of "
            f"{listing(sparse, 4)}."
        )

    # the test set by what was fitted on the training samples, as new samples will be
    test = data.test
    if test is not None:
        test = replace(test, blocks=scaling.apply(test.blocks))
    scaled = replace(data, blocks=scaling.apply(data.blocks), notes=tuple(notes), test=test)
    return scaled, scaling


def _moments(block: Array, weights: Array | None) -> tuple[Array, Array]:
    """The mean and deviation of every column."""
    # column by column: the deviations of a whole block would be a second copy of it
    if weights is None:
        return block.mean(axis=0), np.array([column.std() for column in block.T])

    # a sample of weight 2 counts as two samples
    share = weights / weights.sum()
    mean = share @ block
    variances = [share @ (column - m) ** 2 for column, m in zip(block.T, mean, strict=True)]
    return mean, np.sqrt(variances)


def _sparse_deviations(block: Block, weights: Array | None) -> Array:
    """The deviation of every column, 1 where it is 0 up to rounding."""
    parts = (block, block.power(2))
    if weights is None:
        mean, square = (np.asarray(part.mean(axis=0)).ravel() for part in parts)
    else:
        mean, square = (np.asarray(part.T @ weights) / weights.sum() for part in parts)

    # a difference of squares: below their rounding it says nothing, and may even be negative
    variance = square - mean**2
    return np.sqrt(np.where(variance <= 1e-12 * square, 1.0, variance))
