"""Metrics against scikit-learn, and what they say where they are not defined."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from mtcd.core.errors import ConfigError, DataError
from mtcd.models.metrics import (
    METRICS,
    Metric,
    Outputs,
    all_metrics,
    chosen_metrics,
    class_numbers,
    find_metrics,
)

NAMES = [
    "accuracy",
    "auc",
    "average_precision",
    "balanced_accuracy",
    "brier",
    "f1",
    "ks",
    "log_loss",
]
NAMES += ["mae", "r2", "rmse"]
Z = st.lists(st.integers(-6, 6).map(lambda z: z / 2), min_size=2, max_size=40)  # with ties


def ks(a: np.ndarray, b: np.ndarray) -> float:
    """The largest distance of the two distribution functions, from its definition."""
    return max(abs(np.mean(a <= value) - np.mean(b <= value)) for value in [*a, *b])


def sigmoid(z: np.ndarray) -> np.ndarray:
    return np.column_stack([1 - 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(-z))])


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z)
    return e / e.sum(axis=1, keepdims=True)


def test_all_names_are_registered() -> None:
    assert list(METRICS) == NAMES


@given(Z, st.randoms(use_true_random=False))
@settings(max_examples=60, deadline=None)
def test_two_classes_against_scikit_learn(scores: list[float], random) -> None:
    z = np.array(scores)
    y = np.array([random.randrange(2) for _ in scores])
    y[:2] = 0, 1
    predicted, p = (z > 0).astype(float), sigmoid(z)[:, 1]
    got = all_metrics(2, True).of(Outputs(y, predicted, z, ("no", "yes"), sigmoid))
    assert got == pytest.approx(
        {
            "accuracy": sk.accuracy_score(y, predicted),
            "auc": sk.roc_auc_score(y, z),
            "average_precision": sk.average_precision_score(y, z),
            "balanced_accuracy": sk.balanced_accuracy_score(y, predicted),
            "brier": sk.brier_score_loss(y, p),
            "f1": sk.f1_score(y, predicted),
            "ks": ks(z[y == 1], z[y == 0]),
            "log_loss": sk.log_loss(y, p),
        },
        rel=1e-10,
        abs=1e-12,
    )


@given(st.integers(0, 10_000), st.integers(3, 6), st.integers(7, 60))
@settings(max_examples=40, deadline=None)
def test_several_classes_against_scikit_learn(seed: int, classes: int, samples: int) -> None:
    rng = np.random.default_rng(seed)
    z = rng.integers(-2, 3, (samples, classes)).astype(float)
    y = np.append(np.arange(classes), rng.integers(0, classes, samples - classes))
    y, predicted, p = y.astype(int), z.argmax(axis=1), softmax(z)
    got = all_metrics(classes, True).of(
        Outputs(y, predicted, z, tuple("abcdef"[:classes]), softmax)
    )
    hot = np.eye(classes)[y]
    assert got == pytest.approx(
        {
            "accuracy": sk.accuracy_score(y, predicted),
            "auc": sk.roc_auc_score(y, p, multi_class="ovr"),
            "average_precision": sk.average_precision_score(hot, p),
            "balanced_accuracy": sk.balanced_accuracy_score(y, predicted),
            "brier": ((p - hot) ** 2).sum(axis=1).mean(),
            "f1": sk.f1_score(y, predicted, average="macro"),
            "ks": np.mean([ks(p[y == c, c], p[y != c, c]) for c in range(classes)]),
            "log_loss": sk.log_loss(y, p),
        },
        rel=1e-10,
        abs=1e-12,
    )


def test_values_against_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y, z = rng.normal(size=50), rng.normal(size=50)
    expected = {
        "mae": sk.mean_absolute_error(y, z),
        "r2": sk.r2_score(y, z),
        "rmse": sk.root_mean_squared_error(y, z),
    }
    assert all_metrics(0, False).of(Outputs(y, z, z)) == pytest.approx(expected)


def test_a_column_per_class_of_two_ranks_as_their_difference() -> None:
    rng = np.random.default_rng(1)
    z, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    got = METRICS["auc"]().of(Outputs(y, z.argmax(axis=1), z, (0.0, 1.0), softmax))
    assert got == pytest.approx(sk.roc_auc_score(y, softmax(z)[:, 1]))


@pytest.mark.parametrize("labels", [[0, 0, 0], [1, 1, 1]])
def test_one_class_only_is_nan_where_nothing_is_defined(labels: list[int]) -> None:
    z = np.array([-1.0, 0.5, 2.0])
    outputs = Outputs(np.array(labels), (z > 0).astype(float), z, (0.0, 1.0), sigmoid)
    got = all_metrics(2, True).of(outputs)
    assert {name for name, value in got.items() if math.isnan(value)} == {
        "auc",
        "average_precision",
        "ks",
    }
    assert got["accuracy"] == got["balanced_accuracy"] == np.mean(np.array(labels) == (z > 0))
    assert got["log_loss"] == pytest.approx(sk.log_loss(labels, sigmoid(z)[:, 1], labels=[0, 1]))
    assert set(find_metrics(["auc", "f1"], 2, True).measured("test", outputs)) == {"test_f1"}


def test_a_class_without_samples_is_left_out_of_means_over_classes() -> None:
    """Of four classes the third is predicted once, and the last is nowhere."""
    y, predicted = np.array([0, 0, 1, 1, 1]), np.array([0, 1, 1, 1, 2])
    outputs = Outputs(y, predicted, np.zeros((5, 4)), tuple("abcd"))
    assert METRICS["f1"]().of(outputs) == pytest.approx(sk.f1_score(y, predicted, average="macro"))
    assert METRICS["balanced_accuracy"]().of(outputs) == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_f1_without_any_positive_is_not_defined() -> None:
    z = np.array([-1.0, -2.0])
    assert math.isnan(METRICS["f1"]().of(Outputs(np.zeros(2), np.zeros(2), z, (0.0, 1.0))))


def test_outputs_that_are_not_finite_or_too_large_give_nan() -> None:
    y = np.array([0.0, 1.0])
    for z in (np.array([np.nan, 1.0]), np.array([np.inf, 1.0]), np.array([1e200, 1.0])):
        assert math.isnan(METRICS["rmse"]().of(Outputs(y, z, z)))


def test_equal_labels_have_no_r2() -> None:
    y, z = np.ones(3), np.arange(3.0)
    assert math.isnan(METRICS["r2"]().of(Outputs(y, z, z)))


def test_names_that_do_not_fit_are_refused_with_those_that_do() -> None:
    for names, classes, probabilities, words in (
        (["acu"], 2, True, "no metric is called 'acu'; did you mean 'auc'"),
        (["auc"], 0, False, "auc is for models that predict classes.*mae, r2, rmse"),
        (["rmse"], 2, True, "rmse is for models that predict values.*accuracy, auc"),
        (["log_loss"], 2, False, "log_loss needs probabilities.*Choose among accuracy"),
        ("auc", 2, True, "list of names"),
        (3, 2, True, "list of names"),
    ):
        with pytest.raises(ConfigError, match=words):
            find_metrics(names, classes, probabilities)


def test_defaults_by_model() -> None:
    assert [list(chosen_metrics(None, classes, True).chosen) for classes in (0, 2, 5)] == [
        ["rmse", "r2"],
        ["accuracy", "auc"],
        ["accuracy", "f1"],
    ]
    assert not chosen_metrics((), 2, True)


def test_class_numbers_name_a_label_that_was_never_trained_on() -> None:
    assert class_numbers(np.array(["b", "a", "b"]), ("a", "b", "c")).tolist() == [1, 0, 1]
    with pytest.raises(
        DataError, match="label 'd' is of a class that no training sample has: the classes are a, b"
    ):
        class_numbers(np.array(["b", "d"]), ("a", "b"))


def test_a_metric_of_ones_own_by_name() -> None:
    class Errors(Metric):
        higher_is_better = False

        def value(self, outputs: Outputs) -> float:
            return float((outputs.labels != outputs.predicted).sum())

    METRICS.register("errors", Errors)
    try:
        outputs = Outputs(np.array([0, 1, 1]), np.array([0, 0, 0]), np.zeros(3), (0.0, 1.0))
        assert find_metrics(["errors"], 2, False).measured("train", outputs) == {
            "train_errors": 2.0
        }
    finally:
        METRICS._classes.pop("errors")
