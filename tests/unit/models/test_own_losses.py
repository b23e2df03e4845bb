"""Losses of a user's own: what is checked before the training, negative optima, and what a wrong
one gives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.models.losses import LOSSES, Loss, own
from mtcd.models.losses.own import check_own_loss
from mtcd.models.sample_weights.weighted import Weighted


class LogCosh(Loss):
    """l = log cosh((z - y) / scale) scale^2 - offset: positive or negative."""

    curvature = 1.0
    scale = 1.0
    offset = 0.0

    def value(self, z: Any, y: Any) -> float:
        return float(self.values(z, y).sum())

    def values(self, z: Any, y: Any) -> Any:
        r = np.abs(z - y) / self.scale
        return self.scale**2 * (r + np.log1p(np.exp(-2 * r)) - np.log(2)) - self.offset

    def gradient(self, z: Any, y: Any) -> Any:
        return self.scale * np.tanh((z - y) / self.scale)

    def hessian_product(self, z: Any, y: Any, v: Any) -> Any:
        return (1 - np.tanh((z - y) / self.scale) ** 2) * v


class FromZero(Loss):
    """l = z^2/2 - y z: least squares without the constant, 0 at z = 0 and negative at the
    optimum."""

    curvature = 1.0

    def value(self, z: Any, y: Any) -> float:
        return float((0.5 * z * z - y * z).sum())

    def gradient(self, z: Any, y: Any) -> Any:
        return z - y

    def hessian_product(self, z: Any, y: Any, v: Any) -> Any:
        return v


def changed(**parts: Any) -> Loss:
    """A loss with other parts than those of LogCosh."""
    return type("Changed", (LogCosh,), parts)()  # type: ignore[no-any-return]


def tanh(z: Any, y: Any) -> Any:
    return np.tanh(z - y)


WRONG = {
    "half": (
        {"gradient": lambda _, z, y: 0.5 * tanh(z, y)},
        "gradient .* is not the derivative of its value",
    ),
    "a hundredth": (
        {"gradient": lambda _, z, y: 1.01 * tanh(z, y)},
        "gradient .* is not the derivative",
    ),
    "mean": (
        {"gradient": lambda _, z, y: tanh(z, y) / len(y)},
        "gradient .* is not the derivative",
    ),
    "far": (
        {"gradient": lambda _, z, y: tanh(z, y) * np.where(abs(z - y) > 2, 0.9, 1)},
        "gradient .* is not the",
    ),
    "last": (
        {"gradient": lambda _, z, y: tanh(z, y) * (np.arange(len(y)) < len(y) - 1)},
        "gradient .* is not the",
    ),
    "sign": ({"gradient": lambda _, z, y: -tanh(z, y)}, "does not point uphill: check the sign"),
    "shape": (
        {"gradient": lambda _, z, y: tanh(z, y)[:3]},
        r"has the shape \(3,\), but must have that of z, \(50,\)",
    ),
    "nan": ({"gradient": lambda _, z, y: tanh(z, y) * np.nan}, "gradient .* is not finite"),
    "hessian": (
        {"hessian_product": lambda _, z, y, v: v / 2},
        "hessian_product .* is not the derivative of its grad",
    ),
    "curvature": (
        {"curvature": 0.9},
        "curvature of the loss Changed is 0.9, but the second derivative .* reaches",
    ),
    "no curvature": ({"curvature": 0}, "curvature .* must be a number above 0"),
    "endless curvature": ({"curvature": math.inf}, "curvature .* must be a number above 0"),
    "curvature of a word": ({"curvature": "1"}, "curvature .* must be a number above 0"),
    "endless value": ({"value": lambda _, z, y: math.inf}, "value .* is not finite at z = 0"),
    "hessian shape": (
        {"hessian_product": lambda _, z, y, v: v[:3]},
        r"hessian_product .* has the shape \(3,\)",
    ),
    # no slope is not the wrong sign
    "flat value": (
        {
            "value": lambda _, z, y: 1.0,
            "values": Loss.values,
            "gradient": lambda _, z, y: 0 * z + 1,
        },
        "gradient .* is not the derivative",
    ),
    "flat gradient": (
        {
            "value": lambda _, z, y: -float(z.sum()),
            "values": Loss.values,
            "gradient": lambda _, z, y: 0 * z,
        },
        "gradient .* is not the derivative",
    ),
    "values": (
        {"values": lambda _, z, y: 0 * z, "value": lambda _, z, y: LogCosh().value(z, y)},
        "add up to 0 at",
    ),
    "vector": (
        {"value": lambda _, z, y: (z - y) ** 2},
        r"value .* has the shape \(50,\), but must be one number",
    ),
}


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("name", WRONG)
def test_a_loss_that_contradicts_itself_is_refused(name: str, scale: float) -> None:
    parts, words = WRONG[name]
    y = scale * (1 + np.random.default_rng(3).standard_normal(50))
    with pytest.raises(ConfigError, match=f"(?s){words}"):
        check_own_loss(changed(**parts), y)


def linear_near_0(slope: float, flat: bool) -> Loss:
    """|z - y|, with another gradient where z is near 0; or also flat there."""

    def value(_: Any, z: Any, y: Any) -> float:
        size = np.abs(z - y)
        return float(np.where(flat & (np.abs(z) < 0.1), np.abs(y), size).sum())

    def gradient(_: Any, z: Any, y: Any) -> Any:
        return np.sign(z - y) * np.where(np.abs(z) < 0.1, slope, 1.0)

    def product(_: Any, z: Any, y: Any, v: Any) -> Any:
        return 0 * v

    parts = {"value": value, "gradient": gradient, "hessian_product": product}
    return changed(values=Loss.values, **parts)


@pytest.mark.parametrize(("slope", "flat"), [(0.9, False), (1.0, True)])
def test_what_is_wrong_near_0_alone_is_found_at_the_smallest_points(
    slope: float, flat: bool
) -> None:
    """All other points are as far from 0 as the labels."""
    y = 1000.0 + np.arange(5.0)
    y[0] = -3000.0
    with pytest.raises(ConfigError, match="gradient .* is not the derivative"):
        check_own_loss(linear_near_0(slope, flat), y)
    check_own_loss(linear_near_0(1.0, flat=False), y)


def test_a_loss_that_is_0_everywhere_contradicts_nothing() -> None:
    nothing = {"gradient": lambda _, z, y: 0 * z, "hessian_product": lambda _, z, y, v: 0 * v}
    loss = changed(value=lambda _, z, y: 0.0, values=lambda _, z, y: 0 * z, **nothing)
    check_own_loss(loss, np.arange(5.0))


@pytest.mark.parametrize(
    ("labels", "spread"), [([0.0, 0.0], 1.0), ([-5.0, -5.0], 5.0), ([1.0, 5.0], 2.0)]
)
def test_the_scale_of_labels(labels: list[float], spread: float) -> None:
    assert own._spread(np.array(labels)) == spread


def test_a_sample_without_curvature_does_not_hide_that_of_others() -> None:
    """Of two outputs; the first sample does not count."""
    weights = np.array([[0.0], [1.0], [1.0]])

    def value(_: Any, z: Any, y: Any) -> float:
        return float((weights * (z - y) ** 2).sum() / 2)

    parts = {
        "value": value,
        "values": Loss.values,
        "gradient": lambda _, z, y: weights * (z - y),
        "hessian_product": lambda _, z, y, v: weights * v,
    }
    y = np.arange(6.0).reshape(3, 2)
    check_own_loss(changed(**parts), y)
    with pytest.raises(ConfigError, match=r"curvature of the loss Changed is 0\.5"):
        check_own_loss(changed(**parts, curvature=0.5), y)


def test_the_slope_is_that_of_steps_next_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two short steps agree on it, and a long one does not, in whatever order they were tried."""
    monkeypatch.setattr(own, "STEPS", (1e-3, 1.0, 1e-2))
    loss = changed(
        value=lambda _, z, y: float(np.exp(z).sum()), gradient=lambda _, z, y: 0.5 * np.exp(z)
    )
    point = own._Point(np.zeros(4), 1.0, 0)
    with pytest.raises(ConfigError, match="gradient .* is not the derivative"):
        own._check_gradient(loss, np.zeros(4), point)


