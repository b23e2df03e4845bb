"""A check of losses that are not ours, before the training: do value, gradient and curvature belong
together?

The derivatives are compared with finite differences at random points: near 0 and near the labels,
at distances from far below 1 to the spread of the labels. No step of a difference suits every loss,
as it has to be short for how the loss bends and long for the rounding of its value, so several are
tried: a loss is refused if no step agrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from mtcd.core.arrays import Array, all_finite
from mtcd.core.errors import ConfigError
from mtcd.core.seeding import stream
from mtcd.models.losses.loss import Loss

STEPS = (1e-4, 1e-3, 1e-5, 1e-6, 1e-7, 1e-8, 1e-2, 0.1, 1.0)
"""Steps of the differences, as shares of the size of the point; the first suits nearly all
losses."""
GRADIENT_ERROR = 1e-4
HESSIAN_ERROR = 1e-3
CURVATURE_ERROR = 1e-6
"""The relative differences from finite differences, and from ``curvature``, that are allowed."""
ROUNDING = 64 * float(np.finfo(float).eps)
"""The relative rounding error of a value or a gradient, generously."""
# of two steps: by how much less their slopes differ than they differ from the gradient
AGREEMENT = 0.1
SMALL, ROUGH_ERROR = 0.01, 0.2
"""At points of a smaller size the value may be all rounding: it may stay the same, and more error
is allowed."""
FAR = 1e6
"""Points are left out where the loss of a sample is so many times that at 0, or the square of the
labels' spread."""
FEWEST_ULPS = 1000
"""Shorter steps, in units of the last place of z, tell nothing of a second derivative."""
# towards the largest eigenvalue of the second derivative of a sample with several outputs
POWER_STEPS = 5


def check_own_loss(loss: Loss, y: Array, bounded: bool = True) -> None:
    """Refuse a loss of the user's own whose parts contradict each other.

    Parameters: the loss; the encoded labels, which z has the shape of; ``bounded``: whether the
    model relies on ``curvature`` (linear models do, trees do not).
    Raises: ``ConfigError`` if gradient or hessian_product are of another shape than z, not finite
    at z = 0, or not the derivatives of value and gradient, if ``values`` do not add up to value, or
    if a second derivative exceeds ``curvature``.
    """
    if is_built_in(loss):
        return
    # Shapes first: with other shapes the differences below would be broadcast, and may agree.
    _check_shapes(loss, y)
    with np.errstate(all="ignore"):  # far from 0 a loss may overflow: such points tell nothing
        for point in _points(loss, y):
            _check_gradient(loss, y, point)
            if loss.renews_leaves:  # its second derivatives tell nothing, and nobody uses them
                continue
            _check_hessian(loss, y, point)
            if bounded:
                _check_curvature(loss, y, point)


def is_built_in(loss: Loss) -> bool:
    """Whether the loss, without weights of samples, is one of this package."""
    plain = getattr(loss, "base", loss)
    return type(plain).__module__.startswith("mtcd.")


@dataclass(frozen=True, eq=False)
class _Point:
    """An aggregate ``z`` at which the derivatives are checked, and its ``size``, to which steps are
    relative."""

    z: Array
    size: float
    number: int

    def random(self, purpose: str) -> np.random.Generator:
        return stream(0, f"check of a loss: {purpose}", self.number)


def _points(loss: Loss, y: Array) -> Iterator[_Point]:
    """Random points of the loss's own scale: around 0 and the labels, where the loss is not
    astronomically large."""
    spread = _spread(y)
    at_zero = abs(float(loss.value(np.zeros(y.shape), y)))
    # A loss such as exp(z) is astronomical far from its labels: a difference there is all rounding.
    largest = FAR * (at_zero + len(y) * (1.0 + spread * spread))
    sizes = [0.01, spread, 3.0 * spread]
    # Otherwise 1 is near one of the sizes that are there.
    if not 0.5 < spread < 2.0:
        sizes.append(1.0)
    number = 0
    for size in sizes:
        for centre in (0.0, 1.0):
            noise = stream(0, "check of a loss: point", number).standard_normal(y.shape)
            z = centre * y + size * noise
            if abs(float(loss.value(z, y))) <= largest:
                yield _Point(z, size, number)
            number += 1


