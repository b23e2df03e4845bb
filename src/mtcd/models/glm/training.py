"""The training of a linear model: its step size, its optimum, and the advice if it diverges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.data.standardise import Scaling
from mtcd.data.standardise import standardise as standardised
from mtcd.data.vertical import VerticalData
from mtcd.methods.conditions import Account
from mtcd.methods.method import Method, resolve_stepsize, resolved_stepsize
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.checkpoints import linear_checkpoints
from mtcd.models.glm.evaluation import Evaluation, TestSet, known_labels
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.models.glm.optimum.optimum import cached_optimum, optimum
from mtcd.models.glm.starts import starting_at
from mtcd.models.glm.trained import TrainedModel
from mtcd.models.losses import Labels
from mtcd.models.losses.own import is_built_in
from mtcd.models.metrics import chosen_metrics
from mtcd.network.topology import Network
from mtcd.theory.stepsize import stability_limit
from mtcd.training.divergence import allowing, worst_end_of
from mtcd.training.history import Measurement
from mtcd.training.kinds import Request
from mtcd.training.run import Run
from mtcd.training.training import Training


class LinearTraining(Training):
    """A generalised linear model on vertically split data."""

    def __init__(self, asked: Request) -> None:
        model, network, method = asked.model, asked.network, asked.method
        self.scaling: Scaling | None = None
        self.data = asked.data
        if asked.standardise:
            self.data, self.scaling = standardised(asked.data)

        self.model, self.network, self.seed = model, network, asked.seed
        problem = model.problem(self.data)
        assert asked.stop is not None  # a request is complete when its training is made
        # Sealed tours have a limit of their own, from the numbers of columns: the stop rule must
        # not be beyond it.
        self.stop = asked.stop.at_most(method.conditions.most_iterations(problem))
        self.problem = replace(
            problem, evaluation=evaluation_of(model, self.data, problem.classes, asked.metrics)
        )
        # After the metrics: a start changes where the training begins, and not what is measured.
        if asked.start is not None:
            check_start(method, network)
            start = asked.start
            trained = start_of(start) if isinstance(start, Run) else start
            self.problem = starting_at(trained, model, self.data, self.problem, self.scaling)

        self.smoothness = BlockSmoothness(self.problem)
        self.method, self._stepsize_notes = resolve_stepsize(method, self.smoothness)
        self.worst_end = worst_end_of(self.method, linear=True)
        # a good start may be left, as long as the end is no worse than 0
        if self.problem.start is not None:
            # f at theta = 0, where any training without a start would begin.
            at_zero = self.problem.read_off(np.zeros(self.problem.labels.shape), 0.0)
            self.worst_end = allowing(
                self.worst_end, self.problem.evaluate(self.problem.start), at_zero
            )
        self.checkpoints = linear_checkpoints(asked, self.data, self.problem.start)

    @property
    def best(self) -> float | None:
        """f*, if a gap is requested."""
        if self.stop.gap is None:  # it takes as long as many a training
            return None
        return best_objective(self.data, self.model, self.problem)

    def account(self) -> Account:
        """The account of the tables, where the method has one."""
        place, resumes = None, False
        if self.checkpoints is not None:
            place, resumes = self.checkpoints.path.parent, self.checkpoints.resumes

        return self.method.conditions.account(
            self.network, self.data.tables, self.stop.iterations, place, resumes
        )

    def chosen(self, slots: Mapping[str, Any]) -> tuple[str, ...]:
        """The steps of tours that choose them."""
        if not isinstance(self.method, MTCD):
            return ()
        return self.method.chosen(slots, self.smoothness)

    def end_notes(self, begun: int, rows: Sequence[Measurement]) -> tuple[str, ...]:
        """The notes on the end, also on one that the number of columns sets."""
        most = self.method.conditions.most_iterations(self.problem)
        known = [(row.iteration, row.objective) for row in rows]
        return self.method.conditions.end_notes(self.network, begun, most, known)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on data, classes, step size and method."""
        classes = self.model.loss.class_notes(self.problem.classes, self.problem.samples)
        return (*self.data.notes, *classes, *self._stepsize_notes, *self.method.notes(self.network))

    def trained(self, parameters: Sequence[Array]) -> TrainedModel | None:
        """The model; None if it is not finite."""
        # Parameters that overflowed predict nothing: a run without a model says so, and a model of
        # NaN would not.
        if not all(np.isfinite(theta).all() for theta in parameters):
            return None
        return TrainedModel.assemble(
            self.model, self.data, self.problem.classes, list(parameters), self.scaling
        )

    def divergence(self, measured: bool) -> str:
        """The reason of a divergence, and advice."""
        method = self.method
        if method.stepsize is None:
            return (
                "Diverged: the numbers grew beyond what floats can hold. The features are too "
                "large, or too different "
                f"in size: scale them (standardise: true).{self._curvature_advice()}"
            )
        limit = method.stepsize_rules(self.smoothness).limit
        said = (
            "Diverged: the objective grew beyond where it started, with a stepsize of "
            f"{method.stepsize:.4g}"
        )
        # Which advice helps depends on whether the step size is within its limit: then it is the
        # noise of batches, or a curvature that is too small.
        within = resolved_stepsize(method) <= limit.value
        if method.batch is not None and within:
            return (
                f"{said}. Mini-batches of {method.batch} are too noisy for it: set a larger batch "
                f"or a smaller "
                f"stepsize.{self._curvature_advice()}"
            )
        if within:
            return (
                f"{said}. As a rule one of up to {limit.value:.4g} works ({limit.reason}), but "
                f"here it does not: set "
                f"a smaller stepsize.{self._curvature_advice()}"
            )
        alone = ""
        if method.gradient_steps:
            alone = f"; above {stability_limit(self.smoothness):.4g} a client alone can diverge"
        return (
            f"{said}, which is too large. It is {'guaranteed' if limit.proven else 'likely'} to "
            f"work up to "
            f"{limit.value:.4g} ({limit.reason}){alone}. "
            "Set a smaller stepsize, or stepsize: auto."
        )

    def _curvature_advice(self) -> str:
        """What may be wrong with a loss of the user's own, from which all limits follow; empty for
        built-in ones."""
        loss = self.model.loss
        if is_built_in(loss):
            return ""
        return (
            f" The curvature of the loss {type(loss).__name__}, {loss.curvature:.4g}, may be too "
            f"small, from which "
            "the lengths of steps follow: set it to the largest second derivative of one sample, "
            "for any z."
        )


