"""A federation of processes, one of which strangers attack for a minute: members join, it trains, and
nothing is left behind."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from federations import written
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.processes import Processes
from ports import reserved_ports
from strangers import attack
from waiting import PATIENCE, until

SECONDS = float(os.environ.get("MTCD_ATTACK_SECONDS", "60"))
NAMES = ("a", "b", "c")
ATTACKED, JOINS = "a", "b"
JOIN_SECONDS = 1.0
MEGABYTES = 20.0  # that a process may grow by


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    draw = np.random.default_rng(0)
    tables = {name: tmp_path / f"{name}.parquet" for name in NAMES}
    for name, table in tables.items():
        columns = {"one": draw.standard_normal(200), "two": draw.standard_normal(200)}
        labels = {"y": draw.standard_normal(200)} if name == "a" else {}
        pl.DataFrame(columns | labels).write_parquet(table)
    places = [f"127.0.0.1:{port}" for port in reserved_ports(3)]
    file = written(
        tmp_path,
        parties=dict(zip(NAMES, places, strict=True)),
        server=None,
        labels={"held_by": "a", "column": "y", "shared_with": "parties"},
        network={"kind": "complete"},
        alignment="given order",
        model={"kind": "ridge", "alpha": 1.0},
        method={"kind": "stcd", "stepsize": "auto"},
        stop={"iterations": 10**9},
    )
    init_federation(file, tmp_path / "bundles", 2)
    made = Processes(tmp_path / "bundles", tables)
    try:
        yield made
    finally:
        made.end()


def events(processes: Processes, name: str, event: str) -> list[dict[str, Any]]:
    """What a party has logged of one kind."""
    log = processes.bundles / name / "run" / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [told for line in lines if (told := json.loads(line))["event"] == event]


def moment(told: dict[str, Any]) -> float:
    return datetime.fromisoformat(told["time"]).timestamp()


def rejoin(processes: Processes) -> float:
    """Seconds that a party takes that starts again, until it is connected to the one attacked."""
    processes.signal(JOINS, signal.SIGTERM)
    processes.running.pop(JOINS).wait(PATIENCE)
    times = len(events(processes, JOINS, "up"))
    processes.start(JOINS)
    assert until(lambda: len(events(processes, JOINS, "up")) > times)
    began = moment(events(processes, JOINS, "up")[-1])

    def connected() -> list[float]:
        links = events(processes, JOINS, "link")
        mine = [moment(one) for one in links if one["peer"] == ATTACKED and one["up"]]
        return [when - began for when in mine if when >= began - JOIN_SECONDS]

    assert until(lambda: bool(connected()))
    return connected()[-1]


def held(processes: Processes) -> tuple[int, int, float]:
    """Open files, threads, and megabytes of the party that is attacked."""
    place = Path("/proc") / str(processes.running[ATTACKED].pid)
    status = dict(line.split(":", 1) for line in (place / "status").read_text().splitlines())
    megabytes = int(status["VmRSS"].split()[0]) / 1024
    return len(list((place / "fd").iterdir())), int(status["Threads"]), megabytes


def commits(processes: Processes) -> int:
    from mtcd.federation.delivery.journal import FIELDS

    heads = [
        slot.read_bytes()[: FIELDS.size]
        for slot in (processes.bundles / ATTACKED / "run").glob("journal.*")
    ]
    return max((FIELDS.unpack(head)[1] for head in heads if len(head) == FIELDS.size), default=0)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_members_join_within_a_second_and_nothing_leaks(
    processes: Processes, tmp_path: Path
) -> None:
    processes.start(*NAMES)
    for name in NAMES:
        assert until(lambda name=name: bool(events(processes, name, "training")))
    rejoin(processes)
    address = str(read_bundle(processes.bundles / ATTACKED).config.address)
    before, took, hops = held(processes), [], []
    with attack(processes.bundles, tmp_path / "strangers", address) as done:
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            was = commits(processes)
            took.append(rejoin(processes))
            time.sleep(2.0)
            hops.append(commits(processes) - was)
    assert max(took) < JOIN_SECONDS, took
    assert min(hops) > 0, "tokens pass all the time"
    assert sum(done.values()) > 100 * SECONDS
    assert done["not accepted"] == 0

    rejoin(processes)
    assert until(lambda: held(processes)[0] <= before[0] + 1)
    _, threads, megabytes = held(processes)
    assert threads <= before[1]
    assert megabytes < before[2] + MEGABYTES
    refused = events(processes, ATTACKED, "refused_connection")
    assert len(refused) >= 5
    assert len(refused) < 10 * 8 + 8 * 8, "further ones are counted, not told"

    command = ["federation", "stop", str(processes.bundles / "operator")]
    subprocess.run([sys.executable, "-m", "mtcd", *command], check=True, capture_output=True)
    assert set(processes.wait(PATIENCE).values()) == {0}
