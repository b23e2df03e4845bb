"""Features with zero mean and unit variance, and the numbers that bring new samples to the same scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from mtcd.arrays import Array
from mtcd.data.sparse import is_sparse
from mtcd.data.vertical import Block, VerticalData
from mtcd.errors import DataError, listing


@dataclass(frozen=True, eq=False)
class Scaling:
    """The means that each client subtracts from its columns, and the deviations by which it divides them."""

    means: tuple[Array, ...]
    scales: tuple[Array, ...]

    def __repr__(self) -> str:
        return f"Scaling({sum(map(len, self.means)):,} columns of {len(self.means):,} client(s))"

    def apply(self, blocks: Sequence[Block]) -> tuple[Block, ...]:
        """Scaled copies of the blocks, one per client: of the data it was made from, or of new samples."""
        if len(blocks) != len(self.means):
            raise DataError(f"The scaling is for {len(self.means)} clients, but there are {len(blocks)} blocks.")
        return tuple(self._scaled(k, block) for k, block in enumerate(blocks))

    def _scaled(self, k: int, block: Block) -> Block:
        _refuse_sparse(f"number {k}", block)
        width = len(self.means[k])
        if block.ndim != 2 or block.shape[1] != width:
            raise DataError(f"Client number {k} was scaled with {width} columns, but brings shape {block.shape}.")
        scaled: Array = np.subtract(block, self.means[k], order="F")
        scaled /= self.scales[k]
        return scaled


def standardise(data: VerticalData) -> tuple[VerticalData, Scaling]:
    """The data with zero mean and unit variance in every column, and the scaling that did it.

    Constant columns become 0, and are named in the notes.
    """
    means, scales, constants = [], [], []
    for client, columns, block in zip(data.clients, data.columns, data.blocks, strict=True):
        _refuse_sparse(repr(client), block)
        # by the values themselves: rounding can leave a constant column a tiny variance
        constant = block.min(axis=0) == block.max(axis=0)
        means.append(np.where(constant, block[0], block.mean(axis=0)))
        # column by column: the deviations of a whole block would be a second copy of it
        deviations = np.array([column.std() for column in block.T])
        scales.append(np.where(constant, 1.0, deviations))
        constants += [f"{columns[j]} ({client})" for j in np.flatnonzero(constant)]
    scaling = Scaling(tuple(means), tuple(scales))
    notes = [f"Columns that are constant became 0: {listing(constants)}."] if constants else []
    return replace(data, blocks=scaling.apply(data.blocks), notes=(*data.notes, *notes)), scaling


def _refuse_sparse(client: str, block: Block) -> None:
    if is_sparse(block):
        raise DataError(
            f"Client {client} holds sparse features: centring would make them dense. "
            "Scale them yourself without centring (for example by their largest value), "
            "and leave standardise out."
        )
