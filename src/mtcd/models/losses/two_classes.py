"""The base of losses of two classes: the encoding of labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, listing
from mtcd.models.losses.loss import Labels, Loss


@dataclass(frozen=True)
class TwoClasses(Loss):
    """Losses of two classes: 0/1, -1/1, yes/no, or any two numbers or texts.

    The ``positive`` class, whose samples have positive decision values, is the second in sorted
    order unless given.
    """

    positive: str | float | None = None
    example = "logistic"
    uses_positive = True

    def encode(self, labels: Labels) -> tuple[Array, tuple[str | float, ...]]:
        found = np.unique(labels)
        if len(found) != 2:
            raise DataError(
                f"The labels hold {len(found)} different values ({listing(found.tolist(), 5)}); "
                "this model wants two classes, such as 0/1 or -1/1 or yes/no. Recode the label "
                "column, or use the multinomial model."
            )
        if self.positive is not None and not self._is_positive(found[1]):
            if not self._is_positive(found[0]):
                raise DataError(
                    f"The positive class is to be {self.positive!r}, but the labels are {found[0]} "
                    f"and {found[1]}."
                )
            # The order decides which class has positive decision values.
            found = found[::-1]
        return self._coded((labels == found[1]).astype(float)), tuple(found.tolist())

    def _is_positive(self, label: np.generic) -> bool:
        """Whether this is the positive class; a config may write a number as a text, and a text as
        a number."""
        if isinstance(label, np.str_):
            return str(label) == str(self.positive)
        try:
            return float(label) == float(self.positive)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return False

    def _coded(self, positive: Array) -> Array:
        return positive

    def predict(self, z: Array) -> Array:
        return (z > 0).astype(float)
