"""Losses and penalties against finite differences and brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import mtcd
from mtcd.core.errors import ConfigError, DataError
from mtcd.models.glm.model import Glm
from mtcd.models.glm.penalty import Penalty
from mtcd.models.losses import Loss
from mtcd.models.losses.huber import Huber
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.multinomial import Multinomial
from mtcd.models.losses.poisson import Poisson
from mtcd.models.losses.quantile import Quantile
from mtcd.models.losses.shifted import Shifted
from mtcd.models.losses.squared import Squared
from mtcd.models.losses.squared_hinge import SquaredHinge
from mtcd.models.sample_weights.weighted import Weighted

LOSSES: list[Loss] = [
    Squared(),
    Huber(0.7),
    Logistic(),
    SquaredHinge(),
    Multinomial(),
    Quantile(0.3),
    Poisson(),
]
STEP = 1e-5


@st.composite
def points(draw: st.DrawFn) -> tuple[Loss, Any, Any, Any]:
    """A loss, an aggregate z, encoded labels and a direction."""
    loss = draw(st.sampled_from(LOSSES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    spread, samples = draw(st.floats(0.1, 10.0)), draw(st.integers(3, 12))
    if isinstance(loss, Multinomial):
        labels: Any = np.array(["a", "b", "c"])[np.arange(samples) % 3]
    elif isinstance(loss, Logistic | SquaredHinge):
        labels = np.arange(samples) % 2
    elif isinstance(loss, Poisson):
        labels = rng.poisson(spread, size=samples)
        spread = min(spread, 2.0)  # exp(z) of more is far from any data
    else:
        labels = rng.normal(scale=spread, size=samples)
    y, _ = loss.encode(labels)
    return loss, rng.normal(scale=spread, size=y.shape), y, rng.normal(size=y.shape)


def away_from_kinks(loss: Loss, z: Any, y: Any) -> bool:
    """Whether second differences make sense: huber and squared hinge have none at their kinks."""
    if isinstance(loss, Quantile):
        return bool(np.all(np.abs(z - y) > 1e-3))
    if isinstance(loss, Huber):
        return bool(np.all(np.abs(np.abs(z - y) - loss.delta) > 1e-3))
    return not isinstance(loss, SquaredHinge) or bool(np.all(np.abs(1.0 - y * z) > 1e-3))


@given(points())
@settings(deadline=None)
def test_gradient_is_the_derivative_of_the_value(point: tuple[Loss, Any, Any, Any]) -> None:
    loss, z, y, v = point
    if isinstance(loss, Quantile) and not away_from_kinks(loss, z, y):
        return
    difference = (loss.value(z + STEP * v, y) - loss.value(z - STEP * v, y)) / (2 * STEP)
    assert np.vdot(loss.gradient(z, y), v) == pytest.approx(difference, rel=1e-5, abs=1e-4)


@given(points())
@settings(deadline=None)
def test_hessian_product_is_the_derivative_of_the_gradient(
    point: tuple[Loss, Any, Any, Any],
) -> None:
    loss, z, y, v = point
    if not away_from_kinks(loss, z, y):
        return
    difference = (loss.gradient(z + STEP * v, y) - loss.gradient(z - STEP * v, y)) / (2 * STEP)
    np.testing.assert_allclose(loss.hessian_product(z, y, v), difference, rtol=1e-4, atol=1e-6)


@given(points())
@settings(deadline=None)
def test_curvature_bounds_the_second_derivative(point: tuple[Loss, Any, Any, Any]) -> None:
    loss, z, y, v = point
    if loss.not_linear:  # its curvature is no bound
        return
    assert (
        0.0
        <= np.vdot(v, loss.hessian_product(z, y, v))
        <= loss.curvature * np.vdot(v, v) * (1 + 1e-12)
    )


def test_curvature_is_reached() -> None:
    """A bound twice too large would halve every step size."""
    reached = {
        Squared(): (np.zeros(1), np.zeros(1), np.ones(1)),
        Huber(): (np.zeros(1), np.zeros(1), np.ones(1)),
        Logistic(): (np.zeros(1), np.ones(1), np.ones(1)),
        SquaredHinge(): (np.zeros(1), np.ones(1), np.ones(1)),
        Multinomial(): (np.array([[0.0, 0.0, -50.0]]), np.eye(3)[:1], np.array([[1.0, -1.0, 0.0]])),
    }
    for loss, (z, y, v) in reached.items():
        assert np.vdot(v, loss.hessian_product(z, y, v)) / np.vdot(v, v) == pytest.approx(
            loss.curvature
        )


@pytest.mark.parametrize("loss", [Logistic(), Multinomial()])
def test_extreme_predictions_neither_overflow_nor_lose_the_loss(loss: Loss) -> None:
    y, _ = loss.encode(np.array([0, 1]))
    z = np.full_like(y, -1e4)
    z[0] = 1e4 if z.ndim == 1 else [0.0, 2e4]
    assert loss.value(z, y) >= 1e4
    assert np.isfinite(loss.gradient(z, y)).all()


@pytest.mark.parametrize(
    ("loss", "labels", "encoded", "classes"),
    [
        (Logistic(), [0, 1, 1], [0, 1, 1], (0, 1)),
        (Logistic(), [-1, 1, -1], [0, 1, 0], (-1, 1)),
        (Logistic(), [False, True], [0, 1], (0, 1)),
        (SquaredHinge(), [0, 1, 1], [-1, 1, 1], (0, 1)),
        (SquaredHinge(), [-1.0, 1.0], [-1, 1], (-1, 1)),
        (Squared(), [3, 1], [3, 1], ()),
        (Multinomial(), ["b", "a", "b"], [[0, 1], [1, 0], [0, 1]], ("a", "b")),
        (Multinomial(), [7, 5], [[0, 1], [1, 0]], (5, 7)),
    ],
)
def test_encode(
    loss: Loss, labels: list[Any], encoded: list[Any], classes: tuple[Any, ...]
) -> None:
    y, found = loss.encode(np.array(labels))
    assert y.dtype == float
    assert y.tolist() == encoded
    assert found == classes
    assert loss.outputs(found) == (len(classes) if isinstance(loss, Multinomial) else 1)


@pytest.mark.parametrize("loss", [Logistic(), SquaredHinge()])
@pytest.mark.parametrize("labels", [[0, 1, 2], ["no", "perhaps", "yes"], [0.0, 0.5, 1.0], [1, 1]])
def test_two_classes_refuse_other_labels_and_say_which(loss: Loss, labels: list[Any]) -> None:
    with pytest.raises(DataError, match="0/1 or -1/1"):
        loss.encode(np.array(labels))


RNG = np.random.default_rng(5)
CONTINUOUS = {
    "each once": RNG.standard_normal(120),
    "a dozen": RNG.standard_normal(12),
    "rounded": RNG.uniform(0, 6, 500).round(1),
    "prices": RNG.permutation(1000)[:120].astype(float),
    "whole numbers": RNG.permutation(1000)[:120],
    "names": np.array([f"patient {i}" for i in range(60)]),
}


@pytest.mark.parametrize("kind", CONTINUOUS)
@pytest.mark.parametrize(
    "model", [Glm("multinomial"), mtcd.Trees(loss="multinomial")], ids=["linear", "trees"]
)
def test_multinomial_refuses_labels_that_are_no_classes(model: Any, kind: str) -> None:
    labels = CONTINUOUS[kind]
    with pytest.raises(
        DataError, match=rf"{len(np.unique(labels))} different .* in {len(labels)} samples .* ridge"
    ):
        model.weighted(labels)


@pytest.mark.parametrize(
    ("classes", "samples", "noted"),
    [
        (np.arange(26), 2000, False),
        (np.arange(70), 500, True),
        (np.array([1.0, 1.5, 2.0, 2.5]), 6, False),
    ],
)
@pytest.mark.parametrize(
    "model", [Glm("multinomial"), mtcd.Trees(loss="multinomial")], ids=["linear", "trees"]
)
def test_many_classes_with_few_samples_are_noted(
    model: Any, classes: Any, samples: int, noted: bool
) -> None:
    labels = np.resize(classes, samples)
    data = mtcd.split(RNG.standard_normal((samples, 2)), labels, 2)
    run = mtcd.train(data, model, "path", mtcd.STCD(), mtcd.Stop(iterations=1), metrics=())
    assert (
        any(f"{len(classes)} classes in {samples} samples" in note for note in run.notes) == noted
    )


HALVES = [number + 0.5 for number in range(40)]


@pytest.mark.parametrize(
    ("classes", "samples", "refused"),
    [
        # fractions: more than 20 of them, or more than 9 of which most occur once
        (HALVES[:20], 400, False),
        (HALVES[:21], 400, True),
        (HALVES[:9], 10, False),
        (HALVES[:10], 20, False),
        (HALVES[:10], 19, True),
        # whole numbers: more than 20, of which most occur once
        (range(20), 20, False),
        (range(21), 42, False),
        (range(21), 41, True),
    ],
)
def test_what_counts_as_classes(classes: Any, samples: int, refused: bool) -> None:
    found = tuple(float(one) for one in classes)
    if not refused:
        Multinomial().check_classes(found, samples)
        return

    with pytest.raises(DataError, match="these are no classes"):
        Multinomial().check_classes(found, samples)


@pytest.mark.parametrize(
    ("count", "samples", "noted"), [(20, 20, False), (21, 419, True), (21, 420, False)]
)
def test_what_counts_as_few_samples_of_a_class(count: int, samples: int, noted: bool) -> None:
    notes = Multinomial().class_notes(tuple(range(count)), samples)
    assert len(notes) == noted


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_weights_of_a_best_shift_are_as_many_samples(loss: Loss) -> None:
    """Also where the loss is shifted or weighted already."""
    y: Any = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 2.0])
    if isinstance(loss, Logistic | SquaredHinge):
        y = loss.encode(np.array([0, 1, 1, 0, 1, 1]))[0]
    if isinstance(loss, Multinomial):
        y = np.eye(3)[y.astype(int)]

    weights, z = np.array([1.0, 2.0, 1.0, 3.0, 1.0, 1.0]), np.zeros_like(y)
    rows = np.repeat(np.arange(6), weights.astype(int))
    expected = loss.best_shift(z[rows], y[rows])
    for times in (1, 2):
        np.testing.assert_allclose(loss.best_shift(z, y, times * weights), expected, atol=1e-9)

    ones = np.ones(6)
    np.testing.assert_allclose(Weighted(loss, ones).best_shift(z, y, weights), expected, atol=1e-9)
    np.testing.assert_allclose(Weighted(loss, weights).best_shift(z, y, ones), expected, atol=1e-9)
    if not isinstance(loss, Multinomial):
        shifted = Shifted(loss, np.asarray(0.25))
        np.testing.assert_allclose(shifted.best_shift(z, y, weights), expected - 0.25, atol=1e-9)


@pytest.mark.parametrize(
    ("loss", "z", "y", "gradient", "curved"),
    [
        (Quantile(0.3), 2.0, 2.0, 0.7, 0.0),
        (Huber(0.5), 2.5, 2.0, 0.5, 1.0),
        (Huber(0.5), 1.5, 2.0, -0.5, 1.0),
        (SquaredHinge(), 1.0, 1.0, 0.0, 0.0),
        (SquaredHinge(), -1.0, -1.0, 0.0, 0.0),
    ],
    ids=repr,
)
def test_derivatives_at_a_kink(
    loss: Loss, z: float, y: float, gradient: float, curved: float
) -> None:
    at, label = np.array([z]), np.array([y])
    assert loss.gradient(at, label).tolist() == [gradient]
    assert loss.hessian_product(at, label, np.ones(1)).tolist() == [curved]


def test_a_class_is_predicted_where_its_score_is_above_0() -> None:
    scores = np.array([-1.0, 0.0, 1e-9])
    assert (
        Logistic().predict(scores).tolist() == SquaredHinge().predict(scores).tolist() == [0, 0, 1]
    )


@pytest.mark.parametrize(
    ("gradient", "root"),
    [
        (lambda c: c - 1.0, 1.0),  # the end of the first interval
        (lambda c: c + 1.0, -1.0),
        (lambda c: c - 5.0, 5.0),
        (lambda c: c, 0.0),
        (lambda c: -1.0, 2.0**60),  # it falls for ever
        (lambda c: 1.0, -(2.0**60)),
    ],
)
def test_the_root_of_a_derivative(gradient: Any, root: float) -> None:
    class Falling(Squared):
        best_shift = Loss.best_shift

        def gradient(self, z: Any, y: Any) -> Any:
            return np.array([gradient(float(one)) for one in z])

    assert float(Falling().best_shift(np.zeros(1), np.zeros(1))) == pytest.approx(root)


@pytest.mark.parametrize("loss", [Squared(), Huber()])
def test_regression_refuses_words(loss: Loss) -> None:
    with pytest.raises(DataError, match="not numbers"):
        loss.encode(np.array(["low", "high"]))


@given(points(), st.booleans())
@settings(deadline=None)
def test_the_best_shift_minimises_the_loss_among_constants(
    point: tuple[Loss, Any, Any, Any], weighted: bool
) -> None:
    loss, z, y, _ = point
    if isinstance(loss, Multinomial):  # there it is for z = 0
        z = np.zeros_like(z)
    weights = 1.0 + np.arange(len(z)) % 3 if weighted else np.ones(len(z))
    whole = Weighted(loss, weights) if weighted else loss
    c = whole.best_shift(z, y)
    lowest = whole.value(z + c, y)
    for step in (1e-3, 0.1, 3.0):
        for away in (-step, step):
            moved = c + away * (np.arange(c.size) == 0)
            assert whole.value(z + moved, y) >= lowest - 1e-9 * (1 + abs(lowest))


@given(points())
@settings(deadline=None)
def test_curvatures_are_the_diagonal_or_above(point: tuple[Loss, Any, Any, Any]) -> None:
    loss, z, y, _ = point
    diagonal = np.stack(
        [loss.hessian_product(z, y, unit.reshape(z.shape)).ravel() for unit in np.eye(z.size)]
    )
    assert (loss.curvatures(z, y).ravel() >= np.diag(diagonal) - 1e-12).all()


def test_a_shifted_loss_is_the_loss_at_z_plus_the_shift() -> None:
    y, z = np.array([0.0, 1.0, 1.0]), np.array([0.3, -2.0, 1.0])
    base, shifted = Logistic(), Shifted(Logistic(), np.asarray(0.7))
    assert shifted.value(z, y) == base.value(z + 0.7, y)
    np.testing.assert_array_equal(shifted.gradient(z, y), base.gradient(z + 0.7, y))
    np.testing.assert_array_equal(
        shifted.hessian_product(z, y, z), base.hessian_product(z + 0.7, y, z)
    )
    np.testing.assert_array_equal(shifted.probabilities(z), base.probabilities(z + 0.7))
    assert shifted.at(np.array([1])).value(z[:1], y[1:2]) == base.value(z[:1] + 0.7, y[1:2])


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 1.5, float("nan"), True])
def test_a_quantile_outside_0_and_1_is_refused(level: float) -> None:
    with pytest.raises(ConfigError, match="quantile"):
        Quantile(level)


@pytest.mark.parametrize("count", [0.0, 1.0, 3.0, 1e-9, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_start_of_constant_counts_predicts_them(count: float, weighted: bool) -> None:
    """Of counts that are all 0 the mean is 0, whose logarithm is none: the start is finite, and
    predicts almost 0."""
    y, weights = np.full(40, count), np.linspace(0.5, 2, 40) if weighted else None
    shift = Poisson().best_shift(np.zeros(40), y, weights)
    assert np.isfinite(shift)
    np.testing.assert_allclose(Poisson().predict(shift), count, rtol=1e-9, atol=1e-12)


def test_trees_predict_the_count_of_all_samples_with_weight() -> None:
    X = np.random.default_rng(0).standard_normal((40, 4))
    weights = np.array([0.0] + [1.0] * 39)
    for count in (0.0, 3.0):
        y = np.array([7.0] + [count] * 39)
        data = mtcd.split(X, y, 2, weights=weights)
        run = mtcd.train(
            data,
            mtcd.Trees(loss="poisson"),
            "path",
            mtcd.STCD(),
            mtcd.Stop(iterations=4),
            metrics=(),
        )
        np.testing.assert_allclose(run.predict(X), count, rtol=1e-9, atol=1e-9)


def test_a_count_of_0_is_one() -> None:
    assert Poisson().encode(np.array([0, 2]))[0].tolist() == [0.0, 2.0]
    with pytest.raises(DataError, match="-1"):
        Poisson().encode(np.array([0, -1]))


def test_negative_counts_are_refused() -> None:
    with pytest.raises(DataError, match="row 2 is -1: .*counts"):
        Poisson().encode(np.array([3, -1]))


@pytest.mark.parametrize("delta", [0.0, -1.0, float("nan")])
def test_huber_refuses_a_delta_that_is_not_positive(delta: float) -> None:
    with pytest.raises(ConfigError, match="delta"):
        Huber(delta)


@pytest.mark.parametrize("wrong", [{"l1": -1.0}, {"l2": float("nan")}, {"l2": float("inf")}])
def test_penalty_refuses_what_is_not_a_weight(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Penalty(**wrong)  # type: ignore[arg-type]


@given(st.floats(-5, 5), st.floats(0, 3), st.floats(0.01, 2))
@settings(deadline=None, max_examples=50)
def test_prox_minimises_its_definition(theta: float, l1: float, stepsize: float) -> None:
    found = np.array([theta])
    Penalty(l1=l1).prox(found, stepsize)
    brute = minimize_scalar(
        lambda u: 0.5 * (u - theta) ** 2 + stepsize * l1 * abs(u),
        bounds=(-6, 6),
        options={"xatol": 1e-9},
    )
    assert found[0] == pytest.approx(brute.x, abs=1e-5)


@pytest.mark.parametrize("shape", [(4,), (4, 3)])
def test_free_columns_are_left_alone(shape: tuple[int, ...]) -> None:
    penalty = Penalty(l1=0.5, l2=2.0, free=1)
    theta = np.full(shape, 3.0)
    width = theta[0].size
    assert penalty.value(theta) == pytest.approx(3 * width * (0.5 * 3 + 9))
    gradient = np.zeros(shape)
    penalty.add_gradient(theta, gradient)
    np.testing.assert_array_equal(gradient[:3], 6.0)
    np.testing.assert_array_equal(gradient[3], 0.0)
    penalty.prox(theta, 1.0)
    np.testing.assert_array_equal(theta[:3], 2.5)
    np.testing.assert_array_equal(theta[3], 3.0)


@given(
    st.sampled_from([Squared(), Huber(0.7), Logistic(), SquaredHinge()]),
    st.floats(-7, 3).map(lambda power: 10.0**power),
    st.integers(0, 1000),
    st.sampled_from([0.01, 1.0, 50.0]),
)
def test_the_dual_prox_solves_its_equation(loss: Loss, c: float, seed: int, size: float) -> None:
    """y = prox of c g* at v means y = l'(t) and y + c*t = v for one t: that is, y = l'((v -
    y)/c)."""
    rng = np.random.default_rng(seed)
    v, labels = size * rng.standard_normal(50), (rng.random(50) < 0.5).astype(float)
    if isinstance(loss, SquaredHinge):
        labels = 2 * labels - 1
    # forwards: any t gives a v whose solution is known
    t = size * rng.standard_normal(50) / c
    slope = loss.gradient(t, labels)
    np.testing.assert_allclose(
        loss.dual_prox(slope + c * t, labels, c), slope, rtol=1e-6, atol=1e-9
    )
    # and for any v, y is a subgradient's value: prox is firmly nonexpansive
    y, other = loss.dual_prox(v, labels, c), loss.dual_prox(v + 0.1, labels, c)
    assert ((other - y >= -1e-12) & (other - y <= 0.1 + 1e-12)).all()
