"""The training of an additive model: trees, or a family of its own at every party."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method
from mtcd.methods.mtcd.checks import GRADIENT
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.checkpoints import array_checkpoints
from mtcd.models.metrics import chosen_metrics
from mtcd.models.trees.families.family import Family
from mtcd.models.trees.families.trees import TreeFamily
from mtcd.models.trees.gains import ComparedGains
from mtcd.models.trees.problem import AdditiveEvaluation, AdditiveProblem
from mtcd.models.trees.trained import TrainedAdditive
from mtcd.training.divergence import worst_end_of
from mtcd.training.kinds import Request
from mtcd.training.stop import Stop
from mtcd.training.training import Training


class AdditiveTraining(Training):
    """An additive model on vertically split data."""

    def __init__(self, asked: Request) -> None:
        assert asked.stop is not None  # a request is complete when its training is made
        self.data = asked.data
        self.model = asked.model
        self.network = asked.network
        self.stop, self.seed = asked.stop, asked.seed
        families = self.model.families(self.data.clients)
        # First the method as trees need it, then the checks of what the user gave.
        self.method = additive_method(asked.method, families)
        check_additive(asked.method, families, self.stop)

        problem = AdditiveProblem.of(self.model, self.data, self.seed)
        gives = self.model.plain_loss.gives_probabilities
        chosen = chosen_metrics(asked.metrics, len(problem.classes), gives)
        self.problem = replace(
            problem, evaluation=AdditiveEvaluation.of(chosen, self.data, problem.classes)
        )
        self.worst_end = worst_end_of(self.method, linear=True)
        self.checkpoints = array_checkpoints(asked, self.data)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on data, classes and method."""
        classes = self.model.plain_loss.class_notes(self.problem.classes, self.problem.samples)
        return (*self.data.notes, *classes, *self.method.notes(self.network))

    def trained(self, parameters: Sequence[Any]) -> TrainedAdditive | None:
        """The trained model; None if its parameters are not finite."""
        # ensembles of trees are finite by construction: a tree is added only if it lowers the loss
        arrays = [theta for theta in parameters if isinstance(theta, np.ndarray)]
        if not all(np.isfinite(theta).all() for theta in arrays):
            return None
        parts = [self.problem.client(k).finish(theta) for k, theta in enumerate(parameters)]
        return TrainedAdditive.assemble(
            self.model, self.data, self.problem.classes, parts, self.problem.shift
        )

    def divergence(self, measured: bool) -> str:
        """The reason of a divergence, and advice."""
        return (
            "Diverged: the loss grew beyond where it started, as the syncs added changes of "
            "several tokens. Set combine: optimal, a smaller model.learning_rate, or fewer hops."
        )


def additive_method(method: Method, families: Sequence[Family]) -> Method:
    """The method as families need it: its tokens carry gains if parties with trees compare them.

    Its step size is the learning rate of the trees, for the record: families choose their own.
    """
    if isinstance(method, MTCD):
        features: tuple[ComparedGains, ...] = ()
        if compares_gains(families):
            features = (ComparedGains(len(families)),)
        method = replace(method, features=features)
    if method.stepsize != "auto":
        return method
    rates = [family.learning_rate for family in families if isinstance(family, TreeFamily)]
    return method.with_stepsize(max(rates, default=1.0))


def compares_gains(families: Sequence[Family]) -> bool:
    """Whether at least two parties choose by their gains how many trees to grow."""
    adaptive = [family for family in families if isinstance(family, TreeFamily) and family.adaptive]
    # A single one has nobody to compare with.
    return len(adaptive) > 1


def check_additive(method: Method, families: Sequence[Family], stop: Stop) -> None:
    """Reject settings that rest on linear representations or on gradient steps of one size.

    Raises
    ------
    ConfigError
        With the name of the setting, the reason, and what to do.
    """
    kinds = " and ".join(sorted({family.kind for family in families}))
    # Of these kinds only sealed tours are no MTCD.
    if not isinstance(method, MTCD) and method.kind in ("stcd", "mtcd"):
        raise ConfigError(
            f"privacy.mode: sealed tours hide the derivatives of each sample, from which {kinds} "
            "learn: leave it out, or train a linear model (docs/trees.md)."
        )
    if not isinstance(method, MTCD):
        instead = ""
        if method.kind == "svfl":
            instead = (
                " (without hops between clients: a cluster per client, hops: 1, combine: optimal)"
            )
        raise ConfigError(
            f"{method.kind} trains linear models only: use mtcd or stcd for {kinds}{instead}."
        )

    own_solver = None if method.local_solver == GRADIENT else method.local_solver
    for name, given, why in (
        ("acceleration", method.acceleration, "extrapolates parameters, which trees do not have"),
        (
            "batch",
            method.batch,
            "samples mini-batches; trees see all samples: use model.rows to subsample",
        ),
        ("schedule", method.schedule, "changes the step size; trees have model.learning_rate"),
        ("fusion_updates", method.fusion_updates, "is for split networks"),
        ("local_solver", own_solver, "is for linear models"),
    ):
        if given is not None:
            raise ConfigError(f"method.{name} {why}: leave it out for {kinds}.")
    if method.stepsize != "auto":
        raise ConfigError(
            f"method.stepsize is for linear models: leave it out for {kinds}, and set "
            f"model.learning_rate for trees."
        )
    if stop.gap is not None:
        raise ConfigError(
            f"stop.gap needs the optimum, which is not known for {kinds}: use stop.iterations or "
            f"plateau."
        )

    # where several tokens may visit a client before a sync, its copies have to be combined
    crossing = method.hops is not None and not method.one_token_per_client
    if crossing and not all(family.additive for family in families):
        raise ConfigError(
            "A net's copies cannot be averaged: with a party of the family net, use stcd, one "
            "token, or a token per cluster (combine: cluster)."
        )
