"""Count the calls and files of one visit: ``python -m benchmarks.calls``.

A visit is all that happens inside the package between the receipt of one message and that of the
next: the client's work, the ledger, the trace, and the engine. Medians over a training, in which
most visits are not measured. A kind of visit that takes more than its budget fails.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import mtcd
from mtcd.core.optional import find

PACKAGE = mtcd.__path__[0]
SKIPPED = 5  # visits at the start, which fill caches

BUDGET = {
    "STCD": (15, 8),
    "MTCD, 3 tokens": (18, 9),
    "accelerated tour": (62, 10),
    "split network": (60, 12),
    "sealed tour": (300, 17),
}
"""The most calls and files of a visit. They may only fall."""


@dataclass(frozen=True)
class Visit:
    """The medians over the visits of a training: calls of functions of the package, and the files
    they are in."""

    calls: float
    files: float
    visits: int


def counted(train: Callable[[], object], receives: str = "receive") -> Visit:
    """Count the calls between two receipts, while ``train`` runs; ``receives`` names the function
    that begins one."""
    visits: list[tuple[int, int]] = []
    calls = 0
    files: set[str] = set()

    def see(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return

        if frame.f_code.co_name == receives:
            visits.append((calls, len(files)))
            calls = 0
            files.clear()

        calls += 1
        files.add(frame.f_code.co_filename)

    sys.setprofile(see)
    try:
        train()
    finally:
        sys.setprofile(None)

    kept = visits[SKIPPED:]
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
    over = []
    for name, train in trainings.items():
        visit = counted(train)
        most_calls, most_files = BUDGET[name]
        if visit.calls > most_calls or visit.files > most_files:
            over.append(f"{name}: at most {most_calls} calls in {most_files} files")

        print(
            f"{name:18} {visit.calls:5.0f} calls {visit.files:4.0f} files  ({visit.visits} visits)",
            flush=True,
        )

    if over:
        sys.exit(f"Visits have become longer than their budget. {'; '.join(over)}.")


if __name__ == "__main__":
    main()