@pytest.mark.parametrize("samples", [1, 2, 400])
@pytest.mark.parametrize("spread", [1e-6, 1e-3, 1.0, 1e3, 1e6])
def test_right_losses_pass_whatever_the_sizes_of_loss_and_labels(
    samples: int, spread: float
) -> None:
    y = spread * np.random.default_rng(samples).standard_normal(samples)
    for scale in (1e-3, 1.0, 100.0):
        check_own_loss(changed(scale=scale), y)
        check_own_loss(changed(scale=scale, offset=3.0), y)
    check_own_loss(FromZero(), y)


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("spread", [1e-6, 1.0, 1e5])
def test_built_in_losses_would_pass(
    monkeypatch: pytest.MonkeyPatch, name: str, spread: float
) -> None:
    monkeypatch.setattr("mtcd.models.losses.own.is_built_in", lambda _: False)
    loss, rng = LOSSES[name](), np.random.default_rng(0)
    labels: Any = spread * rng.standard_normal(90)
    if name in ("logistic", "squared-hinge", "multinomial"):
        labels = rng.integers(0, 4 if name == "multinomial" else 2, 90)
    if name == "poisson":
        labels = rng.poisson(max(spread, 1.0), 90)
    check_own_loss(loss, loss.encode(np.asarray(labels))[0], bounded=not loss.not_linear)


