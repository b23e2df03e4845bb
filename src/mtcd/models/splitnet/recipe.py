"""The recipe of a split network: how the parties of some clients are made in another process."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from mtcd.methods.method import Method
from mtcd.models.splitnet.hosted import HostedNets, HostedPart
from mtcd.models.splitnet.problem import NetProblem
from mtcd.models.splitnet.setup import split_parties
from mtcd.network.topology import Network
from mtcd.protocol.party import Parties
from mtcd.training.recipes import MethodRecipe


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
