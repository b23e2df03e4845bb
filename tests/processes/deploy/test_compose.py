"""The compose file: its services run with its commands, mounts and limits, each in a network
namespace of its own.

What Docker does is done here with namespaces: the network with names, the read-only roots, the
volumes, the checks of health. The end is held against a training in one process, on the tables
joined.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import mtcd
from containers import DEPLOY, Service, compose, health_command, services
from live import in_process
from mtcd.data.vertical import VerticalData
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.participant.keeping import read_summary
from mtcd.models.glm.party.block import read_block
from namespaces import Hosts
from namespaces import skip_where_not_allowed as skip_without_networks
from roots import Image
from waiting import PATIENCE, until

skip_without_networks()

SERVICES = services()
MEMBERS = [name for name in SERVICES if name != "bundles"]


class Containers:
    """The services, on hosts that know each other by name."""

    def __init__(self, image: Image, hosts: Hosts, folder: Path) -> None:
        self.image, self.hosts, self.folder = image, hosts, folder
        self.names = folder / "hosts"
        lines = [f"{address} {name}" for name, address in hosts.addresses.items()]
        self.names.write_text("\n".join(["127.0.0.1 localhost", *lines, ""]))
        # a new volume belongs to whom the folder in the image belongs to
        for name in compose()["volumes"]:
            (folder / name).mkdir(mode=0o700)
            subprocess.run(["chown", image.user, folder / name], check=True)

    def command(self, service: Service, words: list[str]) -> list[str]:
        mounts, fixed = {"/etc/hosts": self.names}, ["/etc/hosts"]
        for mount in service.mounts:
            mounts[mount.target] = (
                self.folder / mount.source / mount.subpath
                if mount.volume
                else DEPLOY / mount.source
            )
            fixed += [mount.target] if mount.read_only else []
        image = self.image
        inside = image.root.command(
            words, image.environment, mounts, image.user, writable=False, read_only=fixed
        )
        return [*self.hosts.within()[service.name], *inside]

    def start(self, name: str) -> subprocess.Popen[str]:
        service = SERVICES[name]
        return subprocess.Popen(
            self.command(service, service.arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def is_healthy(self, name: str) -> bool:
        return (
            subprocess.run(
                self.command(SERVICES[name], health_command()), capture_output=True
            ).returncode
            == 0
        )


@pytest.fixture
def containers(image: Image, tmp_path: Path) -> Iterator[Containers]:
    tmp_path.chmod(0o711)
    with Hosts(SERVICES, combinations(SERVICES, 2)) as hosts:
        yield Containers(image, hosts, tmp_path)


def joined() -> VerticalData:
    """The tables of the clinics on the persons that all have, in the order of their ids."""
    tables = {
        name: pl.read_csv(DEPLOY / "demo" / f"{name}.csv") for name in MEMBERS if name != "server"
    }
    columns = {
        name: [c for c in table.columns if c not in ("person", "outcome")]
        for name, table in tables.items()
    }
    whole, *others = tables.values()
    for other in others:
        whole = whole.join(other, on="person")
    whole = whole.sort("person")
    return mtcd.split(whole.drop("person", "outcome"), whole["outcome"], columns)


def test_the_demo_is_trained_by_the_services_of_the_compose_file(containers: Containers) -> None:
    for _ in range(2):  # the second time, the bundles are there
        done = containers.start("bundles")
        said, _ = done.communicate()
        assert done.returncode == 0, said
    bundles = containers.folder / "bundles" / "bundles"
    running = {"server": containers.start("server")}
    try:
        assert not containers.is_healthy("clinic-a")  # it does not run
        assert until(lambda: containers.is_healthy("server"))  # while it waits for the others
        running |= {name: containers.start(name) for name in MEMBERS if name != "server"}
        said = {name: process.communicate(timeout=PATIENCE)[0] for name, process in running.items()}
    finally:
        for process in running.values():
            process.kill()
    assert {name: process.returncode for name, process in running.items()} == dict.fromkeys(
        MEMBERS, 0
    ), said
    summaries = {name: read_summary(bundles / name / "run") for name in MEMBERS}
    assert {summary.status for summary in summaries.values()} == {"iterations"}
    alone = in_process(joined(), read_bundle(bundles / "clinic-a"))
    for name, theta in alone.parameters.items():
        np.testing.assert_allclose(
            read_block(bundles / name / "run").theta, theta, rtol=1e-9, atol=1e-12
        )
    for name in MEMBERS:
        files = [path for path in (bundles / name).rglob("*") if path.stat().st_uid != 10001]
        assert (files, (bundles / name).stat().st_mode & 0o777) == ([], 0o700)
