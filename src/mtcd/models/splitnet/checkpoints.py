"""Checkpoints of split networks: one safetensors file, written at every measurement."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from mtcd.core.files import CHECKPOINT
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.splitnet.checkpoint import Checkpoint
from mtcd.models.splitnet.optimiser import describe_optimiser
from mtcd.models.splitnet.problem import NetProblem
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.checkpoints import Checkpoints, Spacing, training_facts
from mtcd.training.kinds import Request


class TensorFile:
    """A safetensors file; tensors are read onto the device."""

    name = CHECKPOINT

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def write(self, path: Path, facts: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        Checkpoint(tensors, facts).write(path)

    def read(self, path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        saved = Checkpoint.read(path)
        return saved.facts, {name: value.to(self.device) for name, value in saved.tensors.items()}


def split_checkpoints(asked: Request, problem: NetProblem) -> Checkpoints | None:
    """The checkpoints of a split network; None where none are asked for."""
    if asked.checkpoint is None:
        return None
    facts = split_facts(problem, asked.network, asked.method, asked.costs, asked.seed)
    form = TensorFile(problem.device)
    return Checkpoints(Path(asked.checkpoint), asked.resume, facts, form, Spacing())


def split_facts(
    problem: NetProblem, network: Network, method: Method, costs: Costs, seed: int
) -> dict[str, Any]:
    """The facts that must be the same when a training is resumed."""
    loss = problem.model.loss
    # The first pass is of a token without a server only; checkpoints of others do not name it.
    first_pass = {}
    if isinstance(method, MTCD) and method.hops is None:
        first_pass = {"first_pass": method.first_pass}
    return {
        **training_facts(
            method, seed, problem.clients, network, costs, problem.samples, problem.data.fingerprint
        ),
        "classes": None if problem.classes is None else list(problem.classes),
        "parameters": [net.size for net in (*problem.nets, problem.fusion)],
        "aggregation": problem.model.aggregation,
        "loss": getattr(loss, "__name__", type(loss).__name__) if callable(loss) else loss,
        "optimiser": describe_optimiser(problem.nets[0].optimiser),
        **first_pass,
    }
