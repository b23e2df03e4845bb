"""A party's first gradient of a sealed training tells all labels, by lattice reduction or, if the
party is wide, by algebra; with randomised labels, it tells those."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flint")

from benchmarks.leak_gradient import (
    HOLDER_COLUMNS,
    attacked,
    from_derivatives,
    guessed,
    most_likely,
    nearest,
    observed,
)


def test_the_reduction_reads_labels_without_label_dp_and_randomised_ones_with_it() -> None:
    seen = observed(100, 16, None, 0)
    found = attacked(seen)
    assert (found == seen.labels).all()

    seen = observed(60, 16, 1.0, 0)
    found = attacked(seen)
    assert (found == seen.released).all()
    assert 0.4 < np.mean(found == seen.labels) < 0.9


def test_a_wide_party_reads_labels_by_algebra_and_randomised_ones_with_label_dp() -> None:
    samples = 60
    seen = observed(samples, samples, None, 1, holder_columns=HOLDER_COLUMNS)
    assert (from_derivatives(seen) == seen.labels).all()

    seen = observed(samples, samples, 1.0, 1, holder_columns=HOLDER_COLUMNS)
    found = from_derivatives(seen)
    assert np.mean(found == seen.released) > 0.95
    assert 0.4 < np.mean(found == seen.labels) < 0.9


def test_soft_labels_take_the_attack_some_labels_and_leave_it_others() -> None:
    plain = observed(24, 10, None, 0)
    assert (most_likely(plain) == plain.labels).all()

    seen = observed(24, 10, None, 0, soft=0.125)
    assert (np.rint(seen.released) == seen.labels).all()
    for guess in (nearest(seen), most_likely(seen)):
        assert 0.6 < np.mean(guess == seen.labels) < 1.0


def test_soft_labels_take_the_reduction_what_least_squares_does_not_guess_anyway() -> None:
    seen = observed(100, 16, None, 0, soft=0.125)
    by_reduction = np.mean(nearest(seen) == seen.labels)
    assert by_reduction < 0.9
    assert by_reduction < np.mean(guessed(seen) == seen.labels) + 0.1
