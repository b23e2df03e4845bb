"""The training of an additive model: trees, or a family of its own at every party."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.core.errors import ConfigError
from mtcd.data.vertical import VerticalData
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.token_settings import GRADIENT
from mtcd.models.glm.checkpoints import array_checkpoints
from mtcd.models.metrics import chosen_metrics
from mtcd.models.trees.families.family import Family
from mtcd.models.trees.families.trees import TreeFamily
from mtcd.models.trees.gains import ComparedGains
from mtcd.models.trees.model import Additive
from mtcd.models.trees.problem import AdditiveProblem, Evaluation
from mtcd.models.trees.trained import TrainedAdditive
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.protocol.transports.registry import TRANSPORTS
from mtcd.training.divergence import worst_end_of
from mtcd.training.kinds import Request
from mtcd.training.pace import Growing, Pace
from mtcd.training.recipes import BlockRecipe
from mtcd.training.stop import Stop


class AdditiveTraining:
    """An additive model on vertically split data: see :class:`mtcd.training.train.Training`."""

    best = None  # f* of trees is not known

    def __init__(
        self,
        data: VerticalData,
        model: Additive,
        network: Network,
        method: Method,
        stop: Stop,
        seed: int,
        costs: Costs | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        metrics: Sequence[str] | None = None,
    ) -> None:
        self.data, self.model, self.network, self.stop, self.seed = data, model, network, stop, seed
        families = model.families(data.clients)
        self.method = additive_method(method, families)
        check_additive(method, families, stop)
        problem = AdditiveProblem.of(model, data, seed)
        chosen = chosen_metrics(metrics, len(problem.classes), model.plain_loss.gives_probabilities)
        self.problem = replace(problem, evaluation=Evaluation.of(chosen, data, problem.classes))
        self.worst_end = worst_end_of(self.method, linear=True)
        self.checkpoints = None
        if checkpoint is not None:
            self.checkpoints = array_checkpoints(
                Path(checkpoint), resume, data, repr(model), network, method, costs or Costs(), seed
            )

    def computing(self) -> AbstractContextManager[object]:
        """An empty context."""
        return nullcontext()

    def parties(self) -> Parties:
        """The parties, ready to start."""
        return self.method.parties(self.problem, self.network, self.seed)

    def recipe(self) -> BlockRecipe:
        """The same parties in several processes, with the blocks of this one."""
        return BlockRecipe(self.method, self.network, self.seed, self.problem)

    def ledger(self) -> Ledger:
        """An empty ledger; the bytes of a number are those of the transport."""
        return Ledger(float_bytes=TRANSPORTS[self.method.transport].dtype.itemsize)

    @property
    def pace(self) -> Pace:
        """A measurement whenever the iterations have grown by 1%."""
        return Growing(self.stop.epoch(self.method, self.problem.samples))

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on data, classes and method."""
        classes = self.model.plain_loss.class_notes(self.problem.classes, self.problem.samples)
        return (*self.data.notes, *classes, *self.method.notes(self.network))

    def trained(self, parameters: Sequence[Any]) -> TrainedAdditive | None:
        """The model; None if it is not finite."""
        if not all(
            np.isfinite(theta).all() for theta in parameters if isinstance(theta, np.ndarray)
        ):
            return None
        parts = [self.problem.client(k).finish(theta) for k, theta in enumerate(parameters)]
        return TrainedAdditive.assemble(
            self.model, self.data, self.problem.classes, parts, self.problem.shift
        )

    def divergence(self, measured: bool) -> str:
        """The reason of a divergence, and advice."""
        return (
            "Diverged: the loss grew beyond where it started, as the syncs added changes of "
            "several tokens. Set "
            "combine: optimal, a smaller model.learning_rate, or fewer hops."
        )


def additive_method(method: Method, families: Sequence[Family]) -> Method:
    """The method as families need it: its tokens carry gains if parties with trees compare them.

    Its step size is the learning rate of the trees, for the record: families choose their own.
    """
    if isinstance(method, MTCD):
        method = replace(
            method, features=(ComparedGains(len(families)),) if compares_gains(families) else ()
        )
    if method.stepsize != "auto":
        return method
    rates = [family.learning_rate for family in families if isinstance(family, TreeFamily)]
    return method.with_resolved_stepsize(max(rates, default=1.0))


def compares_gains(families: Sequence[Family]) -> bool:
    """Whether at least two parties choose by their gains how many trees to grow."""
    return sum(isinstance(family, TreeFamily) and family.adaptive for family in families) > 1


def check_additive(method: Method, families: Sequence[Family], stop: Stop) -> None:
    """Reject settings that rest on linear representations or on gradient steps of one size."""
    kinds = " and ".join(sorted({family.kind for family in families}))
    if not isinstance(method, MTCD) and method.kind in ("stcd", "mtcd"):
        raise ConfigError(
            f"privacy.mode: sealed tours hide the derivatives of each sample, from which {kinds} "
            f"learn: leave it out, "
            "or train a linear model (docs/trees.md)."
        )
    if not isinstance(method, MTCD):
        served = " (without hops between clients: a cluster per client, hops: 1, combine: optimal)"
        raise ConfigError(
            f"{method.kind} trains linear models only: use mtcd or stcd for {kinds}"
            f"{served if method.kind == 'svfl' else ''}."
        )
    for name, given, why in (
        ("acceleration", method.acceleration, "extrapolates parameters, which trees do not have"),
        (
            "batch",
            method.batch,
            "samples mini-batches; trees see all samples: use model.rows to subsample",
        ),
        ("schedule", method.schedule, "changes the step size; trees have model.learning_rate"),
        ("fusion_updates", method.fusion_updates, "is for split networks"),
        (
            "local_solver",
            None if method.local_solver == GRADIENT else method.local_solver,
            "is for linear models",
        ),
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
    crossing = method.hops is not None and not method.one_token_per_client
    if crossing and not all(family.additive for family in families):
        raise ConfigError(
            "A net's copies cannot be averaged: with a party of the family net, use stcd, one "
            "token, or a token per "
            "cluster (combine: cluster)."
        )


class AdditiveKind:
    """Trees, and other families whose outputs are added."""

    linear = True
    reads_sources = False

    def check(self, asked: Request) -> None:
        """Tables only; trees need no scaling, no device and no start."""
        if not isinstance(asked.data, VerticalData):
            raise ConfigError(
                "Trees are trained on VerticalData, a table: make it with mtcd.split or "
                "mtcd.read_tables."
            )
        asked.refuse("is not for trees: leave it out.", "compute", "standardise", "start")

    def default_stop(self, method: Method) -> Stop:
        """Few iterations: each grows trees."""
        return Stop(iterations=100)

    def training(self, asked: Request) -> AdditiveTraining:
        """The training."""
        a = asked
        assert a.stop is not None
        parts = (a.data, a.model, a.network, a.method, a.stop, a.seed, a.costs)
        return AdditiveTraining(*parts, a.checkpoint, a.resume, a.metrics)


ADDITIVE = AdditiveKind()
