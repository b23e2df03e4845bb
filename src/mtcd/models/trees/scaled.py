"""The standardisation of a party's block, for families that need columns of one size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array, is_sparse
from mtcd.data.vertical import Block
from mtcd.models.trees.families.family import Arrays


@dataclass(frozen=True, eq=False)
class Scale:
    """Means and deviations of the columns; 1 for the deviation of a constant column.

    Samples count by their weights, so that a sample of weight 2 is two samples here too.
    """

    means: Array
    scales: Array

    @staticmethod
    def of(X: Block, weights: Array | None = None) -> Scale:
        """The means and deviations of the training samples."""
        # Scaled columns have no zeros left, so they are dense from here on.
        dense = np.asarray(X.todense()) if is_sparse(X) else X
        means = np.average(dense, axis=0, weights=weights)
        scales = np.sqrt(np.average((dense - means) ** 2, axis=0, weights=weights))
        # rounding of the mean leaves a constant column a deviation just above 0
        return Scale(means, np.where(scales > 1e-12, scales, 1.0))

    def apply(self, X: Block) -> Array:
        """The columns less their means, divided by their deviations."""
        dense = np.asarray(X.todense()) if is_sparse(X) else X
        return np.asfortranarray((dense - self.means) / self.scales)

    def arrays(self) -> Arrays:
        """The means and deviations by name, to be stored."""
        return {"means": self.means, "scales": self.scales}

    @staticmethod
    def from_arrays(arrays: Arrays) -> Scale:
        """The scaling that ``arrays`` described."""
        means = np.asarray(arrays["means"], dtype=float)
        scales = np.asarray(arrays["scales"], dtype=float)
        return Scale(means, scales)
