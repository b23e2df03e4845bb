"""Hosts for tests: a network namespace for each party, with one address, and a cable of its own for
each link."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from time import sleep

import pytest


def ip(*words: str, program: str = "ip") -> None:
    subprocess.run([program, *words], check=True, capture_output=True)


def skip_where_not_allowed() -> None:
    if os.geteuid() != 0 or shutil.which("ip") is None or shutil.which("tc") is None:
        pytest.skip("needs root and iproute2", allow_module_level=True)
    name = f"mtcd-{os.getpid()}-try"
    try:
        ip("netns", "add", name)
        ip("-n", name, "link", "add", "one", "type", "veth", "peer", "name", "other")
        ip("-n", name, "qdisc", "add", "dev", "one", "root", *SLOW, "1mbit", program="tc")
    except subprocess.CalledProcessError as error:
        pytest.skip(
            f"no network namespaces here: {error.stderr.decode().strip()}", allow_module_level=True
        )
    finally:
        subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


ROUTER = "router"
"""The host between another and all its links, where these share one cable."""
INBOUND = "1-32767"  # outgoing connections have higher ports
SLOW = ("tbf", "burst", "16kb", "latency", "1s", "rate")


class Hosts:
    """Who is linked has a cable, over which nothing else goes; others cannot reach each other at
    all."""

    def __init__(self, names: Iterable[str], links: Iterable[tuple[str, str]]) -> None:
        self.spaces = {name: f"mtcd-{os.getpid()}-{name}" for name in names}
        self.addresses = {name: f"10.99.0.{k + 1}" for k, name in enumerate(self.spaces)}
        self.links = list(links)
        self._keepers: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Hosts:
        for name, space in self.spaces.items():
            ip("netns", "add", space)
            ip("-n", space, "address", "add", self.addresses[name], "dev", "lo")
            ip("-n", space, "link", "set", "lo", "up")
        for one, other in self.links:
            ends = self.spaces[one], f"to-{other}", self.spaces[other], f"to-{one}"
            ip(
                "-n",
                ends[0],
                "link",
                "add",
                ends[1],
                "type",
                "veth",
                "peer",
                "name",
                ends[3],
                "netns",
                ends[2],
            )
            for near, far in ((one, other), (other, one)):
                self.plug(near, far)
        self._keepers = {
            name: subprocess.Popen([*within, "sleep", "infinity"])
            for name, within in self.within().items()
        }
        return self

    def __exit__(self, *_: object) -> None:
        for keeper in self._keepers.values():
            keeper.kill()
            keeper.wait()
        for space in self.spaces.values():
            subprocess.run(["ip", "netns", "del", space], capture_output=True, check=False)

    def plug(self, near: str, far: str) -> None:
        """One end of a cable; the way to the other goes over it and nowhere else."""
        space, cable, mine = self.spaces[near], f"to-{far}", self.addresses[near]
        ip("-n", space, "link", "set", cable, "up")
        ip("-n", space, "route", "replace", self.addresses[far], "dev", cable, "src", mine)

    def share(self, name: str, others: Iterable[str], rate: str) -> None:
        """One cable for all links of a host: it leads to a router, and carries so much each way."""
        router = self.spaces[ROUTER]
        ip("netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for end, far in ((name, f"to-{ROUTER}"), (ROUTER, f"to-{name}")):
            shaped = ["qdisc", "add", "dev", far, "root", *SLOW, rate]
            ip("-n", self.spaces[end], *shaped, program="tc")
        for other in others:
            self._route_by_router(name, other)
            self._route_by_router(other, name)

    def _route_by_router(self, near: str, far: str) -> None:
        way = ["via", self.addresses[ROUTER], "dev", f"to-{ROUTER}", "onlink"]
        own = ["src", self.addresses[near]]
        ip("-n", self.spaces[near], "route", "replace", self.addresses[far], *way, *own)

    def unplug(self, one: str, other: str) -> None:
        """As if the cable was cut."""
        ip("-n", self.spaces[one], "link", "set", f"to-{other}", "down")

    def refuse_inbound(self, name: str) -> None:
        """A firewall at this host: what comes in to a port that is not one of outgoing connections
        is dropped."""
        space = self.spaces[name]
        ip("-n", space, "rule", "add", "pref", "40", "lookup", "local")
        ip("-n", space, "rule", "del", "pref", "0")
        for one, other in self.links:
            if name in (one, other):
                cable = f"to-{other if name == one else one}"
                ip(
                    "-n",
                    space,
                    "rule",
                    "add",
                    "pref",
                    "30",
                    "iif",
                    cable,
                    "ipproto",
                    "tcp",
                    "dport",
                    INBOUND,
                    "blackhole",
                )

    def slow(self, one: str, other: str, rate: str) -> None:
        """Both ways."""
        for near, far in ((one, other), (other, one)):
            ip(
                "-n",
                self.spaces[near],
                "qdisc",
                "add",
                "dev",
                f"to-{far}",
                "root",
                *SLOW,
                rate,
                program="tc",
            )

    def within(self) -> dict[str, list[str]]:
        """What to put before a command, so that it runs on a host."""
        return {name: ["ip", "netns", "exec", space] for name, space in self.spaces.items()}

    def carried(self, one: str, other: str) -> int:
        """The bytes that the kernel has counted at one end of a cable, both ways."""
        cable = f"to-{other}"
        while True:
            for line in Path(f"/proc/{self._keepers[one].pid}/net/dev").read_text().splitlines():
                name, _, counts = line.partition(":")
                if name.strip() == cable:
                    fields = counts.split()
                    return int(fields[0]) + int(fields[8])
            sleep(0.01)  # the keeper, through whom a host is seen, is not there yet
