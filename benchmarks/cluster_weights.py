"""``python -m benchmarks.cluster_weights [--only TEXT] [--mbps RATE]``: several tokens, a cluster each,
with a weight for each cluster and sync (``combine: memory``) beside one weight for each sync
(``acceleration: conjugate``).

Logistic regression, N = 1000, l2 = 10, to a gap of 1e-4. The time of a sync is the hops of the
longest tour, which the tokens make at once, and s hops for each token, as their messages share the
link of the server: s = 5 says that the server sends and receives an aggregate in the time of 5
hops. One token is a lone one, which never meets the server.

With ``--mbps``, simulated seconds instead, on links of 100 Mb/s and 1 ms where the interface of the
server carries that much, and each message takes its receiver 1 ms.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import networkx as nx
import numpy as np

import mtcd
from benchmarks.anchor import autoregressive, independent
from mtcd.methods.method import Method
from mtcd.network.clusters import Cluster, find_clusters
from mtcd.network.tours import closed_walk
from mtcd.planner.interfaces import with_interfaces
from mtcd.planner.links import read_links
from mtcd.planner.virtual_time import VirtualTime

SAMPLES, L2, GAP = 1000, 10.0, 1e-4
COUNTS = (1, 2, 4, 8, 20, 50)
SHARES = (1, 5, 20)
"""s: the hops that the server's link takes for one token, there and back."""
MOST_SYNCS = 200
LINKS = """from,to,latency_ms,bandwidth_mbps
*,*,1,100
*,server,1,100
server,*,1,100
"""
VISIT_SECONDS = 1e-3
DESIGNS = {"AR": autoregressive, "independent": independent}
NETWORKS = ("grid", "cliques", "geometric")
COLUMNS = {40: (200, 800), 200: (400,)}
"""d by K."""


