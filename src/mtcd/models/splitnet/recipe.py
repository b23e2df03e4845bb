"""The recipe of a split network: how the parties of some clients are made in another process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from mtcd.methods.method import Method
from mtcd.models.metrics import Metrics
from mtcd.models.splitnet.aggregation import Aggregation
from mtcd.models.splitnet.client import Loss, NetClient, Surroundings
from mtcd.models.splitnet.feed import Transform, make_source
from mtcd.models.splitnet.modules import Trainable
from mtcd.models.splitnet.optimiser import MakeOptimiser
from mtcd.models.splitnet.problem import NetProblem, Stage, find_device
from mtcd.models.splitnet.setup import split_parties
from mtcd.models.splitnet.trial import SAMPLES
from mtcd.network.topology import Network
from mtcd.protocol.batches import Batches
from mtcd.protocol.party import Parties
from mtcd.training.compute import Compute
from mtcd.training.training import MethodRecipe


@dataclass(frozen=True, eq=False)
class SplitShare:
    """The parties of a split network, of which this process has some modules."""

    method: Method
    network: Network
    seed: int
    part: HostedPart
    threads: int | None

    def parties(self) -> Parties:
        """The parties; networks of clients elsewhere are placeholders."""
        # A global setting of PyTorch: this process trains nothing else.
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        # on a GPU: visits run in a thread of their own, where cuBLAS sets up the context itself
        warnings.filterwarnings(
            "ignore", "Attempting to run cuBLAS, but there was no current CUDA context"
        )
        return split_parties(self.method, HostedNets(self.part), self.network, self.seed).parties()

    def aggregate(self, parameters: Mapping[int, Any]) -> Any:
        """Not available: networks are measured where the driver is."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class SplitRecipe(MethodRecipe):
    """A split network whose modules and samples are in this process: each share takes its own
    along."""

    problem: NetProblem
    threads: int | None = None

    def device(self) -> str:
        """A GPU where this process uses one, since both compute with the same tensors; else as the
        settings say."""
        if self.problem.device.type == "cuda":
            return "cuda"
        return self.problem.compute.device

    def weights(self) -> Sequence[int]:
        """The number of parameters of each client's module."""
        return [max(1, net.size) for net in self.problem.nets]

    def share(self, clients: Sequence[int]) -> SplitShare:
        """The parties with the modules and samples of these clients."""
        part = HostedPart.of(self.problem, clients)
        return SplitShare(self.method, replace(self.network), self.seed, part, self.threads)


@dataclass(frozen=True, eq=False)
class HostedPart:
    """What a process needs, with the samples and networks of its own clients only. All modules are
    initialised."""

    clients: tuple[str, ...]
    modules: Mapping[int, nn.Module]
    features: Mapping[int, Any]
    transforms: Mapping[str, Transform]
    fusion: nn.Module
    labels: Tensor
    loss: Loss
    aggregation: Aggregation
    optimiser: MakeOptimiser | None
    compute: Compute
    seed: int
    draws: bool

    @staticmethod
    def of(problem: NetProblem, own: Sequence[int]) -> HostedPart:
        """The part with the networks of these clients."""
        data, around = problem.data, problem.around
        transforms = {}
        for name, one in (data.transforms or {}).items():
            if data.clients.index(name) in own:
                transforms[name] = one
        return HostedPart(
            problem.clients,
            # On the CPU: tensors of a GPU cannot be sent to another process.
            {k: problem.nets[k].finished().cpu() for k in own},
            {k: data.features[data.clients[k]] for k in own},
            transforms,
            problem.fusion.finished().cpu(),
            problem.labels.cpu(),
            around.loss,
            around.aggregation,
            problem.model.optimiser,
            # GPUs are numbered anew there
            replace(problem.compute, device=problem.compute.device.partition(":")[0]),
            problem.seed,
            around.draws,
        )


@dataclass(frozen=True, eq=False)
class _Named:
    """What is left of the data in a process that has some of it."""

    clients: tuple[str, ...]
    transforms: Mapping[str, Transform]
    samples: int
    test: None = None


class HostedNets(NetProblem):
    """A split network of which this process has a part: for training, not for measurements."""

    def __init__(self, part: HostedPart) -> None:
        self.part = part
        self.compute = part.compute
        self.seed = part.seed
        self.model: Any = part  # of which the optimiser is used
        self.data: Any = _Named(part.clients, part.transforms, len(part.labels))
        self.device = find_device(part.compute.device)
        self.labels = part.labels.to(self.device)
        self.classes = None
        self.notes = ()
        self.graphs, self.make_optimiser = self._graphs()
        self.nets: Any = []
        self.sources: Any = []
        # Lists over all clients: number k keeps its place, and those that live elsewhere are None.
        for k, client in enumerate(part.clients):
            net, source = None, None
            if k in part.modules:
                net = Trainable(part.modules[k], self.device, self.make_optimiser)
                source = make_source(part.features[k], client, self.device)
            self.nets.append(net)
            self.sources.append(source)
        for k in part.modules:
            self.nets[k].choose_layout(self.sources[k].rows(torch.arange(SAMPLES)))
        self.fusion = Trainable(part.fusion, self.device, self.make_optimiser)
        mixed = part.compute.precision == "mixed"
        self.around = Surroundings(
            part.loss, part.aggregation, self.device, mixed, part.seed, part.draws
        )
        self.staged: list[NetClient] = []
        self.chosen = Metrics({})

    def stage(self, batches: Batches, lanes: int) -> Stage:
        """In one lane: tokens come and go in other threads, whose copies a lane of its own would
        not wait for."""
        return super().stage(batches, 1)

    @property
    def numbers(self) -> Sequence[int]:
        """The clients whose networks are here."""
        return sorted(self.part.modules)
