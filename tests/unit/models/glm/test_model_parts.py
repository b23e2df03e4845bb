"""A linear model with random parameters: decisions, predictions, coefficients, metrics, by plain
linear algebra."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, softmax

import mtcd
from mtcd.core.errors import DataError
from mtcd.data.standardise import Scaling
from mtcd.models.glm.coefficients import coefficient_row, shift_of, unscaled
from mtcd.models.glm.evaluation import Evaluation, TestSet, known_labels, linear_outputs
from mtcd.models.glm.model import Glm
from mtcd.models.glm.trained import linear_columns
from mtcd.models.metrics import find_metrics
from mtcd.models.predicted import class_name, true_labels
from untrained import (
    CLASSES,
    CLIENTS,
    LABELS,
    MODELS,
    PLACES,
    SCALING,
    X,
    data_of,
    decision_of,
    trained,
)


@pytest.mark.parametrize("scaling", [None, SCALING], ids=["plain", "scaled"])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_decisions_and_coefficients_of_a_trained_model(model: Glm, scaling: Scaling | None) -> None:
    ours, thetas = trained(model, scaling)
    expected = decision_of(model, thetas, scaling)
    for given in (X, X.tolist(), data_of(model.kind), {f"x{j}": X[:, j] for j in range(6)}):
        np.testing.assert_allclose(ours.decision(given), expected, atol=1e-12)
    np.testing.assert_allclose(X @ ours.coefficients + ours.intercept, expected, atol=1e-12)
    assert ours.column_names == tuple(f"x{j}" for j in range(6))
    own = [thetas[0][:-1] if model.intercept else thetas[0], *thetas[1:]]
    np.testing.assert_array_equal(ours.scaled_coefficients[PLACES], np.concatenate(own))
    np.testing.assert_array_equal(
        ours.trained_intercept, thetas[0][-1] if model.intercept else np.zeros(thetas[0].shape[1:])
    )
    assert isinstance(ours.intercept, np.ndarray if model.kind == "multinomial" else float)


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_predictions_with_probabilities_or_scores(model: Glm) -> None:
    ours, thetas = trained(model)
    z = decision_of(model, thetas, None)
    columns = ours.columns_of(X)
    assert list(columns) == list(linear_columns(model, ours.classes, z))
    outputs = ours.outputs(X, LABELS[model.kind])
    np.testing.assert_allclose(outputs.decision, z)
    if model.kind == "ridge":
        np.testing.assert_allclose(ours.predict(X), z)
        assert list(columns) == ["prediction"]
        np.testing.assert_array_equal(outputs.labels, LABELS["ridge"])
        return
    names = sorted(set(LABELS[model.kind].tolist()))
    place = z.argmax(axis=1) if z.ndim == 2 else (z > 0).astype(int)
    assert ours.predict(X).tolist() == [names[one] for one in place]
    assert outputs.labels.tolist() == [names.index(one) for one in LABELS[model.kind].tolist()]
    if model.kind == "squared-hinge":
        np.testing.assert_allclose(columns["score"], z)
        return
    shares = softmax(z, axis=1) if z.ndim == 2 else np.column_stack([expit(-z), expit(z)])
    np.testing.assert_allclose(ours.predict_proba(X), shares, rtol=1e-10)
    assert list(columns) == ["prediction", *(f"p_{name}" for name in names)]
    np.testing.assert_allclose(
        np.column_stack([columns[f"p_{name}"] for name in names]), shares, rtol=1e-10
    )


def test_a_trained_model_says_what_it_is() -> None:
    assert repr(trained(Glm("ridge"))[0]) == "TrainedModel(ridge, 6 columns of 3 client(s))"
    ours, _ = trained(Glm("multinomial", intercept=True), SCALING)
    assert (
        repr(ours)
        == "TrainedModel(multinomial, 6 columns of 3 client(s), 4 classes, intercept, standardised)"
    )


@pytest.mark.parametrize("given", [X[:, :5], X[0], X.reshape(7, 3, 2), X.reshape(7, 6, 1), X.T])
def test_a_matrix_of_new_samples_has_a_column_for_each_of_the_model(given: np.ndarray) -> None:
    ours, _ = trained(Glm("ridge"))
    with pytest.raises(DataError, match="a matrix of the 6 columns that the clients hold"):
        ours.decision(given)


def test_sparse_samples_and_samples_that_are_no_numbers() -> None:
    ours, thetas = trained(Glm("ridge"))
    blocks = ours.blocks_of(sp.csr_array(X))
    assert all(sp.issparse(block) for block in blocks)
    np.testing.assert_allclose(
        ours.decision(sp.csr_array(X)), decision_of(Glm("ridge"), thetas, None)
    )
    with pytest.raises(DataError, match="not a matrix of numbers"):
        ours.decision("a text")
    broken = X.copy()
    broken[2, 3] = np.nan
    with pytest.raises(DataError, match="'b'"):
        ours.decision(broken)


def test_vertical_data_needs_the_same_clients_and_the_same_columns() -> None:
    ours, _ = trained(Glm("ridge"))
    for other in ({**CLIENTS, "b": [4], "c": [1, 3, 2]}, {"a": [5, 0], "B": [3], "c": [1, 4, 2]}):
        with pytest.raises(DataError, match="split differently"):
            ours.decision(mtcd.split(X, LABELS["ridge"], other))


def test_a_table_of_coefficients_has_a_row_for_each_column_and_the_intercept() -> None:
    for model in (MODELS[1], MODELS[4]):
        ours, thetas = trained(model, SCALING)
        table = list(ours.coefficients_table())
        assert [row["client"] for row in table] == ["a", "c", "c", "b", "c", "a", None]
        assert [row["column"] for row in table] == [*(f"x{j}" for j in range(6)), "(intercept)"]
        ends = [f"_{name}" for name in CLASSES] if model.kind == "multinomial" else [""]
        scaled = [[row[f"scaled_coefficient{end}"] for end in ends] for row in table]
        stacked = np.concatenate([thetas[0][:-1], *thetas[1:]]).reshape(6, -1)[np.argsort(PLACES)]
        np.testing.assert_allclose(scaled, [*stacked, thetas[0][-1].reshape(-1)])
        scales = np.concatenate(SCALING.scales)[np.argsort(PLACES)]
        plain = [[row[f"coefficient{end}"] for end in ends] for row in table[:-1]]
        np.testing.assert_allclose(plain, stacked / scales[:, None])


def test_coefficients_of_columns_as_given() -> None:
    means, scales = np.array([1.0, 3.0]), np.array([2.0, 4.0])
    assert unscaled(np.array([4.0, 12.0]), scales).tolist() == [2.0, 3.0]
    assert unscaled(np.array([[4.0, 2.0, 6.0], [12.0, 4.0, 8.0]]), scales).tolist() == [
        [2.0, 1.0, 3.0],
        [3.0, 1.0, 2.0],
    ]
    assert shift_of(np.array([4.0, 12.0]), means, scales).tolist() == 0.5 * 4 + 0.75 * 12
    row = coefficient_row("lab", "age", np.array([1.0, 2.0]), np.array([3.0, 4.0]), (0.0, "x"))
    assert list(row.items())[2:] == [
        ("coefficient_0", 1.0),
        ("coefficient_x", 2.0),
        ("scaled_coefficient_0", 3.0),
        ("scaled_coefficient_x", 4.0),
    ]
    assert [class_name(one) for one in (1.0, 1.5, "1.0", 2)] == ["1", "1.5", "1.0", "2"]


@pytest.mark.parametrize(
    ("y", "classes", "expected"),
    [
        (["q", "p"], ("p", "q"), [1, 0]),
        (["q", "q"], ("p", "q"), [1, 1]),
        ([2, 1], ("1", "2"), [1, 0]),
        ([2.0, 1.0], (1.0, 2.0), [1, 0]),
        ([2, 1], (), [2.0, 1.0]),
        ([True, False], (), [1.0, 0.0]),
        ([2.5, 2.5], (), [2.5, 2.5]),
    ],
)
def test_labels_of_new_samples_become_numbers(
    y: list[Any], classes: tuple[Any, ...], expected: list[float]
) -> None:
    assert true_labels(y, classes, 2).tolist() == expected


def test_labels_that_do_not_fit_the_samples_or_the_model_are_refused() -> None:
    for count in (1, 3):
        with pytest.raises(DataError, match=f"There are {count} samples, but 2 labels"):
            true_labels([1.0, 2.0], (), count)
    with pytest.raises(DataError, match="this model predicts numbers"):
        true_labels(["p", "q"], (), 2)


def test_metrics_of_training_come_from_the_aggregate_and_those_of_a_test_from_the_parameters() -> (
    None
):
    z, labels = np.array([1.0, -1.0, 2.0]), np.array([1, 1, 1])
    blocks = [np.array([[1.0, 2.0], [-1.0, 0.0]]), np.array([[1.0], [-3.0]])]
    loss, metrics = Glm("logistic").loss, find_metrics(["accuracy"], 2, True)
    calls: list[int] = []

    def parameters() -> list[np.ndarray]:
        calls.append(1)
        return [np.array([1.0, -2.0]), np.array([1.0])]  # the scores are -2 and -4

    evaluation = Evaluation(metrics, loss, ("no", "yes"), labels)
    assert evaluation.measured(z, parameters) == {"train_accuracy": pytest.approx(2 / 3)}
    assert not calls
    tested = replace(evaluation, test=TestSet(blocks, np.array([0, 0])))
    assert tested.measured(z, parameters) == {
        "train_accuracy": pytest.approx(2 / 3),
        "test_accuracy": 1.0,
    }
    assert replace(tested, metrics=find_metrics([], 2, True)).measured(z, parameters) == {}
    assert len(calls) == 1


def test_labels_as_metrics_use_them() -> None:
    assert known_labels(np.array(["q", "p", "q"]), ("p", "q")).tolist() == [1, 0, 1]
    values = known_labels(np.array([3, 4]), ())
    assert (values.tolist(), values.dtype) == ([3.0, 4.0], float)
    outputs = [
        linear_outputs(Glm(kind).loss, (), values, np.zeros(2)) for kind in ("ridge", "logistic")
    ]
    assert [one.has_probabilities for one in outputs] == [False, True]
