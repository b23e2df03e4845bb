"""The problems: 20 with prices of messages, and 20 with links."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import mtcd
from benchmarks.panel.cases import Case
from mtcd.config.build import Setup, build
from mtcd.config.read import check_config
from mtcd.network.edges import network_from_edges
from mtcd.planner.interfaces import with_interfaces
from mtcd.planner.links import Links, read_links

TARGET = 1e-4
LINKS = {
    "LAN": "*,*,0.5,1000\nserver,*,0.5,1000\n",
    "WAN": "*,*,20,100\nserver,*,20,100\n",
    "far server": "*,*,2,100\nserver,*,60,20\n",
    "near server": "*,*,40,20\nserver,*,5,1000\n",
    "one slow party": "*,*,5,100\nclient_1,*,80,5\nserver,*,5,100\n",
    "no server": "*,*,10,100\n",
}
"""Rows of a links file."""
SHARED = "host,mbps_up,mbps_down\nserver,10,10\n*,100,100\n"
"""Interfaces: the server's is what its links share."""


@dataclass(frozen=True)
class Planned:
    """A problem to plan for.

    Parameters
    ----------
    problem
        The problem and its network.
    ratio
        R_C, where the cost is to be small.
    links
        A name in ``LINKS``, where the time is to be small.
    shared
        Whether links share the interfaces of their hosts.
    l1
        The l1 penalty, in the place of l2.
    """

    problem: Case
    ratio: float = 20.0
    links: str | None = None
    shared: bool = False
    l1: float = 0.0

    def __str__(self) -> str:
        if self.links is not None:
            prices = self.links
            if self.shared:
                prices += ", shared"
        else:
            prices = f"R_C = {self.ratio:g}"
        problem = str(self.problem)
        if self.l1:
            problem += f", l1 {self.l1:g}"
        return f"{problem}; {prices}"

    @cached_property
    def setup(self) -> Setup:
        """As a config would have it built; the method is the package's own choice."""
        K = self.problem.clients
        given = {
            "data": {"synthetic": "ridge", "samples": 4, "features": K, "clients": K},
            "network": {"kind": "path"},
            "stop": {"gap": TARGET},
            "costs": {"ratio": self.ratio},
        }
        model = self.problem.model
        if self.l1:
            model = mtcd.Glm(model.kind, l1=self.l1)
        data = self.problem.data
        network = network_from_edges(self.problem.network, data.clients)
        return replace(build(check_config(given)), data=data, model=model, network=network)

    @cached_property
    def wires(self) -> Links | None:
        """The links, where the time is to be small."""
        if self.links is None:
            return None
        network = self.setup.network
        with tempfile.TemporaryDirectory() as folder:
            rows, hosts = Path(folder, "links.csv"), Path(folder, "hosts.csv")
            rows.write_text("from,to,latency_ms,bandwidth_mbps\n" + LINKS[self.links])
            hosts.write_text(SHARED)
            links = read_links(rows, network)
            if self.shared:
                links = with_interfaces(links, hosts, network)
            return links


COST = (
    Planned(Case("path", 8, "independent", 0.3, "ridge", 1.0)),
    Planned(Case("star", 20, "independent", 1.0, "ridge", 1.0)),
    Planned(Case("tree", 20, "independent", 3.0, "ridge", 10.0), ratio=5),
    Planned(Case("path", 40, "AR", 0.3, "ridge", 0.1), ratio=100),
    Planned(Case("grid", 20, "AR", 1.0, "ridge", 1.0)),
    Planned(Case("complete", 20, "AR", 3.0, "ridge", 10.0), ratio=1),
    Planned(Case("path", 20, "factors", 0.3, "ridge", 1.0), ratio=5),
    Planned(Case("random", 20, "factors", 3.0, "ridge", 10.0)),
    Planned(Case("path", 8, "scaled", 0.3, "ridge", 0.1)),
    Planned(Case("path", 40, "scaled", 0.3, "ridge", 0.1), ratio=100),
    Planned(Case("cycle", 20, "scaled", 1.0, "ridge", 1.0)),
    Planned(Case("path", 8, "raw", 0.3, "ridge", 1.0)),
    Planned(Case("path", 8, "independent", 0.3, "logistic", 1.0), ratio=1),
    Planned(Case("path", 8, "AR", 0.3, "logistic", 0.1)),
    Planned(Case("star", 20, "AR", 1.0, "logistic", 1.0), ratio=5),
    Planned(Case("path", 20, "scaled", 0.3, "logistic", 0.1)),
    Planned(Case("grid", 20, "scaled", 1.0, "logistic", 1.0)),
    Planned(Case("random", 20, "scaled", 0.3, "huber", 1.0)),
    Planned(Case("grid", 20, "AR", 0.3, "ridge", 0.0), l1=2.0),
    Planned(Case("cycle", 8, "AR", 1.0, "multinomial", 1.0)),
)
TIME = (
    Planned(Case("path", 8, "independent", 0.3, "ridge", 1.0), links="LAN"),
    Planned(Case("grid", 20, "AR", 1.0, "ridge", 1.0), links="LAN"),
    Planned(Case("grid", 20, "AR", 1.0, "ridge", 1.0), links="LAN", shared=True),
    Planned(Case("path", 8, "scaled", 0.3, "ridge", 0.1), links="LAN"),
    Planned(Case("complete", 20, "AR", 0.3, "logistic", 1.0), links="LAN", shared=True),
    Planned(Case("path", 8, "AR", 0.3, "logistic", 0.1), links="WAN"),
    Planned(Case("star", 20, "independent", 1.0, "ridge", 1.0), links="WAN"),
    Planned(Case("grid", 20, "factors", 0.3, "ridge", 1.0), links="WAN"),
    Planned(Case("path", 20, "scaled", 0.3, "logistic", 0.1), links="WAN"),
    Planned(Case("random", 40, "AR", 0.3, "ridge", 0.1), links="WAN", shared=True),
    Planned(Case("complete", 20, "independent", 3.0, "ridge", 10.0), links="WAN", shared=True),
    Planned(Case("grid", 20, "AR", 1.0, "ridge", 1.0), links="far server"),
    Planned(Case("tree", 20, "factors", 1.0, "logistic", 1.0), links="far server"),
    Planned(Case("random", 20, "scaled", 0.3, "huber", 1.0), links="far server", shared=True),
    Planned(Case("path", 20, "AR", 0.3, "huber", 1.0), links="near server"),
    Planned(Case("path", 40, "scaled", 0.3, "ridge", 0.1), links="near server", shared=True),
    Planned(Case("grid", 20, "independent", 1.0, "ridge", 1.0), links="one slow party"),
    Planned(Case("path", 8, "raw", 0.3, "ridge", 1.0), links="one slow party"),
    Planned(Case("random", 20, "AR", 1.0, "ridge", 1.0), links="no server"),
    Planned(Case("path", 8, "AR", 0.3, "ridge", 0.0), links="no server", l1=2.0),
)
LARGE = Planned(Case("grid", 20, "AR", 2.0, "ridge", 10.0, samples=1000))
"""1,000 x 2,000: how many CPU seconds a plan takes."""
