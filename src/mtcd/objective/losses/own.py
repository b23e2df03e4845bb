"""A check of losses that are not ours, before the training."""

from __future__ import annotations

import numpy as np

from mtcd.arrays import Array
from mtcd.errors import ConfigError
from mtcd.objective.losses.loss import Loss


def check_own_loss(loss: Loss, y: Array, outputs: int) -> None:
    """Refuse a gradient of another shape than z, one that is not finite, or along which the loss falls."""
    if type(loss).__module__.startswith("mtcd."):
        return
    z = np.zeros(len(y) if outputs == 1 else (len(y), outputs))
    gradient, what = np.asarray(loss.gradient(z, y)), f"The gradient of the loss {type(loss).__name__}"
    if gradient.shape != z.shape:
        raise ConfigError(f"{what} has the shape {gradient.shape}, but must have that of z, {z.shape}.")
    if not np.isfinite(gradient).all():
        raise ConfigError(f"{what} is not finite at z = 0: correct it.")
    step = 1e-3 * gradient / max(float(np.abs(gradient).max()), 1e-300)
    if loss.value(z + step, y) < loss.value(z - step, y):
        raise ConfigError(f"{what} does not point uphill: check the sign.")
