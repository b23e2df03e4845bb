"""Federations whose parties have hosts and cables of their own: what goes where, as the kernel counts it."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np
import polars as pl
import pytest

pytest.importorskip("zenoh")

from federations import written
from mtcd.federation.administrator import init_federation
from mtcd.federation.participant.block import read_block
from mtcd.federation.participant.keeping import Summary, read_summary
from mtcd.federation.processes import Processes
from mtcd.ledger.ledger import Ledger
from namespaces import Hosts, skip_where_not_allowed
from waiting import PATIENCE, until

skip_where_not_allowed()
Links = list[tuple[str, str]]
PATH: Links = [("a", "b"), ("b", "c")]
FOREVER = {"iterations": 10**9}
CYCLE: Links = [*PATH, ("c", "d"), ("d", "a")]
STCD = {"kind": "stcd", "local_updates": 1, "stepsize": 1e-4, "walk": "metropolis"}
OPENING = 1_500_000  # bytes: labels and which rows they are of go from a to c, over b or the server


@contextmanager
def federation(
    folder: Path, samples: int, links: Links, server: bool = False, **changes: Any
) -> Iterator[tuple[Hosts, Processes, np.ndarray, np.ndarray]]:
    """All on their hosts, not started yet; with the data of all, which nobody has."""
    clients = sorted({name for link in links for name in link})
    names = [*clients, *(["server"] if server else [])]
    cables = [*links, *((name, "server") for name in clients if server)]
    draw = np.random.default_rng(0)
    X, y = draw.standard_normal((samples, 2 * len(clients))), draw.standard_normal(samples)
    tables = {name: folder / f"{name}.parquet" for name in clients}
    for k, (name, table) in enumerate(tables.items()):
        labels = {"y": y} if name == "a" else {}
        pl.DataFrame({"one": X[:, 2 * k], "two": X[:, 2 * k + 1]} | labels).write_parquet(table)
    with Hosts(names, cables) as hosts:
        places = {name: f"{hosts.addresses[name]}:7447" for name in names}
        file = written(
            folder,
            parties={name: places[name] for name in clients},
            server=places.get("server"),
            labels={"held_by": "a", "column": "y", "shared_with": "parties"},
            network={"links": [list(link) for link in links]},
            alignment="given order",
            model={"kind": "ridge", "alpha": 1.0, "intercept": False},
            **changes,
        )
        init_federation(file, folder / "kits", 2)
        processes = Processes(folder / "kits", tables, prefix=hosts.within())
        try:
            yield hosts, processes, X, y
        finally:
            processes.end()


def wait_for(hosts: Hosts, one: str, other: str, volume: int) -> None:
    """Until a cable has carried so much more."""
    before = hosts.carried(one, other)
    assert until(lambda: hosts.carried(one, other) >= before + volume)


def stop(hosts: Hosts, processes: Processes, at: str) -> None:
    """Ask all whom the operator can reach from this host to stop."""
    command = [sys.executable, "-m", "mtcd", "federation", "stop", str(processes.kits)]
    done = subprocess.run([*hosts.within()[at], *command], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stdout + done.stderr  # all, or those that a cable leads to


def ended(processes: Processes) -> list[Summary]:
    """What everybody has kept."""
    assert set(processes.wait(PATIENCE).values()) == {0}
    return [read_summary(processes.kits / name / "run") for name in processes.running]


def test_tokens_go_straight_and_the_server_sees_syncs_only(tmp_path: Path) -> None:
    method = {"kind": "mtcd", "tokens": 1, "hops": 24, "stepsize": 1e-5}
    samples, stop = 20_000, {"iterations": 480}
    with federation(tmp_path, samples, PATH, server=True, method=method, stop=stop) as (hosts, processes, _, _):
        processes.start(*processes.tables, "server")
        ledger = Ledger.total([summary.ledger for summary in ended(processes)])
        between = sum(hosts.carried(*cable) for cable in PATH)
        up_and_down = sum(hosts.carried(name, "server") for name in processes.tables)
    hops, ups, downs = (8 * floats for floats in ledger.float_counts)
    assert hops <= between <= 1.1 * hops + OPENING
    assert ups + downs <= up_and_down <= 1.1 * (ups + downs) + OPENING
    assert hops > 4 * (ups + downs)


def test_a_slow_link_slows_itself_only(tmp_path: Path) -> None:
    rate, samples = 1e6 / 8, 12_500  # bytes a second; a token of 100 KB takes 0.8 s
    with federation(tmp_path, samples, PATH, method=STCD, stop=FOREVER) as (hosts, processes, _, _):
        hosts.slow("a", "b", "1mbit")
        processes.start(*processes.tables)
        for cable in PATH:
            wait_for(hosts, *cable, 2 * 8 * samples)
        slow, fast = watched(hosts, 3 * 8 * samples)
        stop(hosts, processes, "b")
        ended(processes)
    assert slow < 2 * rate  # some of each token goes through at once
    assert fast > 3 * rate, (slow, fast)


def watched(hosts: Hosts, volume: int) -> list[float]:
    """Bytes per second of each cable, over the moments in which it carried much; until each has carried so much."""
    step, much = 0.05, 1000
    moved, busy = np.zeros(len(PATH)), np.zeros(len(PATH))
    then, before = monotonic(), [hosts.carried(*cable) for cable in PATH]
    while moved.min() < volume:
        sleep(step)
        now, after = monotonic(), [hosts.carried(*cable) for cable in PATH]
        grown = np.subtract(after, before)
        moved += np.where(grown > much, grown, 0)
        busy += np.where(grown > much, now - then, 0)
        then, before = now, after
    return list(moved / busy)


def test_a_cut_is_survived(tmp_path: Path) -> None:
    method = {**STCD, "stepsize": "auto", "local_updates": 5}
    with federation(tmp_path, 200, CYCLE, method=method, stop=FOREVER) as (hosts, processes, X, y):
        processes.start(*processes.tables)
        wait_for(hosts, "b", "c", 100_000)
        hosts.unplug("b", "c")
        sleep(3.0)  # longer than it takes to notice
        wait_for(hosts, "a", "b", 50_000)
        wait_for(hosts, "c", "d", 50_000)
        hosts.plug("b", "c")
        wait_for(hosts, "b", "c", 300_000)
        stop(hosts, processes, "b")
        told = ended(processes)
        found = np.concatenate([read_block(processes.kits / name / "run").theta for name in processes.tables])
    assert {summary.status for summary in told} == {"stopped"}
    best = np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y)
    np.testing.assert_allclose(found, best, rtol=1e-6, atol=1e-9)
