"""Checkpoints: the whole state of a training in one file, from which it continues bit for bit as if
never stopped.

A checkpoint is taken at a measurement, when all parties hold one model. Everything random is a
function of the seed and of the iteration, so it consists of the state of the parties, the messages
under way, history and ledger.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, Protocol

from mtcd.core.errors import MtcdError
from mtcd.core.files import check_writable
from mtcd.methods.method import Method
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.state import Snapshot
from mtcd.training.history import Measurement
from mtcd.training.observer import Observer


class CheckpointFormat(Protocol):
    """Writes and reads the file of a checkpoint: plain values, and arrays or tensors by name."""

    name: str
    """The name of the file."""

    def write(self, path: Path, facts: Mapping[str, Any], tensors: Mapping[str, Any]) -> None:
        """Write the file atomically."""

    def read(self, path: Path) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """The values and the tensors of a file; raises ``MtcdError`` if it is not of this
        format."""


class Spacing(NamedTuple):
    """The time between two checkpoints: at least ``seconds``, and ``times`` the time that writing
    the last one took."""

    seconds: float = 0.0
    times: float = 0.0


class Checkpoints:
    """The checkpoint file of a folder. ``facts`` identify the training; ``resumes``: whether to
    read it."""

    def __init__(
        self,
        folder: Path,
        resumes: bool,
        facts: Mapping[str, Any],
        form: CheckpointFormat,
        spacing: Spacing,
    ) -> None:
        check_writable(folder)
        self.path = folder / form.name
        self.resumes = resumes
        self.facts = facts
        self.form = form
        self.spacing = spacing
        self._due = 0.0

    def write(self, observer: Observer, last: bool = False) -> None:
        """Write the state of all parties at the latest observation, unless the last checkpoint is
        too recent.

        The checkpoint of the ``last`` measurement is always written.
        """
        began = perf_counter()
        # Rare on purpose: writing takes time in which nothing is trained.
        if began < self._due and not last:
            return
        state, followed = observer.engine.snapshot(), observer.watcher.state()
        facts = {
            **self.facts,
            **followed.facts,
            "parties": state.facts,
            "rows": [asdict(row) for row in observer.rows],
            "ledger": observer.engine.ledger.to_dict(),
            **{name: one.state() for name, one in observer.engine.listeners.items()},
        }
        self.form.write(self.path, facts, {**state.tensors, **followed.tensors})
        now = perf_counter()
        # Counted from the end of the writing: a slow disk gets fewer checkpoints, not all of the
        # time.
        self._due = now + max(self.spacing.seconds, self.spacing.times * (now - began))

    def restore(self, observer: Observer) -> None:
        """Have engine and observer continue from the file, if it is of the same training."""
        facts, tensors = self.form.read(self.path)
        # Compared by name, so that the error can say which setting has changed.
        for name, value in self.facts.items():
            if facts.get(name) != value:
                raise MtcdError(
                    f"The checkpoint {self.path} is of another training: its {name} was "
                    f"{facts.get(name)!r}, now it is {value!r}. Give the same settings, or start "
                    "without resume in another folder."
                )

        # the engine before the observer, whose ledger is that of the engine
        observer.engine.resume(Snapshot(facts["parties"], tensors))
        observer.watcher.restore(Snapshot(facts, tensors))
        for name, listener in observer.engine.listeners.items():
            if facts.get(name) is not None:  # older versions had fewer listeners
                listener.restore(facts[name])
        observer.resume([Measurement(**row) for row in facts["rows"]], Ledger(**facts["ledger"]))


def training_facts(
    method: Method,
    seed: int,
    clients: Sequence[str],
    network: Network,
    costs: Costs,
    samples: int,
    data: str,
) -> dict[str, Any]:
    """The facts of any training that must be the same when it is resumed; ``data`` is a digest."""
    # checkpoints of before clients could leave hold the digest of the neighbours alone
    linked: object = network.neighbours
    changes = ""
    if network.changes:
        linked = (network.neighbours, network.changes)
        changes = f", {len(network.changes)} changes"
    links = hashlib.sha256(repr(linked).encode())

    prices = f"ratio {costs.ratio:g}, as {costs.account}"
    if costs.per != "message":
        prices += f", per {costs.per}"

    return {
        "method": repr(method),
        "seed": seed,
        "clients": list(clients),
        "network": (
            f"{network.size} clients, {network.edges} links{changes} ({links.hexdigest()[:8]})"
        ),
        "costs": prices,
        "samples": samples,
        "data": data,
    }
