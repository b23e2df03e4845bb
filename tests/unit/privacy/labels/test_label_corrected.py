"""Losses of randomised labels: in expectation over all draws, enumerated, those of the true
labels."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError, DataError
from mtcd.models.losses import LOSSES, Loss
from mtcd.privacy.labels.corrected import (
    CorrectedLogistic,
    CorrectedMultinomial,
    check_shares,
)
from mtcd.privacy.labels.settings import LabelDP


def weight_of(drawn: tuple[int, ...], labels: np.ndarray, epsilon: float, classes: int) -> float:
    """The probability of these responses, from the definition."""
    total = np.exp(epsilon) + classes - 1
    kept = np.exp(epsilon) / total
    others = 1 / total
    return float(np.prod([kept if a == b else others for a, b in zip(drawn, labels, strict=True)]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_value_and_gradient_are_unbiased(classes: int, epsilon: float) -> None:
    plain: Loss = LOSSES["logistic" if classes == 2 else "multinomial"]()
    kind = CorrectedLogistic if classes == 2 else CorrectedMultinomial
    corrected = kind(epsilon=epsilon)
    labels = np.array([0, 1, 1, 0, 1]) if classes == 2 else np.array([0, 1, 2, 2, 0])
    rng = np.random.default_rng(0)
    z = rng.standard_normal(5 if classes == 2 else (5, classes))

    true, _ = plain.encode(labels)
    value, gradient, weight = 0.0, np.zeros(z.shape), 0.0
    for drawn in itertools.product(range(classes), repeat=5):
        chance = weight_of(drawn, labels, epsilon, classes)
        # an encoding needs all classes: those that are missing are added, and left out again
        padded = np.array([*drawn, *range(classes)])
        encoded = corrected.encode(padded)[0][:5]
        value += chance * corrected.value(z, encoded)
        gradient += chance * corrected.gradient(z, encoded)
        weight += chance

    assert weight == pytest.approx(1.0)
    assert value == pytest.approx(plain.value(z, true), rel=1e-9)
    assert gradient == pytest.approx(plain.gradient(z, true), rel=1e-9)


def test_second_derivatives_do_not_depend_on_the_draws() -> None:
    corrected, plain = CorrectedLogistic(epsilon=1.0), LOSSES["logistic"]()
    z = np.linspace(-2, 2, 4)
    y, _ = corrected.encode(np.array([0, 1, 1, 0]))
    true, _ = plain.encode(np.array([0, 1, 1, 0]))
    assert (corrected.curvatures(z, y) == plain.curvatures(z, true)).all()


def test_the_network_loss_is_unbiased_too() -> None:
    torch = pytest.importorskip("torch")
    from mtcd.privacy.labels.networks import CorrectedCrossEntropy

    labels = np.array([2, 0, 1])
    outputs = torch.randn(3, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    outputs.requires_grad_()
    expected = torch.nn.functional.cross_entropy(outputs, torch.as_tensor(labels))
    (slope,) = torch.autograd.grad(expected, outputs)
    loss = CorrectedCrossEntropy(1.0)
    value, gradient = 0.0, torch.zeros_like(outputs)
    for drawn in itertools.product(range(3), repeat=3):
        chance = weight_of(drawn, labels, 1.0, 3)
        found = loss(outputs, torch.tensor(drawn))
        value += chance * found.item()
        gradient += chance * torch.autograd.grad(found, outputs)[0]
    assert value == pytest.approx(expected.item(), rel=1e-9)
    assert torch.allclose(gradient, slope, atol=1e-12)
    with pytest.raises(ConfigError, match="an output for every class"):
        loss(torch.zeros(3, 1), torch.tensor([0, 1, 0]))


def test_the_first_constant_of_trees_is_that_of_the_corrected_shares() -> None:
    labels = np.array([1] * 30 + [0] * 70)
    corrected = CorrectedLogistic(epsilon=2.0)
    y, _ = corrected.encode(labels)
    shift = corrected.best_shift(np.zeros(100), y)
    assert 1 / (1 + np.exp(-shift)) == pytest.approx(y.mean(), rel=1e-9)


def test_it_stays_finite_where_no_share_is_left() -> None:
    labels = np.array([1] + [0] * 99)
    corrected = CorrectedLogistic(epsilon=0.5)
    y, _ = corrected.encode(labels)
    assert y.mean() < 0
    # half of a sample
    assert 1 / (1 + np.exp(-corrected.best_shift(np.zeros(100), y))) == pytest.approx(0.005)
    with pytest.raises(DataError, match="without an intercept"):
        CorrectedLogistic(epsilon=0.5, needs_shares=True).encode(labels)


@pytest.mark.parametrize(
    "make",
    [
        lambda noise: mtcd.Glm("huber", label_noise=noise),
        lambda noise: mtcd.Glm("squared-hinge", l2=1.0, label_noise=noise),
        lambda noise: mtcd.Trees("poisson", label_noise=noise),
        lambda noise: mtcd.Trees("quantile", label_noise=noise),
    ],
    ids=["huber", "squared-hinge", "poisson", "quantile"],
)
def test_losses_that_are_not_linear_in_the_label_are_refused_by_name(make: object) -> None:
    with pytest.raises(ConfigError, match=r"privacy\.labels: .*not linear in the label.*use logi"):
        make(LabelDP(epsilon=1.0))  # type: ignore[operator]


def test_what_else_is_refused() -> None:
    noise, values = LabelDP(epsilon=1.0), LabelDP(epsilon=1.0, range=(0, 1))
    with pytest.raises(ConfigError, match=r"l2 must be above 0.*set l2: 1"):
        mtcd.Glm("logistic", label_noise=noise)
    with pytest.raises(ConfigError, match=r"model\.parties\.a\.l2 must be above 0"):
        mtcd.Mixed("logistic", {"a": {"kind": "linear", "l2": 0}, "b": "trees"}, label_noise=noise)
    with pytest.raises(ConfigError, match=r"model\.class_weight: .* leave it out"):
        mtcd.Glm("logistic", l2=1.0, class_weight="balanced", label_noise=noise)
    with pytest.raises(ConfigError, match=r"need a range.*range: \[0, 100\]"):
        mtcd.Glm("ridge", label_noise=noise)
    with pytest.raises(ConfigError, match=r"range is for labels that are values"):
        mtcd.Glm("logistic", l2=1.0, label_noise=values)
    with pytest.raises(ConfigError, match=r"need a range"):
        noise.corrected_network_loss("squared")
    with pytest.raises(ConfigError, match=r"use cross-entropy, or squared"):
        noise.corrected_network_loss(lambda outputs, labels: None)
    assert values.corrected_network_loss(None) == "squared"


def test_the_positive_class_is_kept() -> None:
    model = SimpleNamespace(class_weight=None, l2_weight=1.0, intercept=False)
    loss = LabelDP(epsilon=1.0).corrected(LOSSES["logistic"](positive="no"), model)
    assert loss.encode(np.array(["no", "yes"]))[1] == ("yes", "no")


@pytest.mark.parametrize(
    ("encoded", "leaves"),
    [
        ([-0.5, 0.5], False),  # a share of exactly 0
        ([-0.5, 0.51], True),
        ([0.5, 1.5], False),  # of exactly 1
        ([0.49, 1.5], True),
        ([[-0.5, 1.0], [0.5, 0.0]], False),  # one class of two
    ],
)
def test_every_class_is_left_more_than_no_share_and_less_than_all(
    encoded: list[float], leaves: bool
) -> None:
    if leaves:
        check_shares(np.array(encoded), "more")
        return

    with pytest.raises(DataError, match="with more samples, or with more"):
        check_shares(np.array(encoded), "more")