@dataclass(frozen=True)
class Case:
    """A problem on a network.

    Parameters
    ----------
    network
        A name in ``NETWORKS``.
    clients
        K.
    columns
        d.
    design
        A name in ``DESIGNS``: 'AR' has a correlation of 0.95 between neighbouring columns.
    """

    network: str
    clients: int
    columns: int
    design: str

    def __str__(self) -> str:
        return f"{self.network} of {self.clients}, {self.design}, d={self.columns}"

    @cached_property
    def data(self) -> mtcd.VerticalData:
        """The table."""
        rng = np.random.default_rng(0)
        X = DESIGNS[self.design](rng, SAMPLES, self.columns)
        score = X @ rng.standard_normal(self.columns)
        score = 2 * (score - score.mean()) / score.std()
        y = (rng.random(SAMPLES) < 1 / (1 + np.exp(-score))).astype(float)
        return mtcd.split(X, y, clients=self.clients)

    @cached_property
    def links(self) -> mtcd.Network:
        """The network: a grid, cliques of at most ten in a ring, or places in a square."""
        names = self.data.clients
        if self.network == "grid":
            return mtcd.make_network("grid", names)
        if self.network == "geometric":
            radius = 0.3 if self.clients < 100 else 0.15
            return mtcd.make_network("random-geometric", names, radius=radius)

        each = 8 if self.clients < 100 else 10
        ring = nx.ring_of_cliques(self.clients // each, each)
        return mtcd.network_from_edges(nx.relabel_nodes(ring, dict(enumerate(names))), names)

    def clusters(self, count: int) -> tuple[Cluster, ...]:
        """Those in which ``count`` tokens tour."""
        return find_clusters(self.links, count)

    def longest(self, count: int) -> int:
        """The hops of the longest tour of a cluster."""
        return max(len(closed_walk(self.links, cluster)) for cluster in self.clusters(count))

    def methods(self, count: int) -> dict[str, Method]:
        """One weight for each sync, and one for each cluster and sync."""
        if count == 1:
            lone = {"walk": "tour", "acceleration": "conjugate"}
            solved = mtcd.STCD(**lone, local_solver="newton", depth=20)
            return {"one": mtcd.STCD(**lone), "memory": solved}

        tours = {"tokens": count, "hops": self.longest(count), "clusters": "auto", "walk": "tour"}
        return {
            "one": mtcd.MTCD(**tours, acceleration="conjugate"),
            "memory": mtcd.MTCD(**tours, combine="memory", local_solver="newton"),
        }

    def syncs(self, count: int, name: str) -> int | None:
        """The syncs to the gap; None if ``MOST_SYNCS`` do not reach it."""
        hops = self.longest(count)
        run = mtcd.train(
            self.data,
            mtcd.Glm("logistic", l2=L2),
            self.links,
            self.methods(count)[name],
            mtcd.Stop(gap=GAP, iterations=MOST_SYNCS * hops),
        )
        if run.status != "converged":
            return None
        return round(run.final.iteration / hops)


def seconds(case: Case, count: int, name: str, mbps: float) -> float:
    """Simulated seconds to the gap, where the server's interface carries so much; infinite if it
    is not reached."""
    with tempfile.TemporaryDirectory() as folder:
        links, hosts = Path(folder) / "links.csv", Path(folder) / "hosts.csv"
        links.write_text(LINKS, encoding="utf-8")
        hosts.write_text(f"host,mbps_up,mbps_down\nserver,{mbps},{mbps}\n", encoding="utf-8")
        known = with_interfaces(read_links(links, case.links), hosts, case.links)

    run = mtcd.train(
        case.data,
        mtcd.Glm("logistic", l2=L2),
        case.links,
        case.methods(count)[name],
        mtcd.Stop(gap=GAP, iterations=MOST_SYNCS * case.longest(count)),
        engine=VirtualTime(known, VISIT_SECONDS),
        metrics=(),
    )
    return run.final.seconds if run.status == "converged" else np.inf


def time_of(case: Case, count: int, syncs: int | None, share: int) -> float:
    """The time to the gap in hops, where the server's link is shared by all tokens."""
    if syncs is None:
        return np.inf
    at_server = 0
    if count > 1:
        at_server = share * count
    return float(syncs * (case.longest(count) + at_server))


def cases() -> Iterator[Case]:
    """All of them, the small ones first."""
    for clients, widths in COLUMNS.items():
        for design in DESIGNS:
            for network in NETWORKS:
                for columns in widths:
                    yield Case(network, clients, columns, design)


def row(case: Case) -> str:
    """Syncs by the number of tokens, and the least time for each s with the number that takes
    it."""
    found = {}
    for count in COUNTS:
        if count <= case.clients // 2:
            found[count] = {name: case.syncs(count, name) for name in ("one", "memory")}

    cells = [str(case)]
    for count in COUNTS:
        both = found.get(count)
        cells.append("" if both is None else f"{both['one'] or '-'} / {both['memory'] or '-'}")
    for share in SHARES:
        best = []
        for name in ("one", "memory"):
            times = {n: time_of(case, n, both[name], share) for n, both in found.items()}
            fastest = min(times, key=lambda n: times[n])
            best.append(f"{times[fastest]:.0f} ({fastest})")
        cells.append(" / ".join(best))
    return "| " + " | ".join(cells) + " |"


def row_of_seconds(case: Case, mbps: float) -> str:
    """Simulated seconds by the number of tokens."""
    cells = [str(case)]
    for count in COUNTS:
        if count > case.clients // 2:
            cells.append("")
            continue
        one, memory = (seconds(case, count, name, mbps) for name in ("one", "memory"))
        cells.append(f"{one:.2f} / {memory:.2f}")
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """The table, as Markdown; before the stroke one weight for each sync, after it ``memory``."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--mbps", type=float, help="simulated seconds with such a server")
    given = parser.parse_args()

    if given.mbps is not None:
        print(f"| | {' | '.join(map(str, COUNTS))} |")
        print("|---" * (1 + len(COUNTS)) + "|")
        for case in cases():
            if given.only in str(case):
                print(row_of_seconds(case, given.mbps), flush=True)
        return

    print(f"| | {' | '.join(map(str, COUNTS))} | {' | '.join(f's={s}' for s in SHARES)} |")
    print("|---" * (1 + len(COUNTS) + len(SHARES)) + "|")
    for case in cases():
        if given.only in str(case):
            print(row(case), flush=True)


if __name__ == "__main__":
    main()
