"""A party's first gradient of a sealed training tells all labels by lattice reduction; with
randomised labels, it tells those."""

from __future__ import annotations

import numpy as np
from benchmarks.leak_gradient import attacked, observed


def test_the_attack_reads_labels_without_label_dp_and_randomised_ones_with_it() -> None:
    seen = observed(24, 10, None, 0)
    found = attacked(seen)
    assert found is not None
    assert (found == seen.labels).all()

    seen = observed(24, 10, 1.0, 0)
    found = attacked(seen)
    assert found is not None
    assert (found == seen.released).all()
    assert 0.4 < np.mean(found == seen.labels) < 1.0
