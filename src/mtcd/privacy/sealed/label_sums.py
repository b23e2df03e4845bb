"""What the label holder tells the server of its labels: rounded sums, and no more of them than a
budget allows.

The server knows the change D of the scores in every tour. An exact sum <y, D> would be an equation
of integers, and a few of them name all labels: a lattice reduction finds them. So the holder rounds
each sum to a multiple of 2^-16 of f(0), and counts the bits that it has told.

Sums are counted by the lengths of their code words in a prefix code (Elias delta). At most 2^B
sequences of sums have a length of B bits, so that sums of B bits leave, of 2^N possible label
vectors, at least 2^(N - B) on average.
"""

from __future__ import annotations

import math
from typing import ClassVar

from mtcd.protocol.state import Stateful

STEP = 2.0**-16
"""The multiples to which sums are rounded, as a share of f(0)."""
BITS_PER_SAMPLE = 0.5
"""The most bits that all sums of a training tell together, for each sample."""


def code_length(number: int) -> int:
    """The bits of an integer in the Elias delta code; 0, 1, -1, 2, ... are counted as 1, 2, 3, 4,
    ...

    >>> [code_length(number) for number in (0, 1, -1, 2, 1000)]
    [1, 4, 4, 5, 17]
    """
    # Counted like 1, 2, 3, ...: the code is of positive integers.
    place = 2 * number if number > 0 else 1 - 2 * number
    exponent = place.bit_length() - 1
    return exponent + 2 * ((exponent + 1).bit_length() - 1) + 1


class LabelSums(Stateful):
    """The sums that the label holder has told.

    Parameters
    ----------
    samples : int
        N.
    resolution : float
        Sums are told as multiples of it.
    constant : float
        The part of f that depends on the labels alone, which the server is told too,
        rounded up.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("spent",)

    def __init__(self, samples: int, resolution: float, constant: float) -> None:
        self.resolution = resolution
        self.budget = math.floor(BITS_PER_SAMPLE * samples)
        steps = math.ceil(constant / resolution)
        # Rounded up: f must not seem smaller than it is.
        self.constant = steps * resolution
        # It is told as well, so it is counted.
        self.spent = code_length(steps) if steps else 0
        """The bits that were told so far."""

    @property
    def exhausted(self) -> bool:
        """Whether no further sum will be told."""
        return self.spent >= self.budget

    def tell(self, value: float) -> float | None:
        """The rounded sum; None, now and for ever after, if it takes more bits than are left."""
        if self.exhausted:
            return None

        # counted by its length in a prefix code: so many bits leave enough label vectors that fit
        steps = round(value / self.resolution)
        bits = code_length(steps)
        # no shorter sum later either: which sums are told would tell of those that are not
        if self.spent + bits > self.budget:
            self.spent = self.budget
            return None

        self.spent += bits
        return steps * self.resolution
