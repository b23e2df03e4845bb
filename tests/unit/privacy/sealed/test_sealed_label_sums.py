"""Sums over labels that the server of a sealed training is told: rounded, counted, and of no use to
a lattice."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.privacy.sealed.plan import BITS_PER_SAMPLE, LabelSums, code_length
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.privacy.sealed.steering import Steering


def test_a_lattice_reduction_reads_labels_from_exact_sums_and_not_from_those_that_are_told() -> (
    None
):
    pytest.importorskip("flint")
    from benchmarks.lattice import labels_from_sums
    from benchmarks.leak_labels import observed

    seen = observed(60, 16, 8)
    found = labels_from_sums(seen.changes, np.array(seen.exact), error=0.0)
    assert found is not None
    assert (found == seen.labels).all()

    known = [t for t, one in enumerate(seen.told) if one is not None]
    assert known
    sums = np.array([seen.told[t] for t in known], float)
    assert (sums / seen.step == np.rint(sums / seen.step)).all()
    guess = labels_from_sums(seen.changes[known], sums, error=seen.step / 3.5)
    assert guess is None or np.mean(guess == seen.labels) < 0.95


def test_exact_sums_over_randomised_labels_would_tell_those() -> None:
    pytest.importorskip("flint")
    from benchmarks.lattice import labels_from_sums
    from benchmarks.leak_labels import observed

    seen = observed(40, 16, 8, epsilon=1.0)
    for one, exact in zip(seen.told, seen.exact, strict=True):
        assert one is None or abs(one - exact) <= seen.step
    found = labels_from_sums(seen.changes, np.array(seen.exact), error=0.0)
    assert found is not None
    assert (found == seen.released).all()
    assert np.mean(found == seen.labels) < 0.9


def test_exact_sums_over_soft_labels_are_no_sums_over_0_and_1() -> None:
    pytest.importorskip("flint")
    from benchmarks.lattice import nearest_labels
    from benchmarks.leak_labels import observed

    plain, soft = (observed(60, 16, 8, soft=deviation) for deviation in (None, 0.125))
    found = [
        np.mean(nearest_labels(seen.changes, np.array(seen.exact), noise) == seen.labels)
        for seen, noise in ((plain, 1e-6), (soft, 0.125))
    ]
    assert found[0] == 1.0
    assert 0.6 < found[1] < 0.95


def test_what_is_told_leaves_most_label_vectors_possible() -> None:
    """All label vectors of 12 samples: the transcripts of their sums are so few that each leaves
    many of them."""
    samples, tours = 12, 6
    rng = np.random.default_rng(0)
    changes = rng.standard_normal((tours, samples)) * 0.5 ** np.arange(tours)[:, None]
    transcripts: dict[tuple[float | None, ...], int] = {}
    for labels in itertools.product((0.0, 1.0), repeat=samples):
        sums = LabelSums(samples, resolution=0.5, constant=0.0)
        told = tuple(sums.tell(float(one)) for one in changes @ np.array(labels))
        assert sums.spent <= sums.budget == samples * BITS_PER_SAMPLE
        transcripts[told] = transcripts.get(told, 0) + 1
    assert len(transcripts) <= tours * 2**sums.budget
    assert sum(transcripts.values()) / len(transcripts) >= 2 ** (samples - sums.budget) / tours


def test_the_lengths_are_those_of_a_prefix_code() -> None:
    """The inequality of Kraft: the sum of 2^-length over all integers is at most 1."""
    lengths = [code_length(number) for number in range(-5000, 5001)]
    assert 0.9 < sum(2.0**-length for length in lengths) <= 1.0
    assert [code_length(number) for number in (0, 1, -1, 2, -2, 1000, -1000)] == [
        1,
        4,
        4,
        5,
        5,
        17,
        17,
    ]


def test_sums_are_told_until_the_bits_are_spent_and_never_again() -> None:
    sums = LabelSums(samples=50, resolution=0.25, constant=0.0)
    assert (sums.budget, sums.spent, sums.constant) == (25, 0, 0.0)
    assert sums.tell(250.1) == 250.0
    assert sums.spent == code_length(1000) == 17
    assert sums.tell(0.6) == 0.5
    assert sums.spent == 17 + 5
    assert sums.tell(-99.0) is None
    assert sums.exhausted
    assert sums.tell(0.0) is None
    again = LabelSums(samples=50, resolution=0.25, constant=0.0)
    again.restore({"spent": sums.spent})
    assert again.exhausted


def test_the_constant_is_rounded_up_and_counts() -> None:
    sums = LabelSums(samples=50, resolution=0.25, constant=3.1)
    assert (sums.constant, sums.spent) == (3.25, code_length(13))


@pytest.mark.parametrize("kind", ["logistic", "ridge"])
def test_rounded_sums_keep_the_gap_small(kind: str) -> None:
    data = mtcd.synthetic(kind, samples=900, features=36, clients=3, seed=4)
    # so that tours alone are slow
    blocks = tuple(X + 0.7 * data.blocks[0][:, :1] for X in data.blocks)
    data = mtcd.VerticalData(data.clients, data.columns, blocks, data.labels)
    method = SealedTours(scheme="clear")
    run = mtcd.train(
        data, mtcd.Glm(kind, l2=0.1), "cycle", method, mtcd.Stop(gap=1e-4, iterations=18)
    )
    assert run.status == "converged"


def steering_of(N: int, resolution: float) -> Steering:
    return Steering(mtcd.Glm("ridge").loss, N, 3, float(N), 0.0, resolution, 2)


def test_an_estimate_takes_the_place_of_a_sum_that_is_not_told_and_f_is_no_higher() -> None:
    """One party after the other minimises f over its columns; <y, change> is known here."""
    rng = np.random.default_rng(2)
    N, l2 = 50, 0.3
    blocks, y = [rng.standard_normal((N, 4)) for _ in range(2)], rng.standard_normal(N)
    theta, scores = [np.zeros(4), np.zeros(4)], np.zeros(N)
    steering = steering_of(N, 0.01)
    for _ in range(3):
        steps, before = [], scores
        for k, X in enumerate(blocks):
            gradient = X.T @ (scores - y) + l2 * theta[k]
            steps.append(-np.linalg.solve(X.T @ X + l2 * np.eye(4), gradient))
            scores = scores + X @ steps[k]
        change = scores - before
        at_change = l2 * sum(float(a @ b) for a, b in zip(theta, steps, strict=True))
        of_change = l2 * sum(float(a @ a) for a in steps)
        P = np.array([[0.0, at_change], [at_change, of_change]])
        least = steering._least_label_sum(change, P)
        exact = float(y @ change)
        assert least <= exact + 1e-9
        assert exact - least <= change @ change
        theta = [a + b for a, b in zip(theta, steps, strict=True)]
        steering.scores = scores


def test_a_mix_that_rounding_might_have_made_up_is_not_taken() -> None:
    """A move of no effect but a sum over labels as large as its rounding error: weights must stay
    at the end."""
    N = 40
    for resolution, label, mixed in ((0.0, 1e-3, True), (1.0, 1e-3, False)):
        steering = steering_of(N, resolution)
        tiny = np.full(N, 1e-6)
        steering.moves, steering.products = [tiny], np.zeros((2, 2))
        steering.labels, steering.noise = np.array([0.0, label]), np.zeros((1, 1))
        steering.doubts = np.diag([0.0, (resolution / 2) ** 2])
        change = np.zeros(N)
        change[0] = 0.5
        sums: Any = np.zeros(12)
        steering.end_tour(change, sums, 0.3, 0.0)
        assert (steering.weights[1] != 0.0) == mixed
