"""Count the calls and files of one visit: ``python -m benchmarks.calls``.

A visit is all that happens inside the package between the receipt of one message and that of the
next: the client's work, the ledger, the trace, and the engine. Medians over a training, in which
most visits are not measured. A kind of visit that takes more than its budget fails.

A hop of a federation is all that the thread of one party does between two envelopes: it decodes the
token, visits, commits to the journal, answers, sends the token on, and takes the ack. Threads of the
links are not counted, nor is what the engine adds that observes the parties here: no party of a
real federation has one.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import get_ident
from types import FrameType
from typing import Any

import yaml

import mtcd
from mtcd.core.optional import find
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials.bundle import Bundle, read_bundle
from mtcd.federation.participant.kinds import participant_of
from mtcd.federation.participant.participant import Participant
from mtcd.federation.participant.table import PartyTable
from mtcd.federation.processes import free_ports
from mtcd.testing.federation_engine import FederationEngine

PACKAGE = mtcd.__path__[0]
OBSERVER = f"{PACKAGE}/testing/"  # of a federation: its parties wait for it, and no real ones do
SKIPPED = 5  # visits at the start, which fill caches

BUDGET = {
    "STCD": (15, 8),
    "MTCD, 3 tokens": (18, 9),
    "accelerated tour": (62, 10),
    "split network": (60, 12),
    "sealed tour": (300, 17),
    "federation hop": (141, 28),
}
"""The most calls and files of a visit. They may only fall."""


@dataclass(frozen=True)
class Visit:
    """The medians over the visits of a training: calls of functions of the package, and the files
    they are in."""

    calls: float
    files: float
    visits: int


@dataclass
class Counts:
    """What one thread has called since its last receipt, and the visits before."""

    visits: list[tuple[int, int]] = field(default_factory=list)
    calls: int = 0
    files: set[str] = field(default_factory=set)


def counted(train: Callable[[], object], receives: str = "receive") -> Visit:
    """Count the calls between two receipts, while ``train`` runs; ``receives`` names the function
    that begins one."""
    counts: dict[int, Counts] = defaultdict(Counts)

    def see(frame: FrameType, event: str, _argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        if OBSERVER in frame.f_code.co_filename or OBSERVER in frame.f_back.f_code.co_filename:
            return

        here = counts[get_ident()]
        if frame.f_code.co_name == receives:
            here.visits.append((here.calls, len(here.files)))
            here.calls = 0
            here.files.clear()

        here.calls += 1
        here.files.add(frame.f_code.co_filename)

    threading.setprofile(see)  # of threads that start from now on
    sys.setprofile(see)
    try:
        train()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)

    kept = [visit for one in counts.values() for visit in one.visits[SKIPPED:]]
    return Visit(
        statistics.median(c for c, _ in kept), statistics.median(f for _, f in kept), len(kept)
    )


def linear(
    method: mtcd.STCD | mtcd.MTCD | Any, iterations: int, **more: Any
) -> Callable[[], object]:
    """A ridge regression with six parties on a cycle."""
    data = mtcd.synthetic("ridge", samples=60, features=24, clients=6)
    model = mtcd.Glm("ridge", alpha=1.0)
    return lambda: mtcd.train(
        data, model, "cycle", method, mtcd.Stop(iterations=iterations), **more
    )


def network() -> Callable[[], object]:
    """A split network with four parties on a cycle."""
    nn = find("torch").nn
    data = mtcd.synthetic("logistic", samples=60, features=8, clients=4)
    model = mtcd.SplitModel({client: nn.Linear(2, 3) for client in data.clients}, nn.Linear(12, 2))
    method = mtcd.MTCD(tokens=2, hops=4, stepsize=0.01, batch=20)
    return lambda: mtcd.train(data, model, "cycle", method, mtcd.Stop(iterations=800))


def federation(folder: Path) -> Callable[[], object]:
    """Two parties of a ridge regression, each a node of this process, with a lone token."""
    data = mtcd.synthetic("ridge", samples=60, features=8, clients=2)
    places = dict(zip(data.clients, free_ports(2), strict=True))
    content = {
        "name": "benchmark",
        "parties": {name: f"127.0.0.1:{port}" for name, port in places.items()},
        "labels": {"held_by": data.clients[0], "column": "y", "shared_with": "parties"},
        "alignment": "given order",
        "network": {"kind": "path"},
        "model": {"kind": "ridge", "alpha": 1.0},
        "method": {"kind": "stcd", "walk": "non-backtracking", "stepsize": 1e-3},
        "stop": {"iterations": 3000},
    }
    file = folder / "federation.yaml"
    file.write_text(yaml.safe_dump(content))
    init_federation(file, folder / "bundles", 2)
    bundles = {name: read_bundle(folder / "bundles" / name) for name in data.clients}

    def participant(bundle: Bundle) -> Participant:
        k = data.clients.index(bundle.config.name)
        table = PartyTable(
            path=folder / f"{k}.csv",
            ids=None,
            columns=data.columns[k],
            values=data.blocks[k],
            labels=None if k else data.labels,
        )
        return participant_of(bundle, table)

    def train() -> None:
        with FederationEngine(bundles, folder / "runs", participant) as engine:
            engine.skip_to(math.inf)
            for _ in engine.run(pausing=True):
                pass

    return train


def main() -> None:
    """Print a line for each kind of visit."""
    tour = mtcd.STCD(walk="tour", acceleration="conjugate", local_solver="majorise")
    sealed = mtcd.Privacy(mode="sealed")
    trainings = {
        "STCD": linear(mtcd.STCD(stepsize=1e-3), 6000),
        "MTCD, 3 tokens": linear(mtcd.MTCD(tokens=3, hops=8, stepsize=1e-3), 6000),
        "accelerated tour": linear(tour, 2400),
        "split network": network(),
        "sealed tour": linear(mtcd.MTCD(walk="tour"), 60, privacy=sealed),
    }
    over: list[str] = []
    for name, train in trainings.items():
        over += shown(name, counted(train))
    with tempfile.TemporaryDirectory() as folder:
        hop = counted(federation(Path(folder)), "_envelope")
    over += shown("federation hop", hop)

    if over:
        sys.exit(f"Visits have become longer than their budget. {'; '.join(over)}.")


def shown(name: str, visit: Visit) -> list[str]:
    """Print a line; returns the budget, if it is exceeded."""
    print(
        f"{name:18} {visit.calls:5.0f} calls {visit.files:4.0f} files  ({visit.visits} visits)",
        flush=True,
    )
    most_calls, most_files = BUDGET[name]
    if visit.calls > most_calls or visit.files > most_files:
        return [f"{name}: at most {most_calls} calls in {most_files} files"]
    return []


if __name__ == "__main__":
    main()
