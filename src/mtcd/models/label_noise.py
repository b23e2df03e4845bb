"""Labels that had noise added before the training, which the loss corrects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Protocol

import numpy as np

from mtcd.models.losses import Labels, Loss

FIELD = "label_noise"
"""The field of a model that holds the noise: it is of a training, and not stored with the model."""


class LabelNoise(Protocol):
    """How the labels of a training were changed, and what makes up for it in the loss."""

    def corrected(self, loss: Loss, model: object) -> Loss:
        """The loss whose expectation over the noise is that of the true labels.

        Parameters
        ----------
        loss
            The loss of the model, without weights.
        model
            The model, whose settings are checked.

        Raises
        ------
        ConfigError
            If the loss or the model cannot be corrected, with what to do.
        """

    def corrected_network_loss(self, loss: object) -> Any:
        """The same for the loss of a split network.

        Parameters
        ----------
        loss
            Its name, None for the one that the labels ask for, or a callable.
        """

    def as_known(self, labels: Labels) -> Labels:
        """Labels with noise as metrics take them: classes or values."""


def with_noise(model: Any, noise: LabelNoise | None) -> Any:
    """The model, corrected for the noise of its labels; as it is where there is none."""
    return model if noise is None else replace(model, label_noise=noise)


def counted(labels: Labels, classes: Sequence[str | float]) -> Labels:
    """True labels as the noise counts them: those that are none of the classes are the first.

    Parameters
    ----------
    labels
        The labels as they were.
    classes
        Those of the model, in sorted order; none of a model that predicts values.

    Examples
    --------
    >>> counted(np.array([0, 1, 7]), (0.0, 1.0))
    array([0., 1., 0.])
    """
    if not len(classes):
        return labels
    declared = np.asarray(classes)
    return np.where(np.isin(labels, declared), labels, declared[0])


def settings_to_store(model: Any) -> dict[str, Any]:
    """The settings of a model by name, from which it can be made again."""
    # The noise is a secret of the training, and a model that predicts has no use for it.
    settings = {}
    for one in fields(model):
        if one.init and one.name != FIELD:
            settings[one.name] = getattr(model, one.name)
    return settings
