"""Boosted trees on vertically split columns, with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mtcd.arrays import Array
from mtcd.data.sparse import is_sparse
from mtcd.data.vertical import split
from mtcd.errors import MtcdError
from mtcd.estimators.base import DEFAULT_CLIENTS
from mtcd.families.additive import Trees
from mtcd.families.trained import TrainedAdditive
from mtcd.methods.method import Method
from mtcd.methods.mtcd import STCD
from mtcd.run import Run
from mtcd.stop import Stop
from mtcd.training import train


class TreesEstimator(BaseEstimator):  # type: ignore[misc]
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
        max_iter: int = 100,
        learning_rate: float = 0.1,
        depth: int = 6,
        leaves: int = 31,
        l2: float = 1.0,
        min_samples: int = 20,
        columns: float = 1.0,
        rows: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.blocks, self.network, self.method, self.max_iter = blocks, network, method, max_iter
        self.learning_rate, self.depth, self.leaves, self.l2 = learning_rate, depth, leaves, l2
        self.min_samples, self.columns, self.rows, self.random_state = min_samples, columns, rows, random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def _validated(self, X: Any, y: Any = "no_validation", **more: Any) -> Any:
        reset = not isinstance(y, str)
        checks = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
        return validate_data(self, X, y, reset=reset, **checks, **more)

    def _fit(self, X: Any, labels: NDArray[Any], loss: str, **settings: Any) -> Run:
        """Train on validated X, and set what predictions need."""
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else None
        if seed is None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        names = ("learning_rate", "depth", "leaves", "l2", "min_samples", "columns", "rows")
        clients: Any = min(DEFAULT_CLIENTS, X.shape[1]) if self.blocks is None else self.blocks
        gaps = not is_sparse(X) and bool(np.isnan(X).any())
        try:
            model = Trees(loss, **{name: getattr(self, name) for name in names}, **settings)
            named = getattr(self, "feature_names_in_", None)
            data = split(X, labels, clients=clients, columns=named, prepare="trees" if gaps else None)
            method, stop = self.method or STCD(walk="tour"), Stop(iterations=self.max_iter)
            run = train(data, model, self.network, method, stop, seed=int(seed), metrics=())
            trained = run.trained()
        except MtcdError as error:
            raise ValueError(str(error)) from error
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


class TreesClassifier(ClassifierMixin, TreesEstimator):  # type: ignore[misc]
    """Boosted trees for two or more classes on vertically split columns; NaN is a missing value.

    ``blocks``, ``network`` and ``method`` as in :class:`MTCDRegressor` (by default a token on a tour), the settings of
    trees as in :class:`Trees`. A token makes ``max_iter`` hops, and a visit grows ``method.local_updates`` trees.

    >>> import numpy as np
    >>> X = np.arange(60.0)[:, None] % 30
    >>> TreesClassifier(min_samples=5).fit(X, np.where(X[:, 0] < 10, "low", "high")).predict([[3.0]])
    array(['low'], dtype='<U4')
    """

    classes_: NDArray[Any]

    def fit(self, X: Any, y: Any) -> Self:
        """Train on columns X (n, d) and classes y (n,)."""
        X, y = self._validated(X, y)
        check_classification_targets(y)
        self.classes_, numbers = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("TreesClassifier needs samples of at least 2 classes, but all are of one class.")
        run = self._fit(X, numbers.astype(float), "logistic" if len(self.classes_) == 2 else "multinomial")
        trained = run.trained()
        assert isinstance(trained, TrainedAdditive)
        self.run_ = replace(run, model=replace(trained, classes=tuple(self.classes_.tolist())))
        return self

    def decision_function(self, X: Any) -> Array:
        """The score of the second of two classes, or of every class."""
        return self._decision(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """The predicted classes."""
        scores = self._decision(X)
        return np.asarray(self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)])

    def predict_proba(self, X: Any) -> Array:
        """The probability of every class."""
        scores = self._decision(X)
        return Trees("logistic" if scores.ndim == 1 else "multinomial").plain_loss.probabilities(scores)


class TreesRegressor(RegressorMixin, TreesEstimator):  # type: ignore[misc]
    """Boosted trees for numbers on vertically split columns; NaN is a missing value.

    ``loss``: 'squared', 'huber' (with ``delta``), 'quantile' (with ``quantile``) or 'poisson'. The other parameters are
    those of :class:`TreesClassifier`.
    """

    def __init__(
        self,
        *,
        loss: str = "squared",
        delta: float = 1.0,
        quantile: float = 0.5,
        blocks: int | Mapping[str, Any] | None = None,
        network: Any = "complete",
        method: Method | None = None,
        max_iter: int = 100,
        learning_rate: float = 0.1,
        depth: int = 6,
        leaves: int = 31,
        l2: float = 1.0,
        min_samples: int = 20,
        columns: float = 1.0,
        rows: float = 1.0,
        random_state: Any = None,
    ) -> None:
        self.loss, self.delta, self.quantile = loss, delta, quantile
        super().__init__(
            blocks=blocks,
            network=network,
            method=method,
            max_iter=max_iter,
            learning_rate=learning_rate,
            depth=depth,
            leaves=leaves,
            l2=l2,
            min_samples=min_samples,
            columns=columns,
            rows=rows,
            random_state=random_state,
        )

    def fit(self, X: Any, y: Any) -> Self:
        """Train on columns X (n, d) and targets y (n,)."""
        X, y = self._validated(X, y, y_numeric=True)
        y = np.asarray(y, dtype=float)
        if (y == y[0]).all():  # nothing to learn, which mtcd.train refuses
            start = np.log(y[0]) if self.loss == "poisson" and y[0] > 0 else y[0]
            self.run_, self.n_iter_, self.constant_ = None, 1, np.asarray(start)
            return self
        self._fit(X, y, self.loss, delta=self.delta, quantile=self.quantile)
        return self

    def predict(self, X: Any) -> Array:
        """The predicted targets."""
        return Trees(self.loss, delta=self.delta, quantile=self.quantile).plain_loss.predict(self._decision(X))
