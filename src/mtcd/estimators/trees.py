"""Boosted trees on vertically split columns, with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mtcd.arrays import Array
from mtcd.data.sparse import is_sparse
from mtcd.estimators.base import SplitEstimator, checked_weights, value_errors
from mtcd.estimators.classes import SplitClassifier
from mtcd.families.additive import Trees
from mtcd.families.trained import TrainedAdditive
from mtcd.methods.method import Method
from mtcd.methods.mtcd import STCD
from mtcd.run import Run
from mtcd.stop import Stop


class TreesEstimator(SplitEstimator):
    """Trees of vertically split columns. See :class:`TreesClassifier` and :class:`TreesRegressor`."""

    run_: Run | None
    n_iter_: int
    constant_: Array
    places_: tuple[NDArray[np.intp], ...]

    def __init__(
        self,
        *,
        blocks: int | Mapping[str, Any] | None = None,
        network: Any = "complete",
        method: Method | None = None,
        loss: str | None = None,
        delta: float = 1.0,
        quantile: float = 0.5,
        max_iter: int = 100,
        learning_rate: float = 0.1,
        depth: int = 6,
        leaves: int = 31,
        l2: float = 1.0,
        min_samples: int = 20,
        columns: float = 1.0,
        rows: float = 1.0,
        adaptive: bool = True,
        random_state: Any = None,
    ) -> None:
        self.blocks, self.network, self.method, self.max_iter = blocks, network, method, max_iter
        self.loss, self.delta, self.quantile = loss, delta, quantile
        self.learning_rate, self.depth, self.leaves, self.l2 = learning_rate, depth, leaves, l2
        self.min_samples, self.columns, self.rows, self.random_state = min_samples, columns, rows, random_state
        self.adaptive = adaptive

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _validated(self, X: Any, y: Any = "no_validation", **more: Any) -> Any:
        reset = not isinstance(y, str)
        checks = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
        return validate_data(self, X, y, reset=reset, **checks, **more)

    def _model(self, loss: str) -> Trees:
        """The model with these settings; raises ValueErrors."""
        shape = ("learning_rate", "depth", "leaves", "l2", "min_samples", "columns", "rows", "adaptive")
        with value_errors():
            return Trees(loss, **{name: getattr(self, name) for name in ("delta", "quantile", *shape)})

    def _method(self) -> Method:
        return self.method or STCD(walk="tour")

    def _fit(self, X: Any, labels: NDArray[Any], loss: str, weights: Array | None) -> Run:
        """Train on validated X, and set what predictions need."""
        gaps = not is_sparse(X) and bool(np.isnan(X).any())
        model = self._model(loss)
        with value_errors():
            data = self._split(X, labels, weights, "trees" if gaps else None)
            run = self._train(data, model, Stop(iterations=self.max_iter))
        trained = run.trained()
        assert isinstance(trained, TrainedAdditive)
        self.run_, self.n_iter_, self.constant_ = run, run.final.iteration, trained.constant
        self.places_ = tuple(np.asarray(places, dtype=int) for places in data.positions)
        return run

    def _decision(self, X: Any) -> Array:
        """The constant plus the margins of all parties."""
        check_is_fitted(self)
        X = self._validated(X)
        if self.run_ is None:
            return np.full(X.shape[0], float(self.constant_))
        trained = self.run_.trained()
        assert isinstance(trained, TrainedAdditive)
        parts = zip(trained.parts, self.places_, strict=True)
        return np.asarray(self.constant_ + sum(part.margins(X[:, own]) for part, own in parts))


class TreesClassifier(SplitClassifier, TreesEstimator):
    """Boosted trees for two or more classes on vertically split columns; NaN is a missing value.

    ``blocks``, ``network`` and ``method`` as in :class:`MTCDRegressor` (by default a token on a tour), the settings of
    trees as in :class:`Trees`. A token makes ``max_iter`` hops, and a visit grows ``method.local_updates`` trees,
    or as many as pay off (``adaptive``).

    >>> import numpy as np
    >>> X = np.arange(60.0)[:, None] % 30
    >>> TreesClassifier(min_samples=5).fit(X, np.where(X[:, 0] < 10, "low", "high")).predict([[3.0]])
    array(['low'], dtype='<U4')
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on columns X (n, d), classes y (n,) and weights of the samples (n,), all 1 unless given."""
        X, y = self._validated(X, y)
        check_classification_targets(y)
        X, y, weights = counted(X, y, checked_weights(sample_weight, X))
        self.classes_, numbers = np.unique(y, return_inverse=True)
        run = self._fit(X, numbers.astype(float), self._kind(), weights)
        trained = run.trained()
        assert isinstance(trained, TrainedAdditive)
        self.run_ = replace(run, model=replace(trained, classes=tuple(self.classes_.tolist())))
        return self


class TreesRegressor(RegressorMixin, TreesEstimator):  # type: ignore[misc]
    """Boosted trees for numbers on vertically split columns; NaN is a missing value.

    ``loss``: 'squared', 'huber' (with ``delta``), 'quantile' (with ``quantile``) or 'poisson'. The other parameters are
    those of :class:`TreesClassifier`.
    """

    losses = ("squared", "huber", "quantile", "poisson")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on columns X (n, d), targets y (n,) and weights of the samples (n,), all 1 unless given."""
        X, y = self._validated(X, y, y_numeric=True)
        X, y, weights = counted(X, np.asarray(y, dtype=float), checked_weights(sample_weight, X))
        loss = self._loss()
        if (y == y[0]).all():  # nothing to learn, which mtcd.train refuses
            start = np.log(y[0]) if loss == "poisson" and y[0] > 0 else y[0]
            self.run_, self.n_iter_, self.constant_ = None, 1, np.asarray(start)
            return self
        self._fit(X, y, loss, weights)
        return self

    def predict(self, X: Any) -> Array:
        """The predicted targets."""
        scores = self._decision(X)
        return self._model(self._loss()).plain_loss.predict(scores)


def counted(X: Any, y: NDArray[Any], weights: Array | None) -> tuple[Any, NDArray[Any], Array | None]:
    """Without the samples of weight 0, which would count in ``min_samples``."""
    if weights is None or weights.all():
        return X, y, weights
    rows = np.flatnonzero(weights)
    return X[rows], y[rows], weights[rows]
