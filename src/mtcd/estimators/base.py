"""What the classifier and the regressor share: parameters, the split of the columns, and the training."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from mtcd.arrays import Array
from mtcd.data.vertical import VerticalData, split
from mtcd.errors import MtcdError
from mtcd.methods.method import Method
from mtcd.methods.mtcd import STCD
from mtcd.model.linear import Glm
from mtcd.plateau import Plateau
from mtcd.run import Run
from mtcd.stop import Stop
from mtcd.training import train

DEFAULT_CLIENTS = 4
NESTED = "method__"


class LinearEstimator(BaseEstimator):  # type: ignore[misc]
    """A linear model of vertically split columns. See :class:`MTCDClassifier` and :class:`MTCDRegressor`."""

    losses: tuple[str, ...]
    """The losses of this kind of estimator; the first is the default."""
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
        self.tol, self.max_iter, self.random_state, self.verbose = tol, max_iter, random_state, verbose

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with ``deep``, also the settings of the method, as ``method__local_updates``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep and dataclasses.is_dataclass(self.method):
            settings = [field.name for field in dataclasses.fields(self.method) if field.init]
            params |= {NESTED + name: getattr(self.method, name) for name in settings}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``method__local_updates=5`` changes one setting of the method."""
        nested = {name.removeprefix(NESTED): params[name] for name in params if name.startswith(NESTED)}
        super().set_params(**{name: value for name, value in params.items() if not name.startswith(NESTED)})
        if nested:
            method = self._method()
            known = {field.name for field in dataclasses.fields(method) if field.init}  # type: ignore[arg-type]
            if unknown := sorted(set(nested) - known):
                raise ValueError(f"Invalid parameter {NESTED + unknown[0]!r}: the method has {sorted(known)}.")
            self.method = dataclasses.replace(method, **nested)  # type: ignore[type-var]
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _loss(self) -> str:
        loss = self.losses[0] if self.loss is None else self.loss
        if loss not in self.losses:
            raise ValueError(f"loss must be one of {', '.join(map(repr, self.losses))}, but is {loss!r}.")
        return loss

    def _decision(self, X: Any) -> Array:
        """X @ coef + intercept: one number per sample, or one per class."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        scores = np.asarray(X @ self.coef_.T) + self.intercept_
        return np.asarray(scores.ravel() if scores.ndim == 2 and scores.shape[1] == 1 else scores)

    def _train(
        self, X: Any, labels: NDArray[Any], kind: str, weights: Array | None, class_weight: Any
    ) -> tuple[VerticalData, Run]:
        """Train on validated X; the settings are checked by the library, with ValueErrors for scikit-learn."""
        seed = self.random_state if isinstance(self.random_state, int | np.integer) else None
        if seed is None:
            seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        try:
            data, method = self._split(X, labels, weights), self._method()
            model = Glm(kind, l1=self.l1, l2=self.l2, intercept=self.fit_intercept, class_weight=class_weight)
            run = train(data, model, self.network, method, self._stop(len(data.clients)), seed=int(seed), metrics=())
            run.trained()
        except MtcdError as error:
            raise ValueError(str(error)) from error
        if self.verbose:
            print(run.message)  # noqa: T201 - asked for
        return data, run

    def _stop(self, clients: int) -> Stop:
        """After ``max_iter``, or when 4 epochs (without a server, 4 hops per client) improve f by ``tol`` or less."""
        patience = 4 if getattr(self._method(), "has_server", True) else 4 * clients
        return Stop(iterations=self.max_iter, plateau=Plateau(patience=patience, min_improvement=self.tol))

    def _split(self, X: Any, labels: NDArray[Any], weights: Array | None) -> VerticalData:
        clients: Any = min(DEFAULT_CLIENTS, X.shape[1]) if self.blocks is None else self.blocks
        return split(X, labels, clients=clients, columns=getattr(self, "feature_names_in_", None), weights=weights)

    def _fit_coefficients(
        self, X: Any, labels: NDArray[Any], kind: str, weights: Array | None, class_weight: Any = None
    ) -> tuple[Array, float | Array]:
        """Train, and set ``run_`` and ``n_iter_``; returns the coefficients of all columns of X (0 for columns that no
        client holds) and the intercept.
        """
        data, run = self._train(X, labels, kind, weights, class_weight)
        self.run_, self.n_iter_ = run, run.final.iteration
        coefficients = np.zeros((X.shape[1], *run.coefficients.shape[1:]))
        coefficients[np.sort(np.concatenate(data.positions))] = run.coefficients
        return coefficients, run.intercept

    def _method(self) -> Method:
        """The method that was given, or one that chooses its own step size: a token on an accelerated tour."""
        if self.method is not None:
            return self.method
        if self.l1:
            return STCD(local_updates=10, walk="tour", acceleration="momentum")
        return STCD(walk="tour", acceleration="conjugate", local_solver="majorise")


def checked_weights(sample_weight: Any, X: Any) -> Array | None:
    """The weights of samples as an array; None if there are none."""
    if sample_weight is None:
        return None
    return np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True))
