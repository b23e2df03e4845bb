"""The spacing of measurements."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod


class Pace(ABC):
    """A spacing of measurements: a function of the iterations alone, so that reruns agree.

    Parameters
    ----------
    epoch
        The iterations of an epoch; None with the full batch.
    """

    def __init__(self, epoch: int | None = None) -> None:
        self.epoch = epoch

    @abstractmethod
    def next(self, iteration: int, near: bool) -> float:
        """The iteration at which to measure after this one.

        Parameters
        ----------
        iteration
            The iteration of the last measurement.
        near
            Whether the requested gap is close.
        """


class Growing(Pace):
    """Measures whenever the iterations have grown by a factor: a million hops need a thousand
    measurements."""

    def __init__(self, epoch: int | None = None, spacing: float = 1.01) -> None:
        super().__init__(epoch)
        self.spacing = spacing

    def next(self, iteration: int, near: bool) -> float:
        spacing = self.spacing
        if near:
            # close to the gap, look more often: the run ends at the first measurement below it
            spacing = 1.0 + (self.spacing - 1.0) / 10
        return max(iteration + 1, math.ceil(iteration * spacing))


class Epochs(Pace):
    """Measures at the end of every epoch, or of every few."""

    def __init__(self, epoch: int, every: int = 1) -> None:
        super().__init__(epoch)
        self.step = epoch * every

    def next(self, iteration: int, near: bool) -> float:
        return (iteration // self.step + 1) * self.step
