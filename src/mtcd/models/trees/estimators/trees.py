"""Boosted trees on vertically split columns, with the interface of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mtcd.core.arrays import Array, is_sparse
from mtcd.core.errors import listing, warn_of_data
from mtcd.core.mappings import attributes
from mtcd.data.frames import as_frame
from mtcd.data.prepare.values import as_column, texts
from mtcd.estimators.base import SplitEstimator, checked_weights, frame_categories, value_errors
from mtcd.estimators.classes import SplitClassifier
from mtcd.methods.default import default_method
from mtcd.methods.method import Method
from mtcd.models.trees.model import Trees
from mtcd.models.trees.trained import TrainedAdditive
from mtcd.training.kinds import kind_of
from mtcd.training.run import Run
from mtcd.training.stop import Stop


class TreesEstimator(SplitEstimator):
    """Trees of vertically split columns. See :class:`TreesClassifier` and
    :class:`TreesRegressor`."""

    run_: Run | None
    n_iter_: int
    constant_: Array
    places_: tuple[NDArray[np.intp], ...]
    categories_: dict[str, tuple[str, ...]]
    """The columns of categories in the data frame that was trained on, and the categories of
    each."""

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
        self.min_samples, self.columns, self.rows, self.random_state = (
            min_samples,
            columns,
            rows,
            random_state,
        )
        self.adaptive = adaptive

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _validated(self, X: Any, y: Any = "no_validation", **more: Any) -> Any:
        reset = not isinstance(y, str)
        checks = {"accept_sparse": "csr", "dtype": np.float64, "ensure_all_finite": "allow-nan"}
        if reset:
            # Only in `fit`: predictions take the categories of the training.
            self.categories_ = categories_of(X)
        return validate_data(
            self, with_numbers(X, self.categories_), y, reset=reset, **checks, **more
        )

    def _recipe(self, X: Any) -> Any:
        """How the columns are prepared: as they are, with the numbers of categories and of missing
        values as such."""
        gaps = not is_sparse(X) and bool(np.isnan(X).any())
        if not gaps and not self.categories_:
            return None
        columns = {}
        for name, known in self.categories_.items():
            order = [str(i) for i in range(len(known))]
            columns[name] = {"categories": {"order": order}}
        return {"missing": "keep", "columns": columns, "default": "keep"}

    def _model(self, loss: str) -> Trees:
        """The model with these settings; raises ValueErrors."""
        shape = (
            "learning_rate",
            "depth",
            "leaves",
            "l2",
            "min_samples",
            "columns",
            "rows",
            "adaptive",
        )
        with value_errors():
            return Trees(loss, **attributes(self, ("delta", "quantile", *shape)))

    def _default_method(self) -> Method:
        model = Trees()
        return default_method(kind_of(model), model)

    def _fit(self, X: Any, labels: NDArray[Any], loss: str, weights: Array | None) -> Run:
        """Train on validated X, and set what predictions need."""
        model = self._model(loss)
        with value_errors():
            data = self._split(X, labels, weights, self._recipe(X))
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
        # All labels were equal: there is no model, only a constant.
        if self.run_ is None:
            return np.full(X.shape[0], float(self.constant_))
        trained = self.run_.trained()
        assert isinstance(trained, TrainedAdditive)
        parts = zip(trained.held, self.places_, strict=True)
        # The columns of each client, by their places in X: names are those of the training.
        return np.asarray(self.constant_ + sum(part.margins(X[:, own]) for part, own in parts))


def categories_of(X: Any) -> dict[str, tuple[str, ...]]:
    """The columns of categories of a data frame, and the categories of each, as texts."""
    found = {}
    for name in frame_categories(X):
        known = _texts(X, name).drop_nulls().unique().sort()
        found[name] = tuple(known.to_list())
    return found


def with_numbers(X: Any, categories: Mapping[str, tuple[str, ...]]) -> Any:
    """A data frame with the numbers of categories instead of these; NaN for one that was not
    trained on."""
    others = [name for name in frame_categories(X) if name not in categories]
    if others:
        raise ValueError(
            f"Columns {listing(others)} are of categories, but were numbers when the model was "
            f"trained."
        )
    if not categories:
        return X
    if not hasattr(X, "columns"):
        raise ValueError(
            f"The model was trained on columns of categories ({listing(list(categories))}): give a "
            f"data frame "
            "with them."
        )
    found, odd = {}, []
    for name, known in categories.items():
        if name not in [str(label) for label in X.columns]:
            continue  # scikit-learn tells which columns are missing
        values = _texts(X, name)
        numbers = values.replace_strict(
            known, range(len(known)), default=None, return_dtype=pl.Float64
        )
        new = values.filter(values.is_not_null() & numbers.is_null())
        if len(new):
            odd.append(f"{name} ({len(new):,}, such as {new[0]!r})")
        found[name] = numbers.to_numpy()
    if odd:
        warn_of_data(
            f"Categories that are in no training row count as missing: {listing(odd, len(odd))}."
        )
    if isinstance(X, pl.DataFrame):
        return X.with_columns(**found)
    # Labels of pandas need not be texts.
    labels = {str(label): label for label in X.columns}
    X = X.copy()
    for name, taken in found.items():
        X[labels[name]] = taken
    return X


def _texts(X: Any, name: str) -> pl.Series:
    """A column of a data frame as texts."""
    with value_errors():
        frame = as_frame(X)
        assert frame is not None
        return texts(as_column(frame.series(frame.names.index(name))))


class TreesClassifier(SplitClassifier, TreesEstimator):
    """Boosted trees for classes on vertically split columns, as an estimator of scikit-learn.

    NaN is a missing value. Columns of categories (Categorical, Enum) of a data frame are
    categories, whatever their values are.

    Parameters
    ----------
    blocks : int or mapping, optional
        The number of clients, over which the columns are split evenly (4 by default, or fewer if
        there are fewer columns), or a mapping from clients to their columns, by name or position.
    network : str, Network or links, default 'complete'
        As in :func:`mtcd.train`.
    method : Method, optional
        As in :func:`mtcd.train`; by default a token on a tour.
    loss : str, optional
        A loss for classes; by default what the number of classes asks for.
    delta : float, default 1.0
        The residual from which the loss 'huber' is linear.
    quantile : float, default 0.5
        The quantile of the loss 'quantile'.
    max_iter : int, default 100
        The hops of the token.
    learning_rate : float, default 0.1
        Each tree is multiplied by it.
    depth : int, default 6
        The most levels of a tree; 0: any number.
    leaves : int, default 31
        The most leaves of a tree.
    l2 : float, default 1.0
        Added to the second derivatives of a leaf.
    min_samples : int, default 20
        The fewest samples of a leaf.
    columns : float, default 1.0
        The share of columns that a tree is grown on, drawn anew for every visit.
    rows : float, default 1.0
        The share of samples that a tree is grown on, drawn anew for every visit.
    adaptive : bool, default True
        Whether parties compare their gains, and grow trees where they gain most. Otherwise every
        visit grows ``method.local_updates``.
    random_state : int, optional
        The seed.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(60.0)[:, None] % 30
    >>> TreesClassifier(min_samples=5).fit(X, np.where(X[:, 0] < 10, "low", "high")).predict([[3.0]])
    array(['low'], dtype='<U4')
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on columns X (n, d), classes y (n,) and weights of the samples (n,), all 1 unless
        given."""
        X, y = self._validated(X, y)
        check_classification_targets(y)
        X, y, weights = counted(X, y, checked_weights(sample_weight, X))
        # Numbers of classes: scikit-learn takes classes of any type, losses texts and numbers.
        self.classes_, numbers = np.unique(y, return_inverse=True)
        run = self._fit(X, numbers.astype(float), self._kind(), weights)
        trained = run.trained()
        assert isinstance(trained, TrainedAdditive)
        # The classes as given replace their numbers, so that `run_` predicts them too.
        self.run_ = replace(run, model=replace(trained, classes=tuple(self.classes_.tolist())))
        return self


class TreesRegressor(RegressorMixin, TreesEstimator):  # type: ignore[misc]
    """Boosted trees for numbers on vertically split columns, as an estimator of scikit-learn.

    NaN is a missing value.

    Parameters
    ----------
    blocks : int or mapping, optional
        The number of clients, over which the columns are split evenly (4 by default, or fewer if
        there are fewer columns), or a mapping from clients to their columns, by name or position.
    network : str, Network or links, default 'complete'
        As in :func:`mtcd.train`.
    method : Method, optional
        As in :func:`mtcd.train`; by default a token on a tour.
    loss : str, optional
        'squared' (the default), 'huber' (with ``delta``), 'quantile' (with ``quantile``) or
        'poisson'.
    delta : float, default 1.0
        The residual from which the loss 'huber' is linear.
    quantile : float, default 0.5
        The quantile of the loss 'quantile'.
    max_iter : int, default 100
        The hops of the token.
    learning_rate : float, default 0.1
        Each tree is multiplied by it.
    depth : int, default 6
        The most levels of a tree; 0: any number.
    leaves : int, default 31
        The most leaves of a tree.
    l2 : float, default 1.0
        Added to the second derivatives of a leaf.
    min_samples : int, default 20
        The fewest samples of a leaf.
    columns : float, default 1.0
        The share of columns that a tree is grown on, drawn anew for every visit.
    rows : float, default 1.0
        The share of samples that a tree is grown on, drawn anew for every visit.
    adaptive : bool, default True
        Whether parties compare their gains, and grow trees where they gain most. Otherwise every
        visit grows ``method.local_updates``.
    random_state : int, optional
        The seed.

    Examples
    --------
    >>> import mtcd, numpy as np
    >>> draws = np.random.default_rng(0)
    >>> X = draws.standard_normal((200, 4))
    >>> y = np.where(X[:, 0] > 0, 1.0, -1.0)
    >>> round(mtcd.TreesRegressor(blocks=2, max_iter=20).fit(X, y).score(X, y), 1)
    1.0
    """

    losses = ("squared", "huber", "quantile", "poisson")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on columns X (n, d), targets y (n,) and weights of the samples (n,), all 1 unless
        given."""
        X, y = self._validated(X, y, y_numeric=True)
        X, y, weights = counted(X, np.asarray(y, dtype=float), checked_weights(sample_weight, X))
        loss = self._loss()
        if (y == y[0]).all():  # nothing to learn, which mtcd.train refuses
            # The Poisson loss predicts exp(z), so the constant is the logarithm of the label.
            start = np.log(y[0]) if loss == "poisson" and y[0] > 0 else y[0]
            self.run_, self.n_iter_, self.constant_ = None, 1, np.asarray(start)
            return self
        self._fit(X, y, loss, weights)
        return self

    def predict(self, X: Any) -> Array:
        """The predicted target of each row of X, as a vector."""
        scores = self._decision(X)
        return self._model(self._loss()).plain_loss.predict(scores)


def counted(
    X: Any, y: NDArray[Any], weights: Array | None
) -> tuple[Any, NDArray[Any], Array | None]:
    """Without the samples of weight 0, which would count in ``min_samples``."""
    if weights is None or weights.all():
        return X, y, weights
    rows = np.flatnonzero(weights)
    return X[rows], y[rows], weights[rows]
