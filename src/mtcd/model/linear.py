"""Generalised linear models: h_k = X_k theta_k, the aggregate is their sum, no fusion parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.arrays import Array, Rows
from mtcd.checks import check_number
from mtcd.data.sparse import is_sparse
from mtcd.data.vertical import Block, VerticalData
from mtcd.errors import ConfigError
from mtcd.metrics import class_numbers
from mtcd.model.evaluation import Evaluation, Parameters
from mtcd.model.fit import LabelFit
from mtcd.model.score import Score
from mtcd.model.steps import Steps, make_steps, plain_steps
from mtcd.model.updates import LocalUpdates
from mtcd.objective.losses import LOSSES, Labels, Loss
from mtcd.objective.losses.own import check_own_loss
from mtcd.objective.penalty import Penalty
from mtcd.objective.smoothness import block_smoothness
from mtcd.objective.weighted import ClassWeight, Weighted, check_class_weight, with_class_weights


@dataclass(frozen=True)
class Glm:
    """f(theta) = sum_n w_n l(x_n . theta, y_n) + l1*|theta|_1 + l2/2*|theta|^2.

    ``kind``: ridge and linear (squared loss / 2), logistic (two classes), multinomial (any
    class labels), huber (with ``delta``), squared-hinge (two classes), or one of a plugin. ``alpha`` is ridge's name
    for l2 (1 unless given). ``intercept`` adds one unpenalised column of ones at the first client. ``positive`` is the
    positive one of two classes: the second in sorted order unless given.

    w_n is the weight of sample n in the data (1 if it has none), times that of its class: ``class_weight`` is
    'balanced', with which every class has the same total, or a weight for each class.

    >>> Glm("ridge", alpha=10).l2_weight
    10.0
    """

    kind: str = "ridge"
    alpha: float | None = None
    l1: float = 0.0
    l2: float | None = None
    intercept: bool = False
    delta: float = 1.0
    positive: str | float | None = field(default=None, repr=False)
    class_weight: ClassWeight | None = None
    loss: Loss = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kind = LOSSES[self.kind]
        if kind.not_linear:
            raise ConfigError(
                f"model.kind: a linear model cannot have the {self.kind} loss, as {kind.not_linear}. Trees can: "
                f'model: {{kind: trees, loss: {self.kind}}}, or mtcd.Trees("{self.kind}").'
            )
        if not kind.uses_delta and self.delta != 1.0:
            raise ConfigError(f"model.delta belongs to the huber model: {self.kind} has no use for it.")
        if self.kind != "ridge" and self.alpha is not None:
            raise ConfigError(f"model.alpha belongs to ridge: call it l2 for {self.kind}.")
        if self.alpha is not None and self.l2 is not None:
            raise ConfigError("model.alpha and model.l2 are the same thing for ridge: give one of them.")
        for name in ("alpha", "l1", "l2"):
            if getattr(self, name) is not None:
                check_number(f"model.{name}", getattr(self, name))
        if not kind.uses_positive and self.positive is not None:
            raise ConfigError(f"positive names one of two classes: {self.kind} has no use for it.")
        if self.class_weight is not None:
            check_class_weight(self.class_weight)
        settings: dict[str, Any] = {"delta": self.delta} if kind.uses_delta else {}
        settings |= {} if self.positive is None else {"positive": self.positive}
        object.__setattr__(self, "loss", kind(**settings))

    @property
    def l2_weight(self) -> float:
        """The l2 in use: ``alpha`` is another name for ridge, where the default is 1."""
        given = self.l2 if self.alpha is None else self.alpha
        return float(given if given is not None else self.kind == "ridge")

    def problem(self, data: VerticalData) -> LinearProblem:
        """This model on this data: one block per client, labels encoded."""
        data.check_complete("a linear model")
        loss, labels, classes = self.weighted(data.labels, data.weights)
        check_own_loss(self.loss, labels, self.loss.outputs(classes))
        blocks = tuple(self.block(k, X) for k, X in enumerate(data.blocks))
        return LinearProblem(loss, labels, classes, blocks, self.penalties(len(blocks)))

    def weighted(self, labels: Labels, weights: Array | None = None) -> tuple[Loss, Array, tuple[str | float, ...]]:
        """The loss with the weights of these samples and their classes; the encoded labels; the classes."""
        encoded, classes = self.loss.encode(labels)
        if self.class_weight is not None:
            if not classes:
                raise ConfigError(
                    f"model.class_weight is for classes, and {self.kind} predicts a number: leave it out."
                )
            weights = with_class_weights(self.class_weight, classes, class_numbers(labels, classes), weights)
        return self.loss if weights is None else Weighted(self.loss, weights), encoded, classes

    def block(self, k: int, X: Block) -> Block:
        """The block of client k: its columns, and at the first client that of the intercept."""
        return _with_ones(X) if self.intercept and k == 0 else X

    def penalties(self, clients: int) -> tuple[Penalty, ...]:
        """r, client by client."""
        return tuple(
            Penalty(float(self.l1), self.l2_weight, free=int(self.intercept and k == 0)) for k in range(clients)
        )


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """A linear model on data: the models of the clients, and the measurements."""

    loss: Loss
    labels: Array
    classes: tuple[str | float, ...]
    blocks: tuple[Block, ...]
    penalties: tuple[Penalty, ...]
    evaluation: Evaluation | None = None
    """The metrics of a score; none unless given."""
    start: tuple[Array, ...] | None = None
    """theta_k at the start of a training; 0 unless given."""

    @property
    def samples(self) -> int:
        """N."""
        return len(self.labels)

    @property
    def outputs(self) -> int:
        """Numbers per sample in a representation."""
        return self.loss.outputs(self.classes)

    def client(self, k: int) -> LinearClient:
        """The model of client k."""
        start = None if self.start is None else self.start[k]
        return LinearClient(self.blocks[k], self.labels, self.loss, self.penalties[k], start)

    def with_blocks(self, own: Mapping[int, Block]) -> Self:
        """The problem of a process that has these blocks only: others have no columns, and there are no metrics."""
        nothing = np.zeros((self.samples, 0))
        blocks = tuple(own.get(k, nothing) for k in range(len(self.penalties)))
        return replace(self, blocks=blocks, evaluation=None)

    @property
    def warm(self) -> bool:
        """Whether theta starts elsewhere than at 0."""
        return self.start is not None

    @cached_property
    def fit(self) -> LabelFit:
        """The loss with the labels."""
        return LabelFit(self.loss, self.labels)

    @property
    def nonsmooth(self) -> bool:
        """Whether r has a part that is not smooth: l1."""
        return any(penalty.l1 > 0 for penalty in self.penalties)

    def aggregate(self, parameters: Sequence[Array]) -> Array:
        """H = sum_k X_k theta_k."""
        total = np.zeros(self.labels.shape)
        for X, theta in zip(self.blocks, parameters, strict=True):
            total += X @ theta
        return total

    def read_off(self, aggregate: Array, penalty: float) -> float:
        """f, from the aggregate and the penalty of a token."""
        return self.fit.objective(aggregate, penalty)

    def metrics(self, aggregate: Array, parameters: Parameters) -> dict[str, float]:
        """The metrics, from the aggregate; those of a test set from the parameters of all clients."""
        return {} if self.evaluation is None else self.evaluation.measured(aggregate, parameters)

    def score(self, parameters: Sequence[Array]) -> Score:
        """f and the metrics, from scratch."""
        aggregate = self.aggregate(parameters)
        metrics = self.metrics(aggregate, lambda: parameters)
        return Score(self._objective(aggregate, parameters), None, metrics.get("test_accuracy"), metrics)

    def evaluate(self, parameters: Sequence[Array]) -> float:
        """f, from the parameters of all clients: for measurements only."""
        return self._objective(self.aggregate(parameters), parameters)

    def _objective(self, aggregate: Array, parameters: Sequence[Array]) -> float:
        penalty = sum(r.value(theta) for r, theta in zip(self.penalties, parameters, strict=True))
        return self.fit.objective(aggregate, penalty)


class LinearClient:
    """The model of client k: its block, and the local updates on it."""

    def __init__(self, X: Block, y: Array, loss: Loss, penalty: Penalty, start: Array | None = None) -> None:
        self.X, self.y, self.loss, self.regulariser, self.start = X, y, loss, penalty, start
        self.fit = LabelFit(loss, y)
        self.penalty, self.nonsmooth_penalty, self.penalty_product = penalty.value, penalty.kink, penalty.product
        self.strongly_convex = penalty.l2 > 0 and not penalty.free
        self._prepared_for: tuple[int, float, bool] | None = None
        self._steps: Steps

    def initial(self) -> Array:
        """theta_k = 0 unless a start is given, so that the first token is zero and free."""
        if self.start is not None:
            return self.start.copy()
        return np.zeros((self.X.shape[1], *self.y.shape[1:]))

    def represent(self, theta: Array, rows: Rows | None = None) -> Array:
        """h_k = X_k theta_k, on all samples or on these rows."""
        return np.asarray((self.X if rows is None else self.X[rows]) @ theta)

    @cached_property
    def smoothness(self) -> float:
        """L_k."""
        [largest] = block_smoothness([self.X], self.loss, self.regulariser.l2)
        return float(largest)

    def survey(self) -> Array:
        """1, the number of columns, |X|_F^2, |X|^2, and how far columns are from orthogonal: d |X|^2 / |X|_F^2."""
        X = self.loss.scaled(self.X)
        values = X.data if is_sparse(X) else X.ravel(order="K")  # K: no copy, whatever the layout
        squares = float(values @ values)
        norm = (self.smoothness - self.regulariser.l2) / self.loss.curvature
        columns = self.X.shape[1]
        return np.array([1.0, columns, squares, norm, columns * norm / squares if squares else 1.0])

    def local_update(self, theta: Array, aggregate: Array, updates: LocalUpdates) -> Array:
        """Q local updates; the aggregate is updated in place, the new theta_k is returned."""
        Q, eta, rows, majorise = updates.Q, updates.eta, updates.rows, updates.majorise
        if rows is None:
            if self._prepared_for != (Q, eta, majorise):  # at the first visit
                self._steps = make_steps(self.X, self.y, self.loss, self.regulariser, Q, eta, majorise)
                self._prepared_for = (Q, eta, majorise)
            return self._steps(theta, aggregate)
        X, y, loss, scale = self.X[rows], self.y[rows], self.loss.at(rows), len(self.y) / len(rows)
        return plain_steps(X, y, loss, self.regulariser, theta, aggregate, Q, eta, scale)

    def gradient(self, theta: Array, slope: Array) -> Array:
        """X_k^T slope + the gradient of the smooth part of r; with slope = l'(Z), the partial gradient of f."""
        gradient: Array = self.X.T.dot(slope)
        self.regulariser.add_gradient(theta, gradient)
        return gradient

    def primal_step(self, theta: Array, dual: Array, mu: float) -> Array:
        """theta after a proximal gradient step along X_k^T y, for primal-dual methods."""
        gradient = self.gradient(theta, dual)
        gradient *= -mu
        gradient += theta
        self.regulariser.prox(gradient, mu)
        return gradient

    def dual_prox(self, v: Array, c: float) -> Array:
        """prox of c g* at v, g the loss."""
        return self.loss.dual_prox(v, self.y, c)


def _with_ones(X: Block) -> Block:
    ones = np.ones((X.shape[0], 1))
    if is_sparse(X):
        return scipy.sparse.csr_array(scipy.sparse.hstack([X, ones]))
    return np.asfortranarray(np.hstack([X, ones]))
