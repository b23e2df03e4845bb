"""A federation of processes on this machine: hops per second with mutual TLS, memory, and how long it takes to start.

The floor of a hop is a bare Zenoh ping: the same two kits, so the same TLS and rules, the same bytes to and fro, and
nobody who reads them. Both run in turns, and the best of each counts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import polars as pl
import yaml
import zenoh

from benchmarks.timing import report
from mtcd.federation.founder import init_federation
from mtcd.federation.keys import channel, message_key
from mtcd.federation.kit import read_kit
from mtcd.federation.node.operator import ask_everybody, operator_kit
from mtcd.federation.processes import Processes, free_ports

ROUNDS = 3
SECONDS = 2.0  # of hops or pings that are counted
ENDLESS = 10**9
PATIENCE = 120.0


@contextmanager
def federation(parties: int, samples: int, network: str = "cycle", **method: Any) -> Iterator[Processes]:
    """Parties with two columns each, whose rows are in the same order; they are not started yet."""
    names = [f"p{k}" for k in range(parties)]
    draw = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        tables = {name: folder / f"{name}.parquet" for name in names}
        for name, table in tables.items():
            columns = {"a": draw.standard_normal(samples), "b": draw.standard_normal(samples)}
            labels = {"y": draw.standard_normal(samples)} if name == names[0] else {}
            pl.DataFrame(columns | labels).write_parquet(table)
        content = {
            "name": "benchmark",
            "parties": {name: f"127.0.0.1:{port}" for name, port in zip(names, free_ports(parties), strict=True)},
            "labels": {"held_by": names[0], "column": "y", "shared_with": "parties"},
            "alignment": "given order",
            "network": {"kind": "path" if parties < 3 else network},
            "model": {"kind": "ridge", "alpha": 1.0},
            "method": {"kind": "stcd", "walk": "non-backtracking", "stepsize": 1e-9, **method},
            "stop": {"iterations": ENDLESS},
        }
        file = folder / "federation.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False))
        init_federation(file, folder / "kits", 2)
        processes = Processes(folder / "kits", tables)
        try:
            yield processes
        finally:
            processes.end()


def count(processes: Processes) -> tuple[float, int]:
    """When the operator was answered, and how many hops there had been."""
    answers = ask_everybody(operator_kit(processes.kits), "status", 2.0)
    return time.monotonic(), max([told.get("iteration", 0) for told in answers.values()], default=0)


def until_training(processes: Processes, hops: int = 1) -> None:
    """Wait for the first hops."""
    end = time.monotonic() + PATIENCE
    while count(processes)[1] < hops:
        if time.monotonic() > end:
            raise SystemExit("The federation does not train.")


def hop(samples: int) -> float:
    """Seconds of a hop between two parties."""
    with federation(2, samples) as processes:
        processes.start(*processes.tables)
        until_training(processes, 50)
        start, first = count(processes)
        time.sleep(SECONDS)
        end, last = count(processes)
    return (end - start) / (last - first)


class Ping:
    """One end of a bare ping: sends back what comes, and counts."""

    def __init__(self, kit: Path) -> None:
        made = read_kit(kit)
        config = made.config
        (other,) = (name for name in config.peers)
        self.session = zenoh.open(zenoh.Config.from_json5(json.dumps(made.zenoh())))
        self.key = message_key(config.federation, other, config.name, "ping")
        self.hops, self.stopped = 0, False
        inbox = channel(config.federation, config.name, other)
        self.subscriber = self.session.declare_subscriber(inbox, zenoh.handlers.Callback(self.back, indirect=False))

    def back(self, sample: Any) -> None:
        self.hops += 1
        if not self.stopped:
            self.send(sample.payload)

    def send(self, payload: Any) -> None:
        block = zenoh.CongestionControl.BLOCK
        self.session.put(self.key, payload, congestion_control=block, express=True)


def ping(samples: int) -> float:
    """Seconds of a bare ping one way: as many bytes as a token has."""
    with federation(2, samples) as processes:
        other = subprocess.Popen([sys.executable, "-m", "benchmarks.federation", str(processes.kits / "p1")])
        here = Ping(processes.kits / "p0")
        try:
            while not here.hops:
                here.send(bytes(8 * samples))
                time.sleep(0.2)
            here.stopped = True
            time.sleep(0.2)
            here.stopped, here.hops, start = False, 0, time.monotonic()
            here.send(bytes(8 * samples))
            time.sleep(SECONDS)
            seconds, trips = time.monotonic() - start, here.hops
        finally:
            other.terminate()
            other.wait()
            here.session.close()  # type: ignore[no-untyped-call]
    return seconds / (2 * trips)


def speed(samples: int) -> None:
    """One line: a hop against a ping."""
    ours, floor = float("inf"), float("inf")
    for _ in range(ROUNDS):
        ours, floor = min(ours, hop(samples)), min(floor, ping(samples))
    note = f"{1 / ours:.0f} hops per second, {floor / ours:.0%} of a bare ping with the same TLS; aim: 70%"
    report(f"a hop of a token of {8 * samples // 1000} KB between two parties", ours, floor, note=note)


def main() -> None:
    """All lines."""
    speed(1000)
    speed(100_000)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        Ping(Path(sys.argv[1]))
        Event().wait()
    main()
