"""A federation of processes on this machine: hops per second with mutual TLS, memory, and how long
it takes to start.

The floor of a hop is a bare ping: the same two bundles, so the same TLS, the same bytes there, a
short answer back, and nobody who reads or keeps them. A hop is that too: an envelope there and its
ack back. The second floor is what no hop can do without: the
bytes thrown one way, the visit, and one write of them to a file. All run in turns, and the best of
each counts.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import Event

import numpy as np
import polars as pl
import yaml

from benchmarks.timing import best_of, report
from mtcd.data.synthetic import synthetic
from mtcd.federation.administrator import init_federation
from mtcd.federation.connections.connection import Connection
from mtcd.federation.connections.connections import Connections
from mtcd.federation.connections.wire import ANSWER, REQUEST, Frame
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.delivery.journal import FIELDS
from mtcd.federation.processes import Processes, free_ports
from mtcd.models.glm.model import Glm
from mtcd.protocol.model import LocalUpdates

ROUNDS = 3
SECONDS = 3.0  # of hops or pings that are counted
MOMENT = 0.2
ENDLESS = 10**9
PATIENCE = 120.0
THROWN = "thrown"


@contextmanager
def federation(parties: int, samples: int, iterations: int = ENDLESS) -> Iterator[Processes]:
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
            "parties": {
                name: f"127.0.0.1:{port}"
                for name, port in zip(names, free_ports(parties), strict=True)
            },
            "labels": {"held_by": names[0], "column": "y", "shared_with": "parties"},
            "alignment": "given order",
            "network": {"kind": "path" if parties < 3 else "cycle"},
            "model": {"kind": "ridge", "alpha": 1.0},
            "method": {"kind": "stcd", "walk": "non-backtracking", "stepsize": 1e-9},
            "stop": {"iterations": iterations},
        }
        file = folder / "federation.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False))
        init_federation(file, folder / "bundles", 2)
        processes = Processes(folder / "bundles", tables)
        try:
            yield processes
        finally:
            processes.end()


def commits(processes: Processes) -> int:
    """What the parties have written to their journals so often: once in every visit."""
    total = 0
    for name in processes.tables:
        slots = (processes.bundles / name / "run").glob("journal.*")
        heads = [
            head for slot in slots if len(head := slot.open("rb").read(FIELDS.size)) == FIELDS.size
        ]
        total += max((FIELDS.unpack(head)[1] for head in heads), default=0)
    return total


def fastest(count: Callable[[], int]) -> float:
    """Seconds of a hop in the quickest of many moments: machines are noisy."""
    end, best, then, before = time.monotonic() + SECONDS, float("inf"), time.monotonic(), count()
    while time.monotonic() < end:
        time.sleep(MOMENT)
        now, after = time.monotonic(), count()
        best = min(best, (now - then) / max(after - before, 1))
        then, before = now, after
    return best


def hop(samples: int) -> float:
    """Seconds of a hop between two parties."""
    with federation(2, samples) as processes:
        processes.start(*processes.tables)
        until_all(processes, "training")
        return fastest(lambda: commits(processes))


class Ping:
    """One end of bare pings: answers requests, sends back what is thrown, and counts."""

    def __init__(self, bundle: Path) -> None:
        self.count, self.stopped = 0, False
        self.connection: Connection | None = None
        self.body = b""
        self.connections = Connections(
            read_bundle(bundle), self.opened, self.lost, self.arrived, lambda refused: None
        )

    def opened(self, connection: Connection) -> None:
        self.connection = connection

    def lost(self, connection: Connection) -> None:
        self.connection = None

    def arrived(self, connection: Connection, frame: Frame) -> None:
        connection.handled(frame)
        if frame.what == REQUEST:
            connection.send(ANSWER, "", frame.number, b"received")
            return
        self.count += 1
        if self.stopped:
            return
        if frame.kind == THROWN:
            connection.send(ANSWER, THROWN, 0, frame.body)
        else:
            connection.send(REQUEST, "ping", 0, self.body)

    def ask(self, body: bytes) -> None:
        """A request, and another when it is answered."""
        self.stopped, self.body = False, body
        assert self.connection is not None
        self.connection.send(REQUEST, "ping", 0, body)

    def throw(self, body: bytes) -> None:
        """Bytes that are thrown to and fro."""
        self.stopped = False
        assert self.connection is not None
        self.connection.send(ANSWER, THROWN, 0, body)


def pings(samples: int) -> tuple[float, float]:
    """Seconds of a bare ping there and back, and of one way of bytes that are thrown to and fro."""
    body = bytes(8 * samples)
    with federation(2, samples) as processes:
        other = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.federation", str(processes.bundles / "p1")]
        )
        here = Ping(processes.bundles / "p0")
        try:
            while here.connection is None:
                time.sleep(0.1)
            here.ask(body)
            ping = fastest(lambda: here.count)
            here.stopped = True
            time.sleep(0.5)
            here.throw(body)
            return ping, fastest(lambda: 2 * here.count)
        finally:
            here.stopped = True
            other.terminate()
            other.wait()
            here.connections.close()


def visit_and_write(samples: int) -> float:
    """Seconds of a visit and of one write of the token, in a tight loop."""
    problem = Glm("ridge", alpha=1.0).problem(synthetic("ridge", samples, 2, clients=1))
    client, theta, aggregate = problem.client(0), np.zeros(2), np.zeros(samples)
    with tempfile.TemporaryFile() as file:

        def both() -> None:
            client.local_update(theta, aggregate, LocalUpdates(1, 1e-9))
            os.pwrite(file.fileno(), aggregate, 0)

        (best,) = best_of(both, rounds=200)
    return best


def speed(samples: int) -> None:
    """Two lines: a hop against a ping, and against what it cannot do without."""
    ours, ping, one_way = [], [], []
    for _ in range(ROUNDS):
        ours.append(hop(samples))
        for found, times in zip(pings(samples), (ping, one_way), strict=True):
            times.append(found)
    hop_time, floor = min(ours), min(ping)
    note = f"{1 / hop_time:.0f} hops per second, {floor / hop_time:.0%} of a bare ping with the same TLS; aim: 70%"
    report(
        f"a hop of a token of {8 * samples // 1000} KB between two parties",
        hop_time,
        floor,
        note=note,
    )
    least = min(one_way) + visit_and_write(samples)
    report("  against one way of the bytes, a visit, one write", hop_time, least)


def until_all(processes: Processes, event: str) -> float:
    """Wait until all have said so in their logs; the moment at which the last one did."""
    end, times = time.monotonic() + PATIENCE, []
    while len(times) < len(processes.tables):
        if time.monotonic() > end:
            raise SystemExit(f"Not everybody has come to: {event}.")
        time.sleep(0.1)
        logs = [processes.bundles / name / "run" / "log.jsonl" for name in processes.tables]
        told = [
            json.loads(line)
            for log in logs
            if log.exists()
            for line in log.read_text().splitlines()
        ]
        times = [one["time"] for one in told if one["event"] == event]
    return datetime.fromisoformat(max(times)).timestamp()


def unshared(process: int) -> float:
    """The memory that would be free without this process (USS), in MB."""
    told = Path(f"/proc/{process}/smaps_rollup").read_text()
    return (
        sum(int(size) for size in re.findall(r"Private_(?:Clean|Dirty):\s+(\d+) kB", told)) / 1024
    )


def crowd(parties: int, iterations: int) -> None:
    """One line: a federation of so many, from its start to its end."""
    with federation(parties, 1000, iterations=iterations) as processes:
        start = time.time()
        processes.start(*processes.tables)
        training = until_all(processes, "training") - start
        memory = sorted(unshared(process.pid) for process in processes.running.values())
        codes = set(processes.wait(PATIENCE).values())
        ended = time.time() - start
    said = "all ended well" if codes == {0} else "NOT all ended well"
    print(
        f"{parties} parties: training after {training:.1f} s, {iterations} hops done after "
        f"{ended:.1f} s, {said}; "
        f"{memory[len(memory) // 2]:.0f} MB a party"
    )


def main() -> None:
    """All lines."""
    speed(1000)
    speed(100_000)
    crowd(16, 1000)
    crowd(64, 1000)


if __name__ == "__main__":
    if len(sys.argv) == 2:
        Ping(Path(sys.argv[1]))
        Event().wait()
    main()
