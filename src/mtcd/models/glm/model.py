"""Generalised linear models: h_k = X_k theta_k, the aggregate is their sum, no fusion
parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array, is_sparse
from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError
from mtcd.data.vertical import Block, VerticalData
from mtcd.models.glm.client import LinearClient
from mtcd.models.glm.evaluation import Evaluation, Parameters
from mtcd.models.glm.fit import LabelFit
from mtcd.models.glm.penalty import Penalty
from mtcd.models.label_noise import LabelNoise
from mtcd.models.losses import LOSSES, Labels, Loss
from mtcd.models.losses.own import check_own_loss
from mtcd.models.metrics.metric import Score
from mtcd.models.weights import ClassWeight, check_class_weight, loss_on


@dataclass(frozen=True)
class Glm:
    """A generalised linear model, whose coefficients are split over the clients.

    Training minimises f(theta) = sum_n w_n l(x_n . theta, y_n) + l1*|theta|_1 + l2/2*|theta|^2. The
    weight w_n of sample n is that in the data (1 if it has none), times that of its class.

    Parameters
    ----------
    kind : str, default 'ridge'
        The loss l: 'ridge' or 'linear' (half the squared error), 'logistic' (two classes),
        'multinomial' (any class labels), 'huber', 'squared-hinge' (two classes), or one of a
        plugin.
    alpha : float, optional
        Ridge's name for ``l2``; 1 for 'ridge' unless one of them is given.
    l1 : float, default 0.0
        The weight of the absolute values of the coefficients: larger values set more of them to 0.
    l2 : float, optional
        The weight of half their squares; 0 unless given, but for 'ridge'.
    intercept : bool, default False
        Whether to add a column of ones, without a penalty, at the first client.
    delta : float, default 1.0
        The residual from which the loss 'huber' is linear.
    positive : str or float, optional
        The positive one of two classes; the second in sorted order unless given.
    class_weight : 'balanced' or mapping from classes to weights, optional
        The weights of classes; 'balanced' gives every class the same total.
    label_noise : LabelNoise, optional
        The noise that the labels have, for which the loss is corrected; set by
        ``Privacy(labels=...)``.

    Examples
    --------
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
    label_noise: LabelNoise | None = field(default=None, repr=False)
    loss: Loss = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kind = LOSSES[self.kind]
        if kind.not_linear:
            raise ConfigError(
                f"model.kind: a linear model cannot have the {self.kind} loss, as "
                f"{kind.not_linear}. Trees can: "
                f'model: {{kind: trees, loss: {self.kind}}}, or mtcd.Trees("{self.kind}").'
            )
        # A setting that does nothing is refused: its user believes that the loss has changed.
        if not kind.uses_delta and self.delta != 1.0:
            raise ConfigError(
                f"model.delta belongs to the huber model: {self.kind} has no use for it."
            )
        if self.kind != "ridge" and self.alpha is not None:
            raise ConfigError(f"model.alpha belongs to ridge: call it l2 for {self.kind}.")
        if self.alpha is not None and self.l2 is not None:
            raise ConfigError(
                "model.alpha and model.l2 are the same thing for ridge: give one of them."
            )
        for name in ("alpha", "l1", "l2"):
            # Zero is a weight that was given, and None is not.
            if getattr(self, name) is not None:
                check_number(f"model.{name}", getattr(self, name))
        if not kind.uses_positive and self.positive is not None:
            raise ConfigError(f"positive names one of two classes: {self.kind} has no use for it.")
        if self.class_weight is not None:
            check_class_weight(self.class_weight)

        settings: dict[str, Any] = {}
        if kind.uses_delta:
            settings["delta"] = self.delta
        if self.positive is not None:
            settings["positive"] = self.positive

        loss = kind(**settings)
        if self.label_noise is not None:
            loss = self.label_noise.corrected(loss, self)
        object.__setattr__(self, "loss", loss)

    @property
    def l2_weight(self) -> float:
        """The l2 in use: ``alpha`` is another name for ridge, where the default is 1."""
        given = self.l2 if self.alpha is None else self.alpha
        if given is None:
            return 1.0 if self.kind == "ridge" else 0.0
        return float(given)

    def problem(self, data: VerticalData) -> LinearProblem:
        """This model on this data: one block per client, labels encoded."""
        data.check_complete("a linear model")
        loss, labels, classes = self.weighted(data.labels, data.weights)
        # Before anything is computed with a loss of the user's own: a wrong derivative shows as
        # slow or no convergence, and nobody would look for it there.
        check_own_loss(self.loss, labels)
        blocks = tuple(self.block(k, X) for k, X in enumerate(data.blocks))
        return LinearProblem(loss, labels, classes, blocks, self.penalties(len(blocks)))

    def weighted(
        self, labels: Labels, weights: Array | None = None
    ) -> tuple[Loss, Array, tuple[str | float, ...]]:
        """The loss with the weights of these samples and their classes; the encoded labels; the
        classes."""
        return loss_on(self.loss, self.kind, labels, weights, self.class_weight)

    def block(self, k: int, X: Block) -> Block:
        """The block of client k: its columns, and at the first client that of the intercept."""
        if self.intercept and k == 0:
            return _with_ones(X)
        return X

    def penalties(self, clients: int) -> tuple[Penalty, ...]:
        """r, client by client."""
        found = []
        for k in range(clients):
            # the intercept is the last column of the first client, and is not penalised
            free = int(self.intercept and k == 0)
            found.append(Penalty(float(self.l1), self.l2_weight, free))

        return tuple(found)


