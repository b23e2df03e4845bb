"""An additive model on data: the models of the clients, and the measurements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from mtcd.core.arrays import Array
from mtcd.data.vertical import Block, VerticalData
from mtcd.models.glm.evaluation import known_labels, linear_outputs
from mtcd.models.glm.fit import LabelFit
from mtcd.models.losses import Labels, Loss
from mtcd.models.losses.own import check_own_loss
from mtcd.models.losses.shifted import Shifted
from mtcd.models.metrics import Metrics, Outputs
from mtcd.models.metrics.metric import Score
from mtcd.models.trees.families.family import Family, Inputs, PartyModel
from mtcd.models.trees.model import Additive

Thetas = Sequence[Any]


@dataclass(frozen=True, eq=False)
class AdditiveProblem:
    """A family and a block for every client, and the loss around the constant c.

    In a federation, and in a process of several, only the process's own blocks have columns.
    """

    families: tuple[Family, ...]
    blocks: tuple[Block, ...]
    categorical: tuple[tuple[int, ...], ...]
    fit: LabelFit
    shift: Array
    """The constant c that the model starts from; the loss of ``fit`` contains it."""
    classes: tuple[str | float, ...]
    seed: int
    evaluation: AdditiveEvaluation | None = None
    _made: dict[int, PartyModel] = field(default_factory=dict)

    warm = False  # all families start with margins of 0

    @staticmethod
    def of(model: Additive, data: VerticalData, seed: int) -> AdditiveProblem:
        """The problem of a model on data.

        Raises
        ------
        DataError
            If values are missing at a client whose family does not take missing values.
        """
        fit, shift, classes = fit_of(model, data.labels, data.weights)
        families = model.families(data.clients)
        need_all_values = []
        for client, family in zip(data.clients, families, strict=True):
            if not family.keeps_missing:
                need_all_values.append(client)
        data.check_complete("its model", need_all_values)
        return AdditiveProblem(families, data.blocks, data.categorical, fit, shift, classes, seed)

    @property
    def samples(self) -> int:
        """N, the number of training samples."""
        return len(self.fit.labels)

    @property
    def labels(self) -> Array:
        """The labels as the loss encodes them."""
        return self.fit.labels

    @property
    def loss(self) -> Loss:
        """The loss of the aggregate, which the constant is not part of."""
        return self.fit.loss

    @property
    def outputs(self) -> int:
        """Numbers per sample in a representation."""
        return self.loss.outputs(self.classes)

    @property
    def nonsmooth(self) -> bool:
        """Whether r has a part that is not smooth."""
        return any(family.nonsmooth for family in self.families)

    def client(self, k: int) -> PartyModel:
        """The model of client k, made once: it holds prepared columns."""
        if k not in self._made:
            inputs = Inputs(k, self.blocks[k], self.categorical[k], self.fit, self.seed)
            self._made[k] = self.families[k].client(inputs)
        return self._made[k]

    def with_blocks(self, own: Mapping[int, Block]) -> Self:
        """The problem of a process that has these blocks only: others have no columns, and there
        are no metrics.

        All families are kept, as the sync may depend on the penalties of all.
        """
        # Indices stay those of the clients, and sums do not change.
        nothing = np.zeros((self.samples, 0))
        blocks: list[Block] = []
        categorical: list[tuple[int, ...]] = []
        for k in range(len(self.families)):
            blocks.append(own.get(k, nothing))
            categorical.append(self.categorical[k] if k in own else ())
        return replace(
            self,
            blocks=tuple(blocks),
            categorical=tuple(categorical),
            evaluation=None,
            # Not copied: models that were made hold the columns of the old blocks.
            _made={},
        )

    def aggregate(self, parameters: Thetas) -> Array:
        """The aggregate H = sum_k h_k(theta_k), without the constant."""
        total = np.zeros(self.labels.shape)
        for k, theta in enumerate(parameters):
            total += self.client(k).represent(theta)
        return total

    def read_off(self, aggregate: Array, penalty: float) -> float:
        """f, from what a token carries: the aggregate and the sum of penalties."""
        return self.fit.objective(aggregate, penalty)

    def metrics(self, aggregate: Array, parameters: Callable[[], Thetas]) -> dict[str, float]:
        """The metrics by name.

        Training metrics follow from the aggregate. ``parameters`` is called only if there is a test
        set, whose aggregate needs the models of all clients.
        """
        if self.evaluation is None:
            return {}
        return self.evaluation.measured(self, aggregate, parameters)

    def score(self, parameters: Thetas) -> Score:
        """f and the metrics, from scratch."""
        aggregate = self.aggregate(parameters)
        metrics = self.metrics(aggregate, lambda: parameters)
        objective = self._objective(aggregate, parameters)
        return Score(objective, None, metrics.get("test_accuracy"), metrics)

    def evaluate(self, parameters: Thetas) -> float:
        """f, from the parameters of all clients: for measurements only."""
        return self._objective(self.aggregate(parameters), parameters)

    def _objective(self, aggregate: Array, parameters: Thetas) -> float:
        penalty = sum(self.client(k).penalty(theta) for k, theta in enumerate(parameters))
        return self.fit.objective(aggregate, penalty)


def fit_of(
    model: Additive, labels: Labels, weights: Array | None
) -> tuple[LabelFit, Array, tuple[str | float, ...]]:
    """The loss around the constant that minimises it, with the labels; that constant; the classes.

    Every party with the labels computes the same constant, so that it is never sent.
    """
    loss, encoded, classes = model.weighted(labels, weights)
    # without a check of the curvature, which trees do not rely on
    check_own_loss(model.plain_loss, encoded, bounded=False)
    # Without a start of its own the first trees would only learn the constant.
    shift = loss.best_shift(np.zeros(encoded.shape), encoded)
    return LabelFit(Shifted(loss, shift), encoded), shift, classes


@dataclass(frozen=True, eq=False)
class AdditiveEvaluation:
    """Which metrics to compute on the training samples, and on those that were held out."""

    chosen: Metrics
    labels: Array
    test: VerticalData | None
    names: tuple[str | float, ...]

    @staticmethod
    def of(
        chosen: Metrics, data: VerticalData, classes: tuple[str | float, ...]
    ) -> AdditiveEvaluation:
        """The metrics of this data and its test set."""
        return AdditiveEvaluation(chosen, known_labels(data.labels, classes), data.test, classes)

    @cached_property
    def _test_labels(self) -> Array:
        assert self.test is not None
        return known_labels(self.test.labels, self.names)

    def measured(
        self, problem: AdditiveProblem, aggregate: Array, parameters: Callable[[], Thetas]
    ) -> dict[str, float]:
        """The metrics on the training samples and on the test set, by name."""
        if not self.chosen:
            return {}
        outputs = self._outputs(problem, self.labels, aggregate)
        found = self.chosen.measured("train", outputs)
        if self.test is not None:
            margins = []
            for k, theta in enumerate(parameters()):
                margins.append(problem.client(k).margins(theta, self.test.blocks[k]))
            held_out = self._outputs(problem, self._test_labels, np.asarray(sum(margins)))
            found |= self.chosen.measured("test", held_out)
        return found

    def _outputs(self, problem: AdditiveProblem, labels: Array, aggregate: Array) -> Outputs:
        return linear_outputs(problem.loss, self.names, labels, aggregate)
