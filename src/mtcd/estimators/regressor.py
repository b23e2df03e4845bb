"""A regressor with the interface of scikit-learn."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import validate_data

from mtcd.core.arrays import Array
from mtcd.estimators.base import checked_weights, refuse_categories
from mtcd.estimators.linear import LinearEstimator


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
