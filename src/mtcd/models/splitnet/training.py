"""The training of a split network: its threads, its checkpoints, and the trained modules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.methods.method import Method, resolved_stepsize
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.metrics import chosen_metrics
from mtcd.models.splitnet.checkpoints import split_checkpoints
from mtcd.models.splitnet.problem import NetProblem
from mtcd.models.splitnet.recipe import SplitRecipe
from mtcd.models.splitnet.setup import split_parties
from mtcd.models.splitnet.trained import TrainedSplit
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.training.compute import Compute
from mtcd.training.divergence import worst_end_of
from mtcd.training.kinds import Request
from mtcd.training.pace import Epochs, Growing, Pace
from mtcd.training.stop import Stop
from mtcd.training.training import Training

SPACING = 1.1  # with the full batch: measure when the iterations have grown by this factor
FLOAT_BYTES = 4
LITTLE_WORK = 5_000_000  # parameters times samples: see benchmarks/networks.py


class SplitTraining(Training):
    """A module per client and a fusion module, on samples of any shape."""

    def __init__(self, asked: Request) -> None:
        assert asked.stop is not None  # a request is complete when its training is made
        self.network = asked.network
        self.method = asked.method
        self.seed = asked.seed
        self.stop = asked.stop
        check_split(self.method, self.stop)

        compute = asked.compute or Compute()
        self.threads = compute.threads
        self.problem: NetProblem = asked.model.problem(asked.data, compute, self.seed)
        classes = self.problem.classes or ()
        self.problem.chosen = chosen_metrics(asked.metrics, len(classes), bool(classes))
        self.worst_end = worst_end_of(self.method, linear=False)
        self.checkpoints = split_checkpoints(asked, self.problem)

    def computing(self) -> AbstractContextManager[object]:
        """The context with the chosen number of threads."""
        return _threads(self._thread_count)

    @property
    def _thread_count(self) -> int | None:
        """Threads for one operation; None for PyTorch's choice."""
        # The largest network decides: threads are set once for all.
        largest = max(net.size for net in self.problem.nets)
        batch = self.method.batch or self.problem.samples
        return self.threads or few_threads(largest, batch)

    def parties(self) -> Parties:
        """The parties, ready to start."""
        return split_parties(self.method, self.problem, self.network, self.seed).parties()

    def recipe(self) -> SplitRecipe:
        """The same parties in several processes, with the networks and samples of this one."""
        return SplitRecipe(self.method, self.network, self.seed, self.problem, self._thread_count)

    def ledger(self) -> Ledger:
        """An empty ledger for float32."""
        return Ledger(float_bytes=FLOAT_BYTES)

    @property
    def pace(self) -> Pace:
        """A measurement per epoch; with the full batch, whenever the iterations have grown by
        10%."""
        return pace_of(self.method, self.stop, self.problem.samples)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on data, networks and method."""
        own = outside_guarantee(self.method)
        return (
            *self.problem.data.notes,
            *self.problem.notes,
            *own,
            *self.method.notes(self.network),
        )

    def trained(self, parameters: Sequence[Mapping[str, Any]]) -> TrainedSplit:
        """The trained modules of all parties."""
        self.problem.hold(parameters)
        return assemble(self.problem)

    def divergence(self, measured: bool) -> str:
        """The reason of a divergence, and advice."""
        if not measured:
            raise MtcdError(
                "The loss is not a finite number before training: check the features and the "
                "outputs of the modules."
            )
        return (
            "Diverged: the loss is no longer finite, or grew far above its start, with a stepsize "
            f"of {resolved_stepsize(self.method):.4g}. Set a smaller stepsize, or fewer "
            "local_updates."
        )


def pace_of(method: Method, stop: Stop, samples: int) -> Pace:
    """The spacing of measurements, in any engine: every epoch, or with the full batch geometric."""
    epoch = stop.epoch(method, samples)
    if epoch is None or method.batch is None:
        return Growing(epoch, SPACING)
    return Epochs(epoch)


def assemble(problem: NetProblem) -> TrainedSplit:
    """The trained modules of all parties."""
    modules = {}
    for client, net in zip(problem.clients, problem.nets, strict=True):
        modules[client] = net.finished().cpu()
    aggregation = problem.around.aggregation
    return TrainedSplit(
        modules,
        problem.fusion.finished().cpu(),
        problem.model.aggregation,
        aggregation.widths,
        problem.classes,
        problem.data.shapes,
        None if problem.data.table is None else problem.data.table.preparations,
        problem.data.columns,
    )


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """The context with this number of threads for one operation."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def few_threads(size: int, batch: int) -> int | None:
    """One thread for updates so small that several would be slower; None: PyTorch's choice."""
    if batch * size < LITTLE_WORK:
        return 1
    return None


def check_split(method: Method, stop: Stop) -> None:
    """Reject settings that are for linear models."""
    if method.stepsize == "auto":
        raise ConfigError(
            "stepsize 'auto' needs the smoothness of a linear model: give a number for split "
            "networks, such as "
            "method=mtcd.MTCD(stepsize=0.05), or in a config method: {stepsize: 0.05}."
        )
    if stop.gap is not None:
        raise ConfigError(
            "stop.gap needs the optimum, which is not known for split networks: use stop.epochs."
        )


def outside_guarantee(method: Method) -> tuple[str, ...]:
    """Notes on settings that the paper's guarantee does not cover."""
    if (
        not isinstance(method, MTCD)
        or method.tokens in (None, 1)
        or method.combine_rule == "cluster"
    ):
        return ()
    return (
        "Tokens may cross: the paper's guarantee for objectives that are not convex is for a token "
        "per cluster only.",
    )
