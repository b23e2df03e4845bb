"""Randomised response and Laplace noise: their probabilities, exactly, and an audit of many draws
that notices a mechanism with twice the epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binomtest

from mtcd.privacy.labels import mechanisms
from mtcd.privacy.labels.mechanisms import (
    ONE,
    noisy_places,
    noisy_values,
    probabilities,
    responses,
    threshold,
    words,
)

getcontext().prec = 60
EPSILONS = (0.01, 0.5, 1.0, 2.0, 4.0, 8.0, 30.0)


def share_of(classes: int, step: int) -> Fraction:
    """The exact share of words that choose the class so many steps on, of those that change it."""
    count = classes - 1
    first, after = (-(-(place * ONE) // count) for place in (step - 1, step))
    return Fraction(after - first, ONE)


@pytest.mark.parametrize("classes", [2, 3, 10, 200])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_two_labels_give_a_response_whose_probabilities_differ_by_more_than_epsilon(
    epsilon: float, classes: int
) -> None:
    keep = Fraction(threshold(epsilon, classes), ONE)
    shares = [share_of(classes, step) for step in range(1, classes)]
    assert sum(shares) == 1
    least = (1 - keep) * min(shares)
    ratio = Decimal(keep.numerator) / Decimal(keep.denominator)
    ratio /= Decimal(least.numerator) / Decimal(least.denominator)
    assert ratio <= Decimal(epsilon).exp()
    # and no more noise than that takes, as far as 53 bits can say
    resolution = 4 * classes / ONE * math.exp(epsilon)
    assert float(ratio.ln()) == pytest.approx(epsilon, abs=1e-9 + resolution)


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_words_choose_the_classes_that_the_shares_say(classes: int) -> None:
    count = classes - 1
    edges = [-(-(place * ONE) // count) for place in range(1, count)]
    for place, edge in enumerate(edges, start=1):
        for word, expected in ((edge - 1, place), (edge, place + 1)):
            drawn = np.array([ONE - 1, word], np.uint64)
            assert responses(np.array([0]), classes, 1.0, drawn)[0] == expected
    last = responses(np.array([1]), classes, 1.0, np.array([ONE - 1, ONE - 1], np.uint64))
    assert last[0] == 0


def test_the_threshold_is_where_a_label_changes() -> None:
    at = threshold(1.0, 3)
    kept, changed = (
        responses(np.array([2]), 3, 1.0, np.array([word, 0], np.uint64))[0] for word in (at - 1, at)
    )
    assert (kept, changed) == (2, 0)


def test_a_bit_of_the_noise_is_set_by_words_below_its_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of the two numbers of one bit, 1 has so much less weight than 0 as the rate says."""
    weight = Decimal(-2).exp()
    share = int(weight / (1 + weight) * ONE)
    drawn = np.array([0, share - 1, share, ONE - 1], np.uint64)
    monkeypatch.setattr(mechanisms, "words", lambda *_: drawn)
    assert mechanisms._geometric(2.0, 1, b"", "", 4).tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_probabilities_are_those_of_the_formula(epsilon: float) -> None:
    for classes in (2, 5):
        p, q = probabilities(epsilon, classes)
        weight = Decimal(epsilon).exp()
        assert p == pytest.approx(float(weight / (weight + classes - 1)), rel=1e-14)
        assert p + (classes - 1) * q == pytest.approx(1.0, rel=1e-14)
    assert probabilities(900.0, 2) == (1.0, pytest.approx(0.0, abs=1e-300))


@pytest.mark.parametrize("classes", [2, 4])
def test_marginals_of_many_draws_are_the_probabilities(classes: int) -> None:
    count, epsilon = 200_000, 1.5
    p, q = probabilities(epsilon, classes)
    for label in range(classes):
        drawn = words(b"secret", f"{classes} {label}", 2 * count)
        found = np.bincount(
            responses(np.full(count, label), classes, epsilon, drawn), minlength=classes
        )
        expected = np.where(np.arange(classes) == label, p, q) * count
        assert (np.abs(found - expected) < 5 * np.sqrt(expected)).all()


