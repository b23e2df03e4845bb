"""A party's first gradient of a sealed training tells all labels by lattice reduction; with
randomised labels, it tells those."""

from __future__ import annotations

import numpy as np
from benchmarks.leak_gradient import attacked, most_likely, observed


def test_the_attack_reads_labels_without_label_dp_and_randomised_ones_with_it() -> None:
    seen = observed(24, 10, None, 0)
    found = attacked(seen)
    assert (found == seen.labels).all()

    seen = observed(24, 10, 1.0, 0)
    found = attacked(seen)
    assert (found == seen.released).all()
    assert 0.4 < np.mean(found == seen.labels) < 1.0


def test_soft_labels_take_the_attack_some_labels_and_leave_it_others() -> None:
    plain = observed(24, 10, None, 0)
    assert (most_likely(plain) == plain.labels).all()

    seen = observed(24, 10, None, 0, soft=0.125)
    assert (np.rint(seen.released) == seen.labels).all()
    found = attacked(seen)
    assert found is not None
    for guess in (found, most_likely(seen)):
        assert 0.6 < np.mean(guess == seen.labels) < 1.0