def _spread(y: Array) -> float:
    """The scale of the labels: how far they lie apart, or, if all are alike, how large they are."""
    for scale in (float(np.std(y)), float(np.abs(y).max())):
        if scale > 0 and math.isfinite(scale):
            return scale
    return 1.0


def _what(loss: Loss, part: str) -> str:
    return f"The {part} of the loss {type(loss).__name__}"


def _check_shapes(loss: Loss, y: Array) -> None:
    curvature = getattr(loss, "curvature", None)
    if not isinstance(curvature, int | float | np.number) or not 0 < curvature < math.inf:
        raise ConfigError(
            f"{_what(loss, 'curvature')} must be a number above 0, the largest second derivative "
            f"of one sample, but is {curvature!r}."
        )
    z = np.zeros(y.shape)
    for part, found in (
        ("gradient", np.asarray(loss.gradient(z, y))),
        ("hessian_product", np.asarray(loss.hessian_product(z, y, np.ones_like(z)))),
    ):
        if found.shape != z.shape:
            raise ConfigError(
                f"{_what(loss, part)} has the shape {found.shape}, but must have that of z, "
                f"{z.shape}."
            )
        if not np.isfinite(found).all():
            raise ConfigError(f"{_what(loss, part)} is not finite at z = 0: correct it.")
    value = loss.value(z, y)
    if np.ndim(value) != 0:
        raise ConfigError(
            f"{_what(loss, 'value')} has the shape {np.shape(value)}, but must be one number: the "
            f"sum over samples."
        )
    if not math.isfinite(value):
        raise ConfigError(f"{_what(loss, 'value')} is not finite at z = 0: correct it.")
    if type(loss).values is not Loss.values:
        total = float(np.sum(loss.values(z, y)))
        if abs(total - value) > GRADIENT_ERROR * abs(value) + 1e-9:
            raise ConfigError(
                f"The values of the loss {type(loss).__name__} add up to {total:.6g} at z = 0, but "
                f"its value is {value:.6g}, which must be their sum: correct one of them."
            )


def _check_gradient(loss: Loss, y: Array, point: _Point) -> None:
    """Compare the gradient with the change of the value, along a direction in which all samples
    rise."""
    z = point.z
    gradient = np.asarray(loss.gradient(point.z, y))
    if not np.isfinite(gradient).all():
        return
    # Uphill in every sample: slopes of samples then add up, and a wrong one cannot cancel another.
    direction = np.where(gradient < 0, -1.0, 1.0) * point.random("gradient").uniform(
        0.5, 1.5, z.shape
    )
    slopes: list[tuple[float, float, float]] = []
    for step in STEPS:
        ahead = z + step * point.size * direction
        behind = z - step * point.size * direction
        above = float(loss.value(ahead, y))
        below = float(loss.value(behind, y))
        if not (math.isfinite(above) and math.isfinite(below)):
            return
        # z + step - (z - step) is not exactly 2 step.
        terms = gradient * (ahead - behind)  # the difference as it was rounded
        promised = float(terms.sum())
        found = above - below
        share = ROUGH_ERROR if point.size < SMALL else GRADIENT_ERROR
        allowed = share * float(np.abs(terms).sum()) + ROUNDING * (abs(above) + abs(below))
        if abs(found - promised) <= allowed:
            # One step that agrees is enough: others may be too long or too short for this loss.
            return
        length = 2.0 * step * point.size
        slopes.append((step, found / length, promised / length))
    settled = _settled(sorted(slopes), rounds_to_zero=point.size < SMALL)
    if settled is None:
        return
    slope, promised = settled
    if slope < 0 < promised:
        raise ConfigError(f"{_what(loss, 'gradient')} does not point uphill: check the sign.")
    raise ConfigError(
        f"{_what(loss, 'gradient')} is not the derivative of its value: along a direction where "
        f"the gradient promises a slope of {promised:.4g}, the value rises by {slope:.4g} (finite "
        f"differences at a random point of size {point.size:.3g}). Correct gradient, or value."
    )


def _settled(
    slopes: list[tuple[float, float, float]], rounds_to_zero: bool
) -> tuple[float, float] | None:
    """The slope of the value on which two steps, one after the other, agree, and the promised one.

    None if all differ, by as much as they differ from what the gradient promised: then the value is
    too rough there.
    """
    # Steps next to each other that agree have found the slope, and it is not the promised one.
    for (_, one, promised), (_, other, _) in pairwise(slopes):
        if rounds_to_zero and one == other == 0:
            continue
        if abs(one - other) <= AGREEMENT * abs(one - promised):
            return one, promised
    return None


