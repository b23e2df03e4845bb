"""Checkpoints of split networks: one safetensors file, written at every measurement."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from mtcd.core.errors import MtcdError
from mtcd.core.files import CHECKPOINT, plain, write_whole
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
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


# Checkpoints: the complete state of a training of split networks in one file, without pickle.
#
# It is taken at a moment when all parties hold one model. Everything random is a function of the
# seed and of the iteration, so the numbers that the parties hold, and where they are, are all
# that there is.


FORMAT = "1"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Tensors by name, and plain values: the settings, the position, the history and the ledger of
    the training."""

    tensors: Mapping[str, Tensor]
    facts: Mapping[str, Any]

    def write(self, path: Path) -> None:
        """Write the file atomically."""
        # safetensors takes whole, dense tensors of the CPU.
        tensors = {name: value.detach().cpu().contiguous() for name, value in self.tensors.items()}
        metadata = {
            "format": FORMAT,
            "facts": json.dumps(self.facts, allow_nan=False, default=plain),
        }
        write_whole(path, save(tensors, metadata))

    @staticmethod
    def read(path: Path) -> Checkpoint:
        """Read a checkpoint; an MtcdError says what to do if that is not possible."""
        try:
            with safe_open(path, "pt") as file:
                metadata = file.metadata() or {}
                if metadata.get("format") != FORMAT:
                    raise MtcdError(
                        f"{path} is no checkpoint of this version: start without --resume, "
                        f"elsewhere."
                    )
                # copies, because the rounding of sums may depend on the alignment in memory
                tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
                return Checkpoint(tensors, json.loads(metadata["facts"]))
        except FileNotFoundError:
            raise MtcdError(
                f"There is no checkpoint {path} to go on from: start without --resume."
            ) from None
        except (OSError, SafetensorError, ValueError, KeyError) as error:
            raise MtcdError(f"The checkpoint {path} cannot be read: {error}") from None
