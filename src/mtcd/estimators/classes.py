"""What classifiers share: scores become classes and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from mtcd.core.arrays import Array
from mtcd.estimators.base import SplitEstimator
from mtcd.models.losses import LOSSES


def _has_probabilities(estimator: Any) -> bool:
    if estimator.loss not in (None, "logistic"):
        raise AttributeError("predict_proba needs loss='logistic'.")
    return True


class SplitClassifier(ClassifierMixin, SplitEstimator):  # type: ignore[misc]
    """A classifier of vertically split columns."""

    losses = ("logistic", "squared-hinge")
    classes_: NDArray[Any]

    def _kind(self) -> str:
        """The loss for the classes that there are."""
        loss, count = self._loss(), len(self.classes_)
        if count < 2:
            name = type(self).__name__
            raise ValueError(
                f"{name} needs samples of at least 2 classes, but all that count are of one class."
            )
        if count > 2 and loss != "logistic":
            raise ValueError(
                f"loss={loss!r} is for two classes, but there are {count}: use 'logistic'."
            )
        if count > 2:
            return "multinomial"
        return loss

    def decision_function(self, X: Any) -> Array:
        """The score of the second of two classes, or of every class."""
        return self._decision(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the highest score, of every sample."""
        scores = self._decision(X)
        if scores.ndim == 1:  # two classes have one score, that of the second
            numbers = (scores > 0).astype(int)
        else:
            numbers = scores.argmax(axis=1)
        return np.asarray(self.classes_[numbers])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The probability of every class."""
        scores = self._decision(X)
        kind = "multinomial"
        if scores.ndim == 1:
            kind = "logistic"
        return LOSSES[kind]().probabilities(scores)

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of the probability of every class."""
        # the logarithm of 0 is what it is: -inf, without a warning
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))
