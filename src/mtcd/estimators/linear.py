"""What the linear classifier and regressor share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from mtcd.core.arrays import Array
from mtcd.estimators.base import SplitEstimator, refuse_categories, value_errors
from mtcd.estimators.convergence import warn_unless_converged
from mtcd.methods.default import default_method
from mtcd.methods.method import Method
from mtcd.models.glm.kind import LINEAR
from mtcd.models.glm.model import Glm
from mtcd.training.plateau import Plateau
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