@dataclass(frozen=True, eq=False)
class LinearProblem:
    """A linear model on data: the models of the clients, and the measurements.

    Parameters
    ----------
    loss
        The loss, with the weights of samples.
    labels
        The encoded labels.
    classes
        The classes they stand for; empty in regression.
    blocks
        X_k, client by client.
    penalties
        r_k, client by client.
    evaluation
        The metrics of a score; none unless given.
    start
        theta_k at the start of a training; 0 unless given.
    """

    loss: Loss
    labels: Array
    classes: tuple[str | float, ...]
    blocks: tuple[Block, ...]
    penalties: tuple[Penalty, ...]
    evaluation: Evaluation | None = None
    start: tuple[Array, ...] | None = None

    @property
    def samples(self) -> int:
        """N, those that it is trained on."""
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
        """The problem of a process that has these blocks only: others have no columns, and there
        are no metrics."""
        # a block without columns changes no sum, so every index stays that of its client
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
        """The metrics, from the aggregate; those of a test set from the parameters of all
        clients."""
        if self.evaluation is None:
            return {}
        return self.evaluation.measured(aggregate, parameters)

    def score(self, parameters: Sequence[Array]) -> Score:
        """f and the metrics, from scratch."""
        aggregate = self.aggregate(parameters)
        metrics = self.metrics(aggregate, lambda: parameters)
        return Score(
            self._objective(aggregate, parameters), None, metrics.get("test_accuracy"), metrics
        )

    def evaluate(self, parameters: Sequence[Array]) -> float:
        """f, from the parameters of all clients: for measurements only."""
        return self._objective(self.aggregate(parameters), parameters)

    def _objective(self, aggregate: Array, parameters: Sequence[Array]) -> float:
        penalty = sum(r.value(theta) for r, theta in zip(self.penalties, parameters, strict=True))
        return self.fit.objective(aggregate, penalty)


def _with_ones(X: Block) -> Block:
    ones = np.ones((X.shape[0], 1))
    if is_sparse(X):
        return scipy.sparse.csr_array(scipy.sparse.hstack([X, ones]))
    # Columns first, as all dense blocks lie: products with X^T are faster, and their rounding is
    # that of the other blocks.
    return np.asfortranarray(np.hstack([X, ones]))
