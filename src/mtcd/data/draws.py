"""Which samples are held out: drawn once for all clients, from their number and the seed alone."""

from __future__ import annotations

import numpy as np

from mtcd.core.arrays import Rows
from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import DataError
from mtcd.core.seeding import stream


def drawn_holdout(fraction: float, samples: int, seed: int) -> tuple[Rows, Rows, str]:
    """The rows to train on, those to test on, both in order, and a note for the user."""
    check_whole("seed", seed, least=0)
    check_number("fraction", fraction, above=0)
    count = round(fraction * samples)
    if not 0 < count < samples:
        raise DataError(
            f"A fraction of {fraction} cannot be held out of {samples} samples: "
            "some, but not all, must become the test set."
        )
    # of the number of samples alone: parties that know it draw the same rows
    order = stream(seed, "holdout").permutation(samples)
    note = f"Held out for the test: {count} of {samples} samples, drawn with seed {seed}."
    return np.sort(order[count:]), np.sort(order[:count]), note
