"""Mini-batches that every party computes from a shared seed, without communication."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from mtcd.core.arrays import Array, Rows
from mtcd.core.errors import ConfigError
from mtcd.core.seeding import shuffled


@dataclass(frozen=True)
class Batches:
    """The batch B^t: epochs over a shuffled order of the samples, one batch per iteration.

    A rest of fewer than ``size`` samples is left out of that epoch, so that all batches weigh the
    same. ``size`` None is the full batch, whose rows are None: all of them.
    """

    samples: int
    size: int | None
    seed: int

    def __post_init__(self) -> None:
        if self.size is not None and not 1 <= self.size <= self.samples:
            raise ConfigError(
                f"method.batch is {self.size}, but there are {self.samples} samples: "
                f"choose 1 to {self.samples}, or null for all of them."
            )

    @property
    def length(self) -> int:
        """Samples in a batch."""
        if self.size is None:
            return self.samples
        return self.size

    @property
    def per_epoch(self) -> int:
        """Iterations in an epoch."""
        return self.samples // self.length

    def zeros(self, outputs: int) -> Array:
        """The aggregate of a batch at theta = 0, which no party has to send."""
        if outputs == 1:
            return np.zeros(self.length)
        return np.zeros((self.length, outputs))

    def rows(self, iteration: int) -> Rows | None:
        """B^t; None stands for all samples."""
        if self.size is None:
            return None
        # samples that fill no whole batch are left out until the order is drawn again
        epoch, place = divmod(iteration, self.per_epoch)
        return self.order(epoch)[place * self.size : (place + 1) * self.size]

    def order(self, epoch: int) -> Rows:
        """The order of the samples in an epoch."""
        return _order(self.seed, epoch, self.samples)


# The order is of all samples: made once, not at each visit of the epoch.
@lru_cache(maxsize=4)
def _order(seed: int, epoch: int, samples: int) -> Rows:
    return shuffled(seed, "batch", (epoch,), samples)
