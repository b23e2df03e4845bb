"""Linear problems without any training: blocks, penalties, settings and starts, against plain
linear algebra."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import mtcd
from boosting import trained as trained_trees
from mtcd.core.errors import ConfigError, NoSuchPartError
from mtcd.data.standardise import Scaling
from mtcd.models.glm import client as client_module
from mtcd.models.glm.client import ANY, MOST_STEPS
from mtcd.models.glm.fit import LabelFit
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.models.glm.starts import starting_at
from mtcd.models.losses.squared import Squared
from mtcd.protocol.model import Gains, LocalUpdates
from untrained import CLIENTS, LABELS, MODELS, SCALING, X, data_of, decision_of, trained


def test_the_objective_is_loss_plus_penalty() -> None:
    fit = LabelFit(Squared(), np.array([1.0, 2.0]))
    assert fit.objective(np.array([2.0, 4.0]), 0.25) == pytest.approx((1 + 4) / 2 + 0.25)


def test_only_the_first_client_has_the_intercept_and_does_not_penalise_it() -> None:
    for sparse in (False, True):
        matrix = sp.csr_array(X) if sparse else X
        model = Glm("linear", l1=0.5, l2=0.75, intercept=True)
        problem = model.problem(mtcd.split(matrix, LABELS["ridge"], CLIENTS))
        assert [block.shape for block in problem.blocks] == [(7, 3), (7, 1), (7, 3)]
        first = problem.blocks[0].toarray() if sparse else problem.blocks[0]
        np.testing.assert_array_equal(first, np.column_stack([X[:, [5, 0]], np.ones(7)]))
        assert [(one.l1, one.l2, one.free) for one in problem.penalties] == [
            (0.5, 0.75, 1),
            (0.5, 0.75, 0),
            (0.5, 0.75, 0),
        ]
        assert [problem.client(k).strongly_convex for k in range(3)] == [False, True, True]
    plain = Glm("linear").problem(data_of("ridge"))
    assert [block.shape for block in plain.blocks] == [(7, 2), (7, 1), (7, 3)]
    assert [one.free for one in plain.penalties] == [0, 0, 0]
    assert not any(plain.client(k).strongly_convex for k in range(3))


def test_a_penalty_is_nonsmooth_with_l1_however_small() -> None:
    for l1, nonsmooth in ((0.0, False), (0.5, True), (2.0, True)):
        assert Glm("linear", l1=l1).problem(data_of("ridge")).nonsmooth == nonsmooth


def test_a_process_with_some_of_the_blocks_has_no_columns_of_others() -> None:
    problem = Glm("ridge").problem(data_of("ridge"))
    part = problem.with_blocks({2: problem.blocks[2]})
    assert [block.shape for block in part.blocks] == [(7, 0), (7, 0), (7, 3)]
    assert part.evaluation is None
    thetas = [np.zeros(0), np.zeros(0), np.ones(3)]
    np.testing.assert_allclose(part.aggregate(thetas), X[:, [1, 4, 2]].sum(axis=1))
    score = problem.score([np.ones(2), np.ones(1), np.ones(3)])
    assert score.objective == pytest.approx(
        ((X.sum(axis=1) - LABELS["ridge"]) ** 2).sum() / 2 + 6 / 2
    )
    assert (score.accuracy, score.test_accuracy, score.metrics) == (None, None, {})


def test_clients_start_at_zero_or_at_a_copy_of_what_is_given() -> None:
    problem = Glm("multinomial").problem(data_of("multinomial"))
    assert not problem.warm
    assert [problem.client(k).initial().shape for k in range(3)] == [(2, 4), (1, 4), (3, 4)]
    start = tuple(np.full(problem.client(k).initial().shape, k + 1.0) for k in range(3))
    warm = replace(problem, start=start)
    assert warm.warm
    began = warm.client(1).initial()
    np.testing.assert_array_equal(began, start[1])
    began[:] = 9.0
    assert start[1].max() == 2.0


def test_a_mini_batch_counts_for_all_samples() -> None:
    client = Glm("linear", l2=0.5).problem(data_of("ridge")).client(2)
    rows, block, y = np.array([4, 1]), X[:, [1, 4, 2]], LABELS["ridge"]
    np.testing.assert_allclose(client.represent(np.ones(3)), block.sum(axis=1))
    np.testing.assert_allclose(client.represent(np.ones(3), rows), block[rows].sum(axis=1))
    z = np.array([1.0, 2.0])
    new = client.local_update(np.ones(3), z, LocalUpdates(1, 0.01, rows))
    gradient = 7 / 2 * block[rows].T @ (np.array([1.0, 2.0]) - y[rows]) + 0.5
    np.testing.assert_allclose(new, 1 - 0.01 * gradient)
    np.testing.assert_allclose(z, [1.0, 2.0] + block[rows] @ (new - 1))


def test_a_primal_step_goes_down_the_gradient_and_shrinks() -> None:
    client = Glm("linear", l1=0.3, l2=0.5).problem(data_of("ridge")).client(2)
    dual, theta = np.arange(7.0), np.array([1.0, -2.0, 0.1])
    moved = theta - 0.05 * (X[:, [1, 4, 2]].T @ dual + 0.5 * theta)
    expected = np.sign(moved) * np.maximum(np.abs(moved) - 0.05 * 0.3, 0)
    np.testing.assert_allclose(client.primal_step(theta, dual, 0.05), expected)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"kind": "linear", "alpha": 1.0}, "model.alpha belongs to ridge"),
        ({"kind": "ridge", "alpha": 1.0, "l2": 1.0}, "are the same thing for ridge"),
        ({"kind": "ridge", "delta": 2.0}, "model.delta belongs to the huber model"),
        ({"kind": "linear", "positive": "a"}, "positive names one of two classes"),
        ({"kind": "linear", "l1": -0.5}, "model.l1"),
        ({"kind": "linear", "l2": -0.5}, "model.l2"),
        ({"kind": "ridge", "l2": float("nan")}, "model.l2"),
        ({"kind": "ridge", "alpha": -0.5}, "model.alpha"),
        ({"kind": "poisson"}, "a linear model cannot have the poisson loss"),
    ],
)
def test_settings_of_other_models_are_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Glm(**settings)


def test_settings_that_fit() -> None:
    assert Glm("ridge", alpha=3.0).l2_weight == Glm("ridge", l2=3.0).l2_weight == 3.0
    assert (Glm("ridge").l2_weight, Glm("linear").l2_weight, Glm("ridge", l2=0.0).l2_weight) == (
        1.0,
        0.0,
        0.0,
    )
    for kind in ("linear", "logistic", "multinomial", "huber", "squared-hinge"):
        assert (Glm(kind).l1, Glm(kind).l2_weight, Glm(kind).delta, Glm(kind).intercept) == (
            0.0,
            0.0,
            1.0,
            False,
        )
    assert Glm("huber", delta=2.0).loss.curvature == Glm("huber").loss.curvature
    assert repr(Glm("logistic", positive="no")) == repr(Glm("logistic"))
    assert "loss" not in repr(Glm("logistic"))
    first = Glm("logistic", positive="no").loss.encode(LABELS["logistic"])[0]
    np.testing.assert_array_equal(first == first.max(), LABELS["logistic"] == "no")


def test_weights_of_classes_are_for_classes() -> None:
    with pytest.raises(
        ConfigError, match="model.class_weight is for classes, and linear predicts a number"
    ):
        Glm("linear", class_weight="balanced").problem(data_of("ridge"))
    with pytest.raises(ConfigError):
        Glm("logistic", class_weight="unbalanced")  # type: ignore[arg-type]
    z = np.linspace(-1, 1, 7)
    each = np.logaddexp(0, np.where(LABELS["logistic"] == "yes", -z, z))
    double = np.where(LABELS["logistic"] == "yes", 2.0, 0.5)
    for weight, weights, expected in (
        (None, None, np.ones(7)),
        ({"no": 0.5, "yes": 2.0}, None, double),
        (None, np.arange(1.0, 8.0), np.arange(1.0, 8.0)),
        ({"no": 0.5, "yes": 2.0}, np.arange(1.0, 8.0), double * np.arange(1.0, 8.0)),
    ):
        problem = Glm("logistic", class_weight=weight).problem(data_of("logistic", weights=weights))
        assert problem.read_off(z, 0.0) == pytest.approx(expected @ each)


def test_gains_are_not_awaited_and_steps_are_on_f_unless_said_so() -> None:
    assert not Gains(None).awaited
    assert not LocalUpdates(1, 0.5).majorise


def started(start: Any, model: Glm, scaling: Scaling | None = None) -> LinearProblem:
    data = data_of(model.kind)
    return starting_at(start, model, data, model.problem(data), scaling)


@pytest.mark.parametrize("after", [None, SCALING], ids=["plain", "scaled"])
@pytest.mark.parametrize("before", [None, SCALING, "another"], ids=str)
@pytest.mark.parametrize("model", [MODELS[1], MODELS[4]], ids=str)
def test_a_start_at_an_earlier_model_has_its_decisions(
    model: Glm, before: Any, after: Scaling | None
) -> None:
    if before == "another":
        before = Scaling(
            SCALING.scales, (*SCALING.means[:1], np.array([2.0]), np.array([0.5, 1.5, 3.0]))
        )
    earlier, thetas = trained(model, before)
    found = started(earlier, model, after).start
    np.testing.assert_allclose(
        decision_of(model, list(found), after),
        decision_of(model, thetas, before),
        rtol=1e-10,
        atol=1e-10,
    )
    if before is after:  # to the last bit
        assert all(np.array_equal(one, two) for one, two in zip(found, thetas, strict=True))


def test_a_start_by_client_is_that_of_the_columns_as_trained() -> None:
    given = {"a": [1.0, 2.0], "b": [3.0], "c": [4.0, 5.0, 6.0]}
    for model, first in (
        (Glm("ridge"), [1.0, 2.0]),
        (Glm("ridge", intercept=True), [1.0, 2.0, 0.0]),
    ):
        found = started(given, model, SCALING).start
        assert [theta.tolist() for theta in found] == [first, [3.0], [4.0, 5.0, 6.0]]


GIVEN = {"a": np.ones(2), "b": np.ones(1), "c": np.ones(3)}


@pytest.mark.parametrize(
    ("start", "says"),
    [
        (0.5, "start must be a run, or parameters by client, but is 0.5"),
        ({"a": np.ones(2), "c": np.ones(3)}, "start has no parameters of b"),
        (GIVEN | {"d": np.ones(1)}, "start has parameters of d"),
        (GIVEN | {"b": np.ones(2)}, r"'b' must have the shape \(1,\), but have the shape \(2,\)"),
        (
            GIVEN | {"b": np.ones((1, 4))},
            r"'b' must have the shape \(1,\), but have the shape \(1, 4\)",
        ),
        (GIVEN | {"c": [1.0, np.inf, 1.0]}, "'c' are not all finite"),
        (GIVEN | {"c": ["x", "y", "z"]}, "'c' are not numbers"),
    ],
)
def test_parameters_that_do_not_fit_are_no_start(
    start: Mapping[str, Any] | float, says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        started(start, Glm("ridge"))


def test_a_model_of_other_data_is_no_start() -> None:
    earlier, _ = trained(Glm("ridge"))
    for other in (
        replace(earlier, clients=("a", "b", "d")),
        replace(earlier, columns=(("x5", "x1"), *earlier.columns[1:])),
    ):
        with pytest.raises(ConfigError, match="other clients or columns"):
            started(other, Glm("ridge"))
    with pytest.raises(ConfigError, match="other classes: none"):
        started(earlier, Glm("logistic"))
    with pytest.raises(
        ConfigError, match="other classes: 'no', 'yes'|other classes: 'no' and 'yes'"
    ):
        started(trained(Glm("logistic"))[0], Glm("ridge"))


SURVEYED = np.random.default_rng(5).standard_normal((15, 4)) * [1.0, 3.0, 0.2, 1.0]
SURVEYED_LABELS = np.arange(15) % 2


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("kind", "weighted"), [("ridge", False), ("logistic", False), ("logistic", True)]
)
def test_the_survey_of_a_block(kind: str, weighted: bool, sparse: bool) -> None:
    weights = np.linspace(0.5, 2.0, 15) if weighted else None
    data = mtcd.split(
        sp.csr_array(SURVEYED) if sparse else SURVEYED,
        SURVEYED_LABELS,
        {"a": range(4)},
        weights=weights,
    )
    problem = mtcd.Glm(kind, l2=0.7).problem(data)
    # the largest weight is in the curvature
    relative = np.ones(15) if weights is None else weights / weights.max()
    scaled = SURVEYED * np.sqrt(relative)[:, None]
    norm, squares = np.linalg.norm(scaled, 2) ** 2, np.linalg.norm(scaled) ** 2
    found = problem.client(0).survey()
    logs = np.log(np.linalg.norm(scaled, axis=0) ** 2).sum()
    exact = [1.0, 4.0, squares, norm, 4 * norm / squares, logs]
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    curvature = (0.25 if kind == "logistic" else 1.0) * (1.0 if weights is None else weights.max())
    assert problem.client(0).smoothness == pytest.approx(curvature * norm + 0.7, rel=1e-6)


def test_the_survey_of_a_block_of_zeros() -> None:
    problem = mtcd.Glm("ridge", l2=0.7).problem(
        mtcd.split(np.zeros((3, 2)), np.arange(3), {"a": [0], "b": [1]})
    )
    assert problem.client(1).survey().tolist() == [1.0, 1.0, 0.0, 0.0, 1.0, 0.0]


def test_columns_of_zeros_count_as_the_mean_of_the_block() -> None:
    columns = np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 0.0]])
    problem = mtcd.Glm("ridge", l2=0.7).problem(mtcd.split(columns, np.arange(3), {"a": [0, 1]}))
    expected = np.log(25.0) + np.log(25.0 / 2)
    assert problem.client(0).survey()[-1] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("most", "steps"), [(3, MOST_STEPS), (4, ANY), (5, ANY)])
def test_steps_have_a_closed_form_up_to_a_size(
    most: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "LARGEST_GRAM", most)
    data = mtcd.split(SURVEYED, SURVEYED_LABELS, {"a": range(4)})
    assert mtcd.Glm("ridge", l2=0.7).problem(data).client(0).most_steps(False) == steps


def test_only_steps_in_closed_form_may_be_very_many() -> None:
    data = mtcd.split(SURVEYED, SURVEYED_LABELS, {"a": range(4)})
    ridge = mtcd.Glm("ridge", l2=0.7).problem(data).client(0)
    logistic = mtcd.Glm("logistic", l2=0.7).problem(data).client(0)
    assert ridge.most_steps(False) == ridge.most_steps(True) == logistic.most_steps(True) == ANY
    assert logistic.most_steps(False) == MOST_STEPS
    lasso = mtcd.Glm("linear", l1=0.7).problem(data).client(0)
    assert lasso.most_steps(True) == MOST_STEPS


def test_a_run_of_trees_is_no_start() -> None:
    data = mtcd.split(SURVEYED, SURVEYED_LABELS, {"a": range(4)})
    run = trained_trees(data, mtcd.Trees(min_samples=2), 2)
    with pytest.raises(NoSuchPartError, match="trees or other models, without parameters"):
        mtcd.train(data, mtcd.Glm("ridge"), stop=mtcd.Stop(iterations=2), start=run)