def lower_bound(
    low: np.ndarray, high: np.ndarray, event: Callable[[np.ndarray], np.ndarray]
) -> float:
    """A lower bound of epsilon from draws for two labels, which holds with probability 0.999: that
    of Clopper and Pearson on both shares of an event."""
    hits, others = int(event(high).sum()), int(event(low).sum())
    more = binomtest(hits, len(high)).proportion_ci(0.999, "exact").low
    fewer = binomtest(others, len(low)).proportion_ci(0.999, "exact").high
    return math.log(more / fewer) if more > 0 else 0.0


def responded(label: int, epsilon: float, count: int = 100_000) -> np.ndarray:
    drawn = words(b"audit", f"{label} {epsilon}", 2 * count)
    return responses(np.full(count, label), 2, epsilon, drawn)


def noised(place: int, epsilon: float, count: int = 100_000) -> np.ndarray:
    return noisy_places(np.full(count, place), 64, epsilon, b"audit", f"{place} {epsilon}")


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_an_audit_finds_no_more_than_epsilon_and_catches_a_mechanism_with_twice_as_much(
    epsilon: float,
) -> None:
    is_one: Callable[[np.ndarray], np.ndarray] = lambda found: found == 1  # noqa: E731
    honest = lower_bound(responded(0, epsilon), responded(1, epsilon), is_one)
    assert 0.9 * epsilon < honest <= epsilon
    assert lower_bound(responded(0, 2 * epsilon), responded(1, 2 * epsilon), is_one) > epsilon

    above: Callable[[np.ndarray], np.ndarray] = lambda found: found >= 64  # noqa: E731
    honest = lower_bound(noised(0, epsilon), noised(64, epsilon), above)
    assert 0.9 * epsilon < honest <= epsilon
    assert lower_bound(noised(0, 2 * epsilon), noised(64, 2 * epsilon), above) > epsilon


def exact_noise(epsilon: float, steps: int, places: np.ndarray) -> dict[int, np.ndarray]:
    """The distribution of what is released for a place, from the formula, cut off as announced."""
    rate = epsilon * (1 - mechanisms.MARGIN) / steps
    beyond = math.ceil(mechanisms.TAIL / rate)
    noise = np.arange(-4 * beyond, 4 * beyond + 1)
    weights = np.exp(-rate * np.abs(noise))
    weights /= weights.sum()
    found = {}
    for place in places.tolist():
        ends = np.clip(place + noise, -beyond, steps + beyond) + beyond
        found[place] = np.bincount(ends, weights, steps + 2 * beyond + 1)
    return found


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_laplace_noise_has_the_distribution_of_the_formula_within_epsilon(epsilon: float) -> None:
    steps = 4
    exact = exact_noise(epsilon, steps, np.arange(steps + 1))
    ratios = np.log(exact[0] / exact[steps])
    assert np.abs(ratios).max() <= epsilon
    count = 200_000
    drawn = noisy_places(np.full(count, 1), steps, epsilon, b"secret", "distribution")
    beyond = (len(exact[1]) - steps - 1) // 2
    found = np.bincount(drawn + beyond, minlength=len(exact[1]))
    expected = exact[1] * count
    likely = expected > 20
    assert (np.abs(found - expected)[likely] < 5 * np.sqrt(expected[likely])).all()
    assert found[~likely].sum() < expected[~likely].sum() + 5 * np.sqrt(expected[~likely].sum() + 1)


def test_values_keep_their_mean_and_those_beyond_the_range_count_as_its_end() -> None:
    count = 200_000
    for value, expected in ((12.0, 12.0), (-5.0, 10.0), (99.0, 20.0)):
        found = noisy_values(np.full(count, value), 10.0, 20.0, 1.0, b"secret", f"{value}")
        # a Laplace scale of 10
        assert abs(found.mean() - expected) < 5 * 10 * math.sqrt(2 / count)
        assert found.std() == pytest.approx(10 * math.sqrt(2), rel=0.02)


def test_words_differ_by_secret_and_purpose() -> None:
    first = words(b"one", "labels", 50)
    assert (first == words(b"one", "labels", 50)).all()
    assert (first != words(b"two", "labels", 50)).all()
    assert (first != words(b"one", "others", 50)).all()
    assert first.max() < ONE