def test_a_wrong_derivative_of_several_outputs_is_refused() -> None:
    multinomial = LOSSES["multinomial"]

    def reversed_product(self: Any, z: Any, y: Any, v: Any) -> Any:
        return multinomial.hessian_product(self, z, y, v)[:, ::-1]

    def made(**parts: Any) -> Any:
        return type("Own", (multinomial,), {"__module__": "elsewhere", **parts})()

    y = np.eye(3)[np.random.default_rng(0).integers(0, 3, 60)]
    check_own_loss(made(), y)
    with pytest.raises(ConfigError, match="hessian_product"):
        check_own_loss(made(hessian_product=reversed_product), y)
    with pytest.raises(ConfigError, match=r"curvature of the loss Own is 0\.3"):
        check_own_loss(made(curvature=0.3), y)


def test_trees_check_the_gradient_but_rely_on_no_curvature(named: None) -> None:
    data = mtcd.synthetic("ridge", samples=60, features=4, clients=2, seed=0)
    LOSSES.register("own-flat", type(changed(curvature=0.01)))
    LOSSES.register("own-half", type(changed(gradient=lambda _, z, y: 0.5 * tanh(z, y))))
    assert mtcd.train(
        data, mtcd.Trees("own-flat", min_samples=5), "path", None, mtcd.Stop(iterations=2)
    ).model
    with pytest.raises(ConfigError, match="not the derivative of its value"):
        mtcd.train(
            data, mtcd.Trees("own-half", min_samples=5), "path", None, mtcd.Stop(iterations=2)
        )


@pytest.fixture
def named() -> Iterator[None]:
    """Losses under names, which are free again afterwards."""
    before = set(LOSSES._classes)
    LOSSES.register("own-negative", type(changed(offset=3.0)))
    LOSSES.register("own-from-zero", FromZero)
    yield
    for name in set(LOSSES._classes) - before:
        del LOSSES._classes[name]


METHODS = [
    None,
    mtcd.STCD(5),
    mtcd.SVFL(local_updates=5),
    mtcd.MTCD(tokens=2, hops=4, combine="optimal"),
]


