"""A classifier with the interface of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from mtcd.arrays import Array
from mtcd.estimators.base import LinearEstimator


def _has_probabilities(estimator: MTCDClassifier) -> bool:
    if estimator.loss not in (None, "logistic"):
        raise AttributeError("predict_proba needs loss='logistic'.")
    return True


class MTCDClassifier(ClassifierMixin, LinearEstimator):  # type: ignore[misc]
    """Linear classification of two or more classes on vertically split columns.

    ``loss``: 'logistic' (multinomial for more than two classes), or 'squared-hinge' for two. The other parameters and
    attributes are those of :class:`MTCDRegressor`; ``classes_`` are the classes, ``coef_`` has a row for each of them,
    or one row for two.

    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> MTCDClassifier().fit(X, ["no", "no", "yes", "yes"]).predict([[3.0, 3.0]])
    array(['yes'], dtype='<U3')
    """

    losses = ("logistic", "squared-hinge")
    classes_: NDArray[Any]

    def fit(self, X: Any, y: Any) -> Self:
        """Train on columns X (n, d) and classes y (n,)."""
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        count = len(self.classes_)
        if count < 2:
            raise ValueError(f"MTCDClassifier needs samples of at least 2 classes, but there is one class: {y[0]!r}.")
        loss = self._loss()
        if count > 2 and loss != "logistic":
            raise ValueError(f"loss={loss!r} is for two classes, but there are {count}: use 'logistic'.")
        coefficients, intercept = self._keep(X, numbers.astype(float), loss if count == 2 else "multinomial")
        self.coef_ = coefficients[None, :] if count == 2 else coefficients.T
        self.intercept_ = np.atleast_1d(intercept)
        return self

    def decision_function(self, X: Any) -> Array:
        """The score of the second of two classes, or of every class."""
        return self._decision(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted classes."""
        scores = self._decision(X)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """The probability of every class."""
        scores = self._decision(X)
        if scores.ndim == 1:
            positive = scipy.special.expit(scores)
            return np.column_stack([1.0 - positive, positive])
        return np.asarray(scipy.special.softmax(scores, axis=1))

    @available_if(_has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:
        """The logarithm of the probability of every class."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))
