"""The linear classifier and regressor, with the interface of scikit-learn, and the warning where their
training ended before the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from mtcd.core.arrays import Array
from mtcd.core.errors import warn_user
from mtcd.data.vertical import VerticalData
from mtcd.estimators.base import SplitEstimator, checked_weights, refuse_categories, value_errors
from mtcd.estimators.classes import SplitClassifier
from mtcd.methods.default import default_method
from mtcd.methods.method import Method
from mtcd.models.glm.kind import LINEAR
from mtcd.models.glm.model import Glm
from mtcd.models.glm.optimum.remaining_gap import remaining_gap
from mtcd.models.glm.starts import starting_at
from mtcd.models.glm.training import start_of
from mtcd.training.plateau import PLATEAU, Plateau
from mtcd.training.run import Run
from mtcd.training.stop import Stop


class LinearEstimator(SplitEstimator):
    """A linear model of vertically split columns. See :class:`MTCDClassifier` and
    :class:`MTCDRegressor`."""

    run_: Run | None
    coef_: Array
    intercept_: Any
    n_iter_: int

    def __init__(
        self,
        *,
        blocks: int | Mapping[str, Any] | None = None,
        network: Any = "complete",
        method: Method | None = None,
        loss: str | None = None,
        l1: float = 0.0,
        l2: float = 1.0,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 10_000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.blocks, self.network, self.method, self.loss = blocks, network, method, loss
        self.l1, self.l2, self.fit_intercept = l1, l2, fit_intercept
        self.tol, self.max_iter = tol, max_iter
        self.random_state, self.verbose = random_state, verbose

    def _decision(self, X: Any) -> Array:
        """X @ coef + intercept: one number per sample, or one per class."""
        check_is_fitted(self)
        refuse_categories(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        # coef_ of a classifier has a row, of two classes too
        if scores.ndim == 2 and scores.shape[1] == 1:
            scores = scores.ravel()
        return np.asarray(scores)

    def _stop(self, clients: int) -> Stop:
        """After ``max_iter``, or when 4 epochs (without a server, 4 hops per client) improve f by
        ``tol`` or less."""
        patience = 4
        if not getattr(self._method(), "has_server", True):
            patience *= clients  # of a lone token, a hop is an epoch
        plateau = Plateau(patience=patience, min_improvement=self.tol)
        return Stop(iterations=self.max_iter, plateau=plateau)

    def _fit_coefficients(
        self,
        X: Any,
        labels: NDArray[Any],
        kind: str,
        weights: Array | None,
        class_weight: Any = None,
    ) -> tuple[Array, float | Array]:
        """Train on validated X, and set ``run_`` and ``n_iter_``.

        Returns the coefficients of all columns of X (0 for columns that no client holds) and the
        intercept.
        """
        with value_errors():
            data = self._split(X, labels, weights)
            model = Glm(
                kind,
                l1=self.l1,
                l2=self.l2,
                intercept=self.fit_intercept,
                class_weight=class_weight,
            )
            run = self._train(data, model, self._stop(len(data.clients)))
            # inside: an estimate of the optimum may fail as a training may
            warn_unless_converged(type(self).__name__, run, model, data, self.tol)

        if self.verbose:
            print(run.message)  # noqa: T201 - asked for
        self.run_, self.n_iter_ = run, run.final.iteration
        # coefficients of the run are in the order of the columns that clients hold
        coefficients = np.zeros((X.shape[1], *run.coefficients.shape[1:]))
        coefficients[np.sort(np.concatenate(data.positions))] = run.coefficients
        return coefficients, run.intercept

    def _default_method(self) -> Method:
        return default_method(LINEAR, self)  # which has an l1, as the model that it makes


class MTCDClassifier(SplitClassifier, LinearEstimator):
    """Linear classification on vertically split columns, as an estimator of scikit-learn.

    If training ended at ``max_iter``, or on a plateau where f is still more than 100 ``tol`` above
    the optimum by an estimate, a ``ConvergenceWarning`` says so. Settings of a method are
    parameters too: ``method__local_updates``.

    After ``fit``: ``classes_``, ``coef_`` (a row for each class, or one row for two),
    ``intercept_``, ``n_iter_``, and ``run_``, the :class:`mtcd.Run`.

    Parameters
    ----------
    blocks : int or mapping, optional
        The number of clients, over which the columns are split evenly (4 by default, or fewer if
        there are fewer columns), or a mapping from clients to their columns, by name or position.
    network : str, Network or links, default 'complete'
        As in :func:`mtcd.train`.
    method : Method, optional
        As in :func:`mtcd.train`; by default a token on an accelerated tour.
    loss : str, optional
        'logistic' (multinomial for more than two classes; the default), or 'squared-hinge' for two
        classes.
    l1 : float, default 0.0
        The weight of the absolute values of the coefficients.
    l2 : float, default 1.0
        The weight of half their squares.
    class_weight : 'balanced' or mapping, optional
        The weights of classes, 1 where none is given.
    fit_intercept : bool, default True
        Whether to fit an intercept, without a penalty.
    tol : float, default 1e-08
        Training stops when f improves by less than this, relatively.
    max_iter : int, default 10000
        The most iterations (hops per token).
    random_state : int, optional
        The seed.
    verbose : bool, default False
        Whether to print progress.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> MTCDClassifier().fit(X, ["no", "no", "yes", "yes"]).predict([[3.0, 3.0]])
    array(['yes'], dtype='<U3')
    """

    def __init__(
        self,
        *,
        blocks: int | Mapping[str, Any] | None = None,
        network: Any = "complete",
        method: Method | None = None,
        loss: str | None = None,
        l1: float = 0.0,
        l2: float = 1.0,
        class_weight: str | Mapping[Any, float] | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-8,
        max_iter: int = 10_000,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.class_weight = class_weight
        super().__init__(
            blocks=blocks,
            network=network,
            method=method,
            loss=loss,
            l1=l1,
            l2=l2,
            fit_intercept=fit_intercept,
            tol=tol,
            max_iter=max_iter,
            random_state=random_state,
            verbose=verbose,
        )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on columns X (n, d), classes y (n,) and weights of the samples (n,), all 1 unless
        given."""
        refuse_categories(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)

        check_classification_targets(y)
        # numbered in sorted order, as scikit-learn has it
        self.classes_, numbers = np.unique(y, return_inverse=True)
        weights = checked_weights(sample_weight, X)
        # a class whose samples all have weight 0 is not there, as far as the loss knows
        if weights is not None and len(np.unique(numbers[weights > 0])) < 2:
            raise ValueError(
                "MTCDClassifier needs samples of at least 2 classes, but all that count are of one "
                "class."
            )

        kind = self._kind()
        coefficients, intercept = self._fit_coefficients(
            X, numbers.astype(float), kind, weights, self._class_weight()
        )
        assert self.run_ is not None
        # trained as numbers
        named = replace(cast(Any, self.run_.trained()), classes=tuple(self.classes_.tolist()))
        self.run_ = replace(self.run_, model=named)

        # a row for each class; of two, one row, as scikit-learn has it
        self.coef_ = np.atleast_2d(coefficients.T)
        self.intercept_ = np.atleast_1d(intercept)
        return self

    def _class_weight(self) -> Any:
        """Weights by the numbers that stand for the classes in training."""
        if not isinstance(self.class_weight, Mapping):
            return self.class_weight
        numbers = {label: float(number) for number, label in enumerate(self.classes_)}
        for label in self.class_weight:
            if label not in numbers:
                raise ValueError(
                    f"class_weight names the class {label!r}, but there are {list(numbers)}."
                )
        # by number: that is what the model is trained on
        return {numbers[label]: weight for label, weight in self.class_weight.items()}


