"""Federations whose parties have hosts and cables of their own, for tests."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl

from federations import written
from mtcd.federation.administrator import init_federation
from mtcd.federation.participant.keeping import Summary, read_summary
from mtcd.federation.processes import Processes
from mtcd.models.glm.party.block import read_block
from namespaces import Hosts
from waiting import PATIENCE, until

Links = list[tuple[str, str]]
PATH: Links = [("a", "b"), ("b", "c")]
CYCLE: Links = [*PATH, ("c", "d"), ("d", "a")]
FOREVER = {"iterations": 10**9}


@contextmanager
def federation(
    folder: Path,
    samples: int,
    links: Links,
    server: bool = False,
    dial_out: str | None = None,
    cables: Links | None = None,
    names: Mapping[str, str] = MappingProxyType({}),
    **changes: Any,
) -> Iterator[tuple[Hosts, Processes, np.ndarray, np.ndarray]]:
    """All on their hosts, not started yet; with the data of all, which nobody has.

    ``dial_out``: a party without an address; ``names``: those of hosts that others know by name.
    ``cables``: if they are not the links.
    """
    clients = sorted({name for link in links for name in link})
    cables = cables or [*links, *((name, "server") for name in clients if server)]
    draw = np.random.default_rng(0)
    X, y = draw.standard_normal((samples, 2 * len(clients))), draw.standard_normal(samples)
    tables = {name: folder / f"{name}.parquet" for name in clients}
    for k, (name, table) in enumerate(tables.items()):
        labels = {"y": y} if name == "a" else {}
        pl.DataFrame({"one": X[:, 2 * k], "two": X[:, 2 * k + 1]} | labels).write_parquet(table)
    with Hosts(sorted({name for cable in cables for name in cable}), cables) as hosts:
        places: dict[str, Any] = {
            name: f"{address}:7447" for name, address in hosts.addresses.items()
        }
        places |= {
            name: {"address": f"{public}:7447", "listen": places[name]}
            for name, public in names.items()
        }
        file = written(
            folder,
            parties={
                name: {"dial_out_only": True} if name == dial_out else places[name]
                for name in clients
            },
            server=places["server"] if server else None,
            labels={"held_by": "a", "column": "y", "shared_with": "parties"},
            network={"links": [list(link) for link in links]},
            alignment="given order",
            model={"kind": "ridge", "alpha": 1.0, "intercept": False},
            **changes,
        )
        init_federation(file, folder / "bundles", 2)
        processes = Processes(folder / "bundles", tables, prefix=hosts.within())
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
    command = [sys.executable, "-m", "mtcd", "federation", "stop", str(processes.bundles)]
    done = subprocess.run([*hosts.within()[at], *command], capture_output=True, text=True)
    # all, or those that a cable leads to
    assert done.returncode in (0, 3), done.stdout + done.stderr


def ended(processes: Processes) -> list[Summary]:
    """What everybody has kept."""
    assert set(processes.wait(PATIENCE).values()) == {0}
    return [read_summary(processes.bundles / name / "run") for name in processes.running]


def check_optimum(processes: Processes, X: np.ndarray, y: np.ndarray) -> None:
    """That of the ridge regression, in closed form."""
    found = np.concatenate(
        [read_block(processes.bundles / name / "run").theta for name in processes.tables]
    )
    best = np.linalg.solve(X.T @ X + np.eye(X.shape[1]), X.T @ y)
    np.testing.assert_allclose(found, best, rtol=1e-6, atol=1e-9)
