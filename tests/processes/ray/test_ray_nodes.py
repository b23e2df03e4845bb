"""Two Ray nodes on this machine (``ray start`` twice) that ``address: auto`` joins; the worker node
is killed."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mtcd.ray.connection import ENVIRONMENT
from ray_trainings import CONFIG, checkpointed, same, summary_without_ray, train
from waiting import PATIENCE, until

LITTLE = ("--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats", "--block")
# of the cluster of this test
TOKEN = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
HEALTH = {  # how soon a node that does not answer counts as dead: minutes by default
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
}


class Node:
    """A node of a cluster, as a process group of its own."""

    def __init__(self, folder: Path, place: dict[str, str], *options: str) -> None:
        environment = {**os.environ, **ENVIRONMENT, **TOKEN, **HEALTH, **place}
        self.log = folder / f"node-{len(list(folder.glob('node-*')))}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    "from ray.scripts.scripts import main; main()",
                    "start",
                    *LITTLE,
                    *options,
                ],
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def started(self) -> None:
        assert until(
            lambda: "Ray runtime started" in self.log.read_text() or self.process.poll() is not None
        )
        assert self.process.poll() is None, self.log.read_text()

    def kill(self) -> None:
        """All processes of the node, without warning."""
        for process in [self.process.pid, *descendants(self.process.pid)]:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()


def descendants(parent: int) -> list[int]:
    """The processes that a process has started, and those that they have started."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found, edge = [], {parent}
    while edge:
        edge = {child for child, its_parent in parents.items() if its_parent in edge} - set(found)
        found.extend(edge)
    return found


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[tuple[dict[str, str], list[Node]]]:
    """A head and a worker node, with a CPU each, and the variables of processes that find them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # where "auto" finds no other cluster; names of sockets are short
    scratch = tempfile.mkdtemp(prefix="r")
    place, here = {"RAY_TMPDIR": scratch}, "--node-ip-address=127.0.0.1"
    running = [Node(tmp_path, place, "--head", f"--port={port}", here, "--include-dashboard=false")]
    try:
        running[0].started()
        running.append(Node(tmp_path, place, f"--address=127.0.0.1:{port}", here))
        running[1].started()
        yield TOKEN | place, running
    finally:
        for node in reversed(running):
            node.kill()
        shutil.rmtree(scratch, ignore_errors=True)


def test_a_node_that_is_killed_is_survived(
    nodes: tuple[dict[str, str], list[Node]], tmp_path: Path
) -> None:
    """Its actor starts again on the node that is left, which has room for both."""
    place, (_, worker) = nodes
    config, out = tmp_path / "config.yaml", tmp_path / "run"
    engine = {"kind": "ray", "address": "auto", "actors": 2, "cpus": 0.5}
    config.write_text(yaml.safe_dump(CONFIG | {"stop": {"iterations": 1500}, "engine": engine}))
    process = train(config, out, env=os.environ | place)
    checkpointed(out, process)
    worker.kill()
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, stderr
    found, expected = json.loads(stdout), summary_without_ray(config, tmp_path / "plain")
    assert same(found, expected), (found, expected)
    assert found["objective"] == pytest.approx(expected["objective"], rel=1e-12)
    assert "died" in stderr  # so it had joined the two nodes, and did not start a Ray of its own