class MTCDRegressor(RegressorMixin, LinearEstimator):  # type: ignore[misc]
    """Linear regression on vertically split columns, as an estimator of scikit-learn.

    It minimises sum_n loss(x_n . theta + b, y_n) + l1 |theta|_1 + l2/2 |theta|^2.

    If training ended at ``max_iter``, or on a plateau where f is still more than 100 ``tol`` above
    the optimum by an estimate, a ``ConvergenceWarning`` says so. Settings of a method are
    parameters too: ``method__local_updates``.

    After ``fit``: ``coef_``, ``intercept_``, ``n_iter_``, and ``run_``, the :class:`mtcd.Run` with
    history and ledger.

    Parameters
    ----------
    blocks : int or mapping, optional
        The number of clients, over which the columns are split evenly (4 by default, or fewer if
        there are fewer columns), or a mapping from clients to their columns, by name or position.
    network : str, Network or links, default 'complete'
        As in :func:`mtcd.train`.
    method : Method, optional
        As in :func:`mtcd.train`; by default a token on an accelerated tour, which chooses its own
        step size.
    loss : str, optional
        'squared' (half the square; the default) or 'huber'.
    l1 : float, default 0.0
        The weight of the absolute values of the coefficients.
    l2 : float, default 1.0
        The weight of half their squares.
    fit_intercept : bool, default True
        Whether to fit an intercept, without a penalty.
    tol : float, default 1e-08
        Training stops when f improves by less than this, relatively.
    max_iter : int, default 10000
        The most iterations (hops per token).
    random_state : int, optional
        The seed.
    verbose : bool, default False
        Whether to print progress.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.arange(20.0).reshape(10, 2)
    >>> round(MTCDRegressor().fit(X, X @ [1, 2] + 3).score(X, X @ [1, 2] + 3), 3)
    1.0
    """

    losses = ("squared", "huber")

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on columns X (n, d), targets y (n,) and weights of the samples (n,), all 1 unless
        given."""
        refuse_categories(X)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, y_numeric=True)
        y = np.asarray(y, dtype=float)
        kind = {"squared": "linear", "huber": "huber"}[self._loss()]
        if (y == y[0]).all() and self.fit_intercept:  # nothing to learn, which mtcd.train refuses
            self.run_, self.n_iter_ = None, 1
            self.coef_, self.intercept_ = np.zeros(X.shape[1]), float(y[0])
            return self
        self.coef_, self.intercept_ = self._fit_coefficients(
            X, y, kind, checked_weights(sample_weight, X)
        )
        return self

    def predict(self, X: Any) -> Array:
        """The predicted value of every sample."""
        return self._decision(X)


SLOWEST = 100.0
"""A window that improves f by ``tol`` is followed by others: with this many like it to come, f is
not settled."""
LEAST = 1e-8
"""A gap that is small on a plateau, whatever ``tol`` is."""
ROUNDING = 1e-12
"""A gap that no iteration could close: also at ``max_iter``, f is at its optimum."""


def warn_unless_converged(
    estimator: str, run: Run, model: Glm, data: VerticalData, tol: float
) -> None:
    """Emit a ``ConvergenceWarning`` if the training ended at ``max_iter``, or on a plateau above
    the optimum.

    Parameters
    ----------
    estimator
        The name of the estimator.
    run
        The training that has ended.
    model
        Its model.
    data
        Its samples.
    tol
        The improvement by which the plateau is defined: a gap of more than 100 times as much is not
        small.
    """
    small = max(SLOWEST * tol, LEAST)
    gap = gap_of(run, model, data, small)
    allowed = ROUNDING
    if run.status == PLATEAU:
        allowed = small
    if gap <= allowed:
        return

    after = f"after {run.final.iteration} iterations"
    above = f"f is about {gap:.1e} (relatively) above its least value"
    cure = "Scale the columns to similar sizes, for example with StandardScaler"
    if run.status == PLATEAU:
        text = (
            f"{estimator} stopped on a plateau {after}, but {above}, so the coefficients may be "
            f"far off. {cure}, or set a smaller tol and a larger max_iter."
        )
    else:
        text = (
            f"{estimator} ended at its limit {after}, before f had settled: {above}. {cure}, or "
            "increase max_iter."
        )
    warn_user(text, ConvergenceWarning)


def gap_of(run: Run, model: Glm, data: VerticalData, small: float) -> float:
    """An estimate of (f - f*) / |f*| of the trained model; gaps up to ``small`` need not be known
    any better."""
    problem = starting_at(start_of(run), model, data, model.problem(data), None)
    assert problem.start is not None
    with np.errstate(all="ignore"):  # far from the optimum, trial steps may overflow
        return remaining_gap(
            problem.blocks, problem.labels, problem.loss, problem.penalties, problem.start, small
        )
