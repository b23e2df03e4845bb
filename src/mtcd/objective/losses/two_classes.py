"""The base of losses of two classes: the encoding of labels."""

from __future__ import annotations

import numpy as np

from mtcd.arrays import Array
from mtcd.errors import DataError, listing
from mtcd.objective.losses.loss import Labels, Loss


class TwoClasses(Loss):
    """Losses of two classes: labels 0/1 or -1/1."""

    example = "logistic"

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        wanted = "this model wants labels 0/1 or -1/1"
        if labels.dtype.kind not in "biuf":
            raise DataError(f"The labels are not numbers; {wanted} (use multinomial for other class labels).")
        found = np.unique(labels)
        if found.astype(float).tolist() not in ([0.0, 1.0], [-1.0, 1.0]):
            raise DataError(
                f"The labels hold {len(found)} different values ({listing(found.tolist(), 5)}); {wanted}. "
                "Recode the label column, or use the multinomial model."
            )
        return self._coded((labels == found[1]).astype(float)), tuple(found.tolist())

    def _coded(self, positive: Array) -> Array:
        return positive

    def predict(self, z: Array) -> Array:
        return (z > 0).astype(float)
