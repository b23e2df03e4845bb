"""What the protocol asks of a client's model. Any model with these methods can be trained."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Rows = NDArray[np.intp]


class Fit(Protocol):
    """The loss of an aggregate, the labels being known."""

    @property
    def curvature(self) -> float:
        """The largest second derivative of the loss of one sample."""

    def objective(self, aggregate: Array, penalty: float) -> float:
        """f, read off a token."""

    def gradient(self, aggregate: Array) -> Array:
        """The derivative of the loss in the aggregate."""

    def hessian_product(self, aggregate: Array, v: Array) -> Array:
        """The second derivative of the loss in the aggregate, times v."""


class ClientModel(Protocol):
    """The representation model h_k of one client, with its data. It holds no parameters: they pass through."""

    def initial(self) -> Array:
        """theta_k at the start."""

    def represent(self, theta: Array, rows: Rows | None = None) -> Array:
        """h_k(theta_k), on all samples or on these rows."""

    def penalty(self, theta: Array) -> float:
        """The regulariser r(theta_k)."""

    def penalty_kink(self, theta: Array) -> float:
        """The part of r that is not smooth: l1 times the sum of absolute values."""

    def penalty_product(self, a: Array, b: Array) -> float:
        """The inner product behind the smooth part of r, which is half that of theta with itself."""

    @property
    def fit(self) -> Fit:
        """The loss with the labels: every client knows them."""

    def improve(self, theta: Array, aggregate: Array, rows: Rows | None, Q: int, eta: float) -> Array:
        """Q local updates of theta_k; the aggregate is kept true in place."""


class Problem(Protocol):
    """All the clients' models, as a method sees them."""

    @property
    def samples(self) -> int:
        """N."""

    @property
    def outputs(self) -> int:
        """Numbers per sample in a representation."""

    def client(self, k: int) -> ClientModel:
        """Client k's model."""

    @property
    def fit(self) -> Fit:
        """The loss with the labels: the server knows them."""

    @property
    def kinked(self) -> bool:
        """Whether r has a part that is not smooth."""