def _check_hessian(loss: Loss, y: Array, point: _Point) -> None:
    """Compare hessian_product with the change of the gradient, ahead and behind: the second
    derivative may jump."""
    z = point.z
    direction = point.random("second derivative").standard_normal(z.shape)
    here = np.asarray(loss.gradient(z, y))
    product = np.asarray(loss.hessian_product(z, y, direction))
    if not all_finite(here, product):
        return
    wrong = np.ones(z.shape, dtype=bool)
    shown = (0.0, 0.0)
    for step in STEPS:
        length = step * point.size
        ahead = z + length * direction
        behind = z - length * direction
        after = np.asarray(loss.gradient(ahead, y))
        before = np.asarray(loss.gradient(behind, y))
        if not all_finite(after, before):
            return
        # differences are relative to the steps as they were rounded
        # A kink has two slopes, and any number between them may be called the second derivative.
        rise = _quotient(after - here, ahead - z, direction)
        fall = _quotient(here - before, z - behind, direction)
        largest = np.maximum(np.maximum(np.abs(rise), np.abs(fall)), np.abs(product))
        floor = ROUNDING * (np.abs(here).max() / length + largest.max())
        allowed = HESSIAN_ERROR * largest + floor
        outside = np.maximum(np.minimum(rise, fall) - product, product - np.maximum(rise, fall))
        # Steps of a few units in the last place say nothing, so they count as agreement.
        outside[
            np.minimum(np.abs(ahead - z), np.abs(z - behind)) < FEWEST_ULPS * np.spacing(np.abs(z))
        ] = 0.0
        wrong &= outside > allowed
        if not wrong.any():
            return
        worst = np.unravel_index(np.argmax(np.where(wrong, outside, -np.inf)), z.shape)
        shown = (
            float(product[worst] / direction[worst]),
            float(0.5 * (rise + fall)[worst] / direction[worst]),
        )
    raise ConfigError(
        f"{_what(loss, 'hessian_product')} is not the derivative of its gradient: for one sample "
        f"it is {shown[0]:.4g} per unit of v, where the gradient changes by {shown[1]:.4g} (finite "
        f"differences at a random point of size {point.size:.3g}). Correct hessian_product, or "
        "gradient."
    )


def _quotient(change: Array, step: Array, direction: Array) -> Array:
    """The change for the whole direction, from that for a step along it."""
    exact = np.where(step == 0, 1.0, step)
    return np.where(step == 0, 0.0, change * (direction / exact))


def _check_curvature(loss: Loss, y: Array, point: _Point) -> None:
    """Refuse a second derivative of one sample above ``curvature``."""
    z = point.z
    v = point.random("curvature").standard_normal(z.shape)
    # Power iteration, for losses with several outputs: the largest curvature lies in no axis.
    for _ in range(POWER_STEPS if z.ndim > 1 else 0):
        product = np.asarray(loss.hessian_product(z, y, v))
        sizes = np.sqrt(_by_sample(product * product))
        v = np.divide(product, sizes, out=v, where=sizes > 0)
    quotients = _by_sample(v * np.asarray(loss.hessian_product(z, y, v))) / _by_sample(v * v)
    if not np.isfinite(quotients).all():
        return
    sample = int(np.argmax(quotients))
    alone = np.zeros_like(z)
    alone[sample] = v[sample]  # also right for a loss that is no sum over samples
    curved = float(np.vdot(alone, loss.hessian_product(z, y, alone)) / np.vdot(alone, alone))
    if curved > loss.curvature * (1.0 + CURVATURE_ERROR):
        raise ConfigError(
            f"{_what(loss, 'curvature')} is {loss.curvature:.4g}, but the second derivative of one "
            f"sample reaches {curved:.4g}: steps would be too long. Set curvature to the largest "
            "second derivative, for any z."
        )


def _by_sample(values: Array) -> Array:
    """The sums over the outputs of each sample, shaped to broadcast against z."""
    return values if values.ndim == 1 else values.sum(axis=1, keepdims=True)
