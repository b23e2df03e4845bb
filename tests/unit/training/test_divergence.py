"""The one rule for what has diverged."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.training.divergence import HOPELESS, WORST_END, WORST_NOISY_END, Divergence, worst_end_of

POSITIVE = st.floats(1e-6, 1e6)


@given(POSITIVE, POSITIVE, st.sampled_from([WORST_END, WORST_NOISY_END]))
def test_of_a_positive_objective_it_is_a_factor(
    start: float, objective: float, worst: float
) -> None:
    rule = Divergence(start, worst)
    assert rule.on_the_way(objective) == (objective > start + (HOPELESS - 1) * start)
    if abs(objective / (worst * start) - 1) > 2e-6:
        assert rule.at_the_end(objective) == (objective > worst * start)


@given(st.floats(-1e6, 1e6), st.sampled_from([WORST_END, WORST_NOISY_END]))
def test_no_progress_is_no_divergence_whatever_the_sign(start: float, worst: float) -> None:
    rule = Divergence(start, worst)
    assert not rule.on_the_way(start)
    assert not rule.at_the_end(start)
    assert not rule.at_the_end(start - 1)


@pytest.mark.parametrize("objective", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_has_diverged(objective: float) -> None:
    assert Divergence(1.0, WORST_END).on_the_way(objective)
    assert Divergence(1.0, WORST_END).at_the_end(objective)


def test_mini_batches_and_networks_may_end_a_little_above_the_start() -> None:
    full, batches = STCD(stepsize=0.1), MTCD(stepsize=0.1, batch=5)
    assert [worst_end_of(full, linear) for linear in (True, False)] == [WORST_END, WORST_NOISY_END]
    assert [worst_end_of(batches, linear) for linear in (True, False)] == [
        WORST_NOISY_END,
        WORST_NOISY_END,
    ]