def check_start(method: Method, network: Network) -> None:
    """Reject a start other than 0 for methods that have none."""
    if not method.warm_starts:
        raise ConfigError(f"{method.kind} starts at 0: leave start out, or use mtcd, stcd or svfl.")
    if network.changes:
        raise ConfigError(
            "start is not for networks that change (network.changes): leave one of both out."
        )


def evaluation_of(
    model: Glm, data: VerticalData, classes: tuple[str | float, ...], names: Sequence[str] | None
) -> Evaluation:
    """The metrics of these names on the data and its test set."""
    metrics = chosen_metrics(names, len(classes), model.loss.gives_probabilities)

    def known(labels: Labels) -> Labels:
        noise = model.label_noise
        # Metrics are of the true labels, as far as they are known; the loss is corrected for the
        # noise.
        return known_labels(labels if noise is None else noise.as_known(labels), classes)

    test = None
    if data.test is not None:
        blocks = tuple(model.block(k, X) for k, X in enumerate(data.test.blocks))
        test = TestSet(blocks, known(data.test.labels))
    return Evaluation(metrics, model.loss, classes, known(data.labels), test)


def best_objective(data: VerticalData, model: Glm, problem: LinearProblem) -> float:
    """f*, from the cache if this data and model are in it.

    That of a user's own loss is computed every time: its code may have changed since. So is that of
    a loss that is corrected for noise in the labels, which the name of the model does not tell.
    """

    def compute() -> float:
        return optimum(problem.blocks, problem.labels, problem.loss, problem.penalties).value

    if not is_built_in(problem.loss) or model.label_noise is not None:
        return compute()
    key = f"1 {data.fingerprint} {model}"  # count up when the solver changes
    return cached_optimum(key, compute)


def start_of(run: Run) -> TrainedModel:
    """The linear model of an earlier run; an error if it trained another kind, or diverged."""
    trained = run.trained()
    if not isinstance(trained, TrainedModel):
        raise trained.missing("parameters")
    return trained
