"""A loss with the weights of its samples, where these are given: what models ask of the feature
that has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, cast

from mtcd.core import features
from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.models.losses import Labels, Loss
from mtcd.models.metrics import class_numbers

ClassWeight: TypeAlias = str | Mapping[Any, float]
"""'balanced', or a weight for each class; classes that are not named have weight 1."""

WEIGHTS = "mtcd.sample_weights"
"""The group in which a feature names ``check`` of class weights, ``classes``, which makes weights
of samples from them, and ``loss``, which multiplies a loss by them."""


def check_class_weight(given: ClassWeight) -> None:
    """Reject anything but 'balanced' and a mapping from classes to numbers of 0 or more.

    Parameters
    ----------
    given
        The class weights.
    """
    _part("check")(given)


def loss_on(
    loss: Loss,
    name: str,
    labels: Labels,
    weights: Array | None = None,
    class_weight: ClassWeight | None = None,
) -> tuple[Loss, Array, tuple[str | float, ...]]:
    """The loss on these samples.

    Parameters
    ----------
    loss
        The loss without weights.
    name
        How the user calls it, for errors.
    labels
        The labels as given.
    weights
        A weight for every sample.
    class_weight
        The weights of classes, which are multiplied with those of samples.

    Returns
    -------
    loss : Loss
        The loss with all weights.
    encoded : array
        The labels in the form that the loss takes.
    classes : tuple
        The classes in the order of their numbers; empty in regression.

    Examples
    --------
    >>> import numpy as np
    >>> from mtcd.models.losses.squared import Squared
    >>> loss, y, _ = loss_on(Squared(), "linear", np.array([1.0, 3.0]), np.array([1.0, 2.0]))
    >>> loss.value(np.zeros(2), y)
    9.5
    """
    # Before weights: which classes there are does not depend on them, and the weights of classes
    # need their numbers.
    encoded, classes = loss.encode(labels)
    loss.check_classes(classes, len(labels))
    if class_weight is not None:
        if not classes:
            raise ConfigError(
                f"model.class_weight is for classes, and {name} predicts a number: leave it out."
            )
        numbers = class_numbers(labels, classes)
        weights = _part("classes")(class_weight, classes, numbers, weights)

    # A loss without weights stays as it is, and with it the faster steps that only plain losses
    # have.
    if weights is None:
        return loss, encoded, classes
    return _part("loss")(loss, weights), encoded, classes


def _part(name: str) -> Callable[..., Any]:
    """A part of the feature; an error where it is not installed."""
    # Asked by name when it is needed: models must not import the feature, which can be deleted.
    home = features.parts(WEIGHTS).get(name)
    if home is None:
        raise ConfigError(
            "This installation of mtcd has no weights of samples or classes: leave them out "
            "(data.weight, model.class_weight)."
        )
    return cast(Callable[..., Any], features.load(home))
