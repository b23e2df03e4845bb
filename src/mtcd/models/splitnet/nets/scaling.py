"""Columns on a common scale, as the first layer of a network: so that new samples are scaled as
those in training."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn


class StandardScaling(nn.Module):
    """Less a mean and divided by a deviation, column by column. Nothing here is trained."""

    means: Tensor
    deviations: Tensor

    def __init__(self, columns: int) -> None:
        super().__init__()
        self.register_buffer("means", torch.zeros(columns))
        self.register_buffer("deviations", torch.ones(columns))

    def forward(self, rows: Tensor) -> Tensor:
        return (rows - self.means) / self.deviations


def scaling_of(rows: NDArray[np.float32]) -> StandardScaling:
    """The layer that gives these columns zero mean and unit variance; constant ones become 0."""
    values = np.asarray(rows, dtype=float)
    least = values.min(axis=0)
    # Exactly: the deviation of a constant column may be rounding, and would blow it up.
    constant = least == values.max(axis=0)
    layer = StandardScaling(values.shape[1])
    layer.means.copy_(torch.as_tensor(np.where(constant, least, values.mean(axis=0))))
    layer.deviations.copy_(torch.as_tensor(np.where(constant, 1.0, values.std(axis=0))))
    return layer
