"""Checkpoints of a training of split networks: written at every measurement, read to resume."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from mtcd.errors import MtcdError
from mtcd.files import CHECKPOINT, check_writable
from mtcd.history import Measurement
from mtcd.ledger.costs import Costs
from mtcd.ledger.ledger import Ledger
from mtcd.methods.method import Method
from mtcd.methods.mtcd import MTCD
from mtcd.network.topology import Network
from mtcd.observing import Observer
from mtcd.protocol.state import Snapshot
from mtcd.splitnet.checkpoint import Checkpoint
from mtcd.splitnet.optimiser import describe_optimiser
from mtcd.splitnet.problem import NetProblem


class Checkpoints:
    """The checkpoint file of a folder. ``facts`` identify the training; ``resumes``: whether to read it."""

    def __init__(self, folder: Path, resumes: bool, facts: Mapping[str, Any], device: torch.device) -> None:
        check_writable(folder)
        self.path, self.resumes, self.facts, self.device = folder / CHECKPOINT, resumes, facts, device

    def write(self, observer: Observer) -> None:
        """Write the state of all parties at the latest observation, with the history and the ledger."""
        state = observer.engine.snapshot()
        facts = {
            **self.facts,
            "parties": state.facts,
            "rows": [asdict(row) for row in observer.rows],
            "ledger": observer.engine.ledger.to_dict(),
        }
        Checkpoint(state.tensors, facts).write(self.path)

    def restore(self, observer: Observer) -> None:
        """Have engine and observer continue from the file, if it is of the same training."""
        saved = Checkpoint.read(self.path)
        for name, value in self.facts.items():
            if saved.facts.get(name) != value:
                raise MtcdError(
                    f"The checkpoint {self.path} is of another training: its {name} was {saved.facts.get(name)!r}, "
                    f"now it is {value!r}. Give the same settings, or start without resume in another folder."
                )
        tensors = {name: value.to(self.device) for name, value in saved.tensors.items()}
        observer.engine.resume(Snapshot(saved.facts["parties"], tensors))
        observer.resume([Measurement(**row) for row in saved.facts["rows"]], Ledger(**saved.facts["ledger"]))


def training_facts(problem: NetProblem, network: Network, method: Method, costs: Costs, seed: int) -> dict[str, Any]:
    """The facts that must be the same when a training is resumed."""
    loss = problem.model.loss
    links = hashlib.sha256(repr(network.neighbours).encode()).hexdigest()[:8]
    first_pass = {"first_pass": method.first_pass} if isinstance(method, MTCD) and method.hops is None else {}
    return {
        "method": repr(method),
        "seed": seed,
        "clients": list(problem.clients),
        "network": f"{network.size} clients, {network.graph.number_of_edges()} links ({links})",
        "costs": f"ratio {costs.ratio:g}, as {costs.account}{'' if costs.per == 'message' else f', per {costs.per}'}",
        "samples": problem.samples,
        "data": problem.data.fingerprint,
        "classes": None if problem.classes is None else list(problem.classes),
        "parameters": [net.size for net in (*problem.nets, problem.fusion)],
        "aggregation": problem.model.aggregation,
        "loss": getattr(loss, "__name__", type(loss).__name__) if callable(loss) else loss,
        "optimiser": describe_optimiser(problem.nets[0].optimiser),
        **first_pass,
    }