@pytest.mark.parametrize("l1", [0.0, 2.0])
@pytest.mark.parametrize("method", METHODS, ids=lambda m: "default" if m is None else m.describe())
def test_a_gap_to_a_negative_optimum_is_reached(named: None, method: Any, l1: float) -> None:
    data = mtcd.synthetic("ridge", samples=80, features=8, clients=4, seed=0)
    stop = mtcd.Stop(gap=1e-8, iterations=5000)
    run = mtcd.train(data, mtcd.Glm("own-from-zero", l1=l1, l2=1.0), "cycle", method, stop)
    ridge = mtcd.train(
        data,
        mtcd.Glm("ridge", l1=l1, alpha=1.0),
        "cycle",
        None,
        mtcd.Stop(gap=1e-13, iterations=5000),
    )
    constant = 0.5 * float(np.square(data.labels).sum())
    best = ridge.final.objective - constant
    assert run.status == "converged"
    assert best < 0 < run.gap <= 1e-8
    assert run.gap == pytest.approx((run.final.objective - best) / abs(best), abs=1e-10)
    gaps = [row.gap for row in run.history.rows]
    assert gaps[0] == pytest.approx(1.0), "f(0) is 0"
    np.testing.assert_allclose(run.coefficients, ridge.coefficients, atol=1e-2)


def test_a_warm_start_from_a_negative_objective_is_no_divergence(named: None) -> None:
    data = mtcd.synthetic("ridge", samples=80, features=8, clients=4, seed=0)
    model, stop = mtcd.Glm("own-negative", l2=1.0), mtcd.Stop(iterations=20)
    first = mtcd.train(data, model, "cycle", mtcd.STCD(5), stop)
    assert first.final.objective < 0
    # with a stronger penalty, the end is above the start, but below f(0)
    strong = mtcd.Glm("own-negative", l2=1000.0)
    assert mtcd.train(data, strong, "cycle", mtcd.STCD(5), stop, start=first).status == "iterations"


@pytest.mark.parametrize("unchecked", ["mtcd.models.glm.model.check_own_loss"])
def test_a_model_below_the_optimum_is_an_error_of_the_loss(
    named: None, monkeypatch: pytest.MonkeyPatch, unchecked: str
) -> None:
    """What no check finds before: a value that falls beside the derivatives."""
    monkeypatch.setattr(unchecked, lambda *given, **settings: None)
    monkeypatch.setattr("mtcd.models.glm.training.optimum", lambda *given: _Best(-50.0))
    data = mtcd.synthetic("ridge", samples=80, features=8, clients=4, seed=0)
    with pytest.raises(MtcdError, match="is below the optimum of -50 .* correct the loss"):
        mtcd.train(
            data,
            mtcd.Glm("own-negative", l2=1.0),
            "cycle",
            None,
            mtcd.Stop(gap=1e-6, iterations=100),
        )


class _Best:
    def __init__(self, value: float) -> None:
        self.value = value


def test_the_optimum_of_an_own_loss_is_not_cached(
    named: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setenv("MTCD_CACHE", str(tmp_path))
    data = mtcd.synthetic("ridge", samples=30, features=4, clients=2, seed=0)
    weighted = mtcd.split(data.blocks[0], data.labels, clients=2, weights=np.arange(30.0))
    for given in (data, weighted):
        for kind in ("own-negative", "ridge"):
            mtcd.train(
                given, mtcd.Glm(kind, l2=1.0), "path", None, mtcd.Stop(gap=1e-3, iterations=100)
            )
    assert len(list(tmp_path.iterdir())) == 2, "those of ridge"
    assert not Weighted(FromZero(), np.ones(2)).gives_probabilities


@pytest.mark.parametrize("method", [mtcd.STCD(5), mtcd.SVFL(local_updates=30, stepsize=3.0)])
def test_what_diverges_with_too_small_a_curvature_names_it(
    named: None, monkeypatch: pytest.MonkeyPatch, method: Any
) -> None:
    monkeypatch.setattr("mtcd.models.glm.model.check_own_loss", lambda *given, **settings: None)
    LOSSES.register("own-flat", type(changed(curvature=0.001)))
    data = mtcd.synthetic("ridge", samples=80, features=8, clients=4, seed=0)
    run = mtcd.train(
        data, mtcd.Glm("own-flat", l2=0.01), "cycle", method, mtcd.Stop(iterations=200)
    )
    assert run.status == "diverged"
    within = "The curvature of the loss Changed, 0.001, may be too small" in run.message
    said_too_large = "which is too large" in run.message
    assert within != said_too_large
    assert "guaranteed" not in run.message or said_too_large
    assert within == (method.stepsize == "auto")
    assert math.isfinite(run.history.rows[0].objective)
