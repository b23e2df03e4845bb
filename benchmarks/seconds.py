"""Seconds to a gap of 1e-4: client-server, semi-decentralised and decentralised, by the paper's
methods, by ours and by conjugate gradients on a tree.

`python -m benchmarks.seconds [--clients 8 40 200]` prints a table for each place (`PLACES`);
`python -m benchmarks.seconds --picture FILE` draws who is fastest, over K and the price of the
server's link. The problem is the paper's ridge regression (N = 1000, d = 2000, l2 = 10) on a grid.

What a method takes is the same wherever it runs, so it is trained once, and counted: iterations,
and numbers in a message. The seconds of an iteration are simulated (`mtcd simulate`, with
`--hosts`), with messages of that size. Counts are kept in `--counts`: an interrupted run goes on
where it stopped.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import mtcd
from mtcd.methods.method import Method
from mtcd.network.topology import Network, make_network
from mtcd.planner.candidates import longest_tour
from mtcd.planner.interfaces import Interfaces
from mtcd.planner.links import BITS, Links
from mtcd.planner.virtual_time import VirtualTime

GAP, SAMPLES, FEATURES, L2 = 1e-4, 1000, 2000, 10.0
VISIT_SECONDS = 2e-4
# the best is used; of the other methods any large step is as good (`mtcd reproduce beyond`)
SVFL_STEPS = (8e-6, 1.6e-5, 3.2e-5)
# clusters with memory
MOST_REMEMBERED = 20
# hops of a random walk whose mean time is taken
WALKED = 400
KINDS = ("client-server", "semi-decentralised", "decentralised")


@dataclass(frozen=True)
class Place:
    """Latency and bandwidths; every bandwidth is that of a host's interface."""

    latency_ms: float
    mbps: float
    server_mbps: float
    slow_party_mbps: float | None = None

    def links(self, clients: int) -> Links:
        """Links of K clients and the server."""
        latency, per_float = self.latency_ms / 1e3, BITS / (self.mbps * 1e6)
        server_per_float = BITS / (max(self.mbps, self.server_mbps) * 1e6)
        rows = {
            (None, None): (latency, per_float),
            (clients, None): (latency, min(per_float, server_per_float)),
        }
        limits: dict[int | None, tuple[float, float]] = {
            None: _both_ways(self.mbps),
            clients: _both_ways(self.server_mbps),
        }
        if self.slow_party_mbps is not None:
            limits[1] = _both_ways(self.slow_party_mbps)
        return Links(clients, rows, Interfaces(clients, limits))


def _both_ways(mbps: float) -> tuple[float, float]:
    return mbps * 1e6 / BITS, mbps * 1e6 / BITS


PLACES = {
    "LAN: 0.2 ms, every host 1 Gb/s": Place(0.2, 1000, 1000),
    "WAN: 20 ms, every host 50 Mb/s": Place(20, 50, 50),
    "one slow party: as LAN, one client 10 Mb/s": Place(0.2, 1000, 1000, 10),
    "a slow server: as LAN, the server 10 Mb/s": Place(0.2, 1000, 10),
}


@dataclass(frozen=True)
class Contender:
    """A method, and one that sends its messages along the same ways."""

    name: str
    kind: str
    whose: str
    method: Method
    same_ways: Method
    most: int
    """The iterations after which it is given up."""
    period: int = 1
    """Iterations after which its ways repeat."""
    sampled: int = 2
    """Periods whose mean time is taken."""


@dataclass(frozen=True)
class Count:
    """What a training took."""

    reached: bool
    iterations: int
    floats: float
    """Numbers in a message, on average."""


@dataclass
class Counts:
    """Trainings that were counted, in a file of JSON."""

    path: Path
    found: dict[str, list[Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.path.exists():
            self.found = json.loads(self.path.read_text())

    def of(self, clients: int, contender: Contender) -> Count:
        """Trained, unless the file has it."""
        key = f"{clients} {contender.name}"
        if key not in self.found:
            made = trained(clients, contender)
            self.found[key] = [made.reached, made.iterations, made.floats]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(self.found, indent=1))
        reached, iterations, floats = self.found[key]
        return Count(reached, iterations, floats)


@cache
def grid(clients: int) -> Network:
    """The network of K clients: as near to a square as K allows."""
    return make_network("grid", [f"client_{k}" for k in range(clients)])


@cache
def problem(clients: int) -> mtcd.VerticalData:
    """The paper's ridge regression, split over K clients."""
    return mtcd.synthetic("ridge", samples=SAMPLES, features=FEATURES, clients=clients)


@cache
def _thin(clients: int, samples: int) -> mtcd.VerticalData:
    return mtcd.synthetic("ridge", samples=samples, features=clients, clients=clients, seed=0)


def trained(clients: int, contender: Contender) -> Count:
    """Train to the gap, and count."""
    model, stop = mtcd.Glm("ridge", l2=L2), mtcd.Stop(gap=GAP, iterations=contender.most)
    run = mtcd.train(problem(clients), model, "grid", contender.method, stop, metrics=())
    messages, floats = sum(run.final.messages.values()), sum(run.final.floats.values())
    return Count(run.status == "converged", run.final.iteration, floats / messages)


def seconds(clients: int, contender: Contender, count: Count, links: Links) -> float:
    """Simulated seconds of so many iterations, with messages of this size."""
    # a column each: times depend on how long messages are, not on what is in them
    data = _thin(clients, round(count.floats))
    ends = []
    for periods in (1, 1 + contender.sampled):
        engine = VirtualTime(links, VISIT_SECONDS)
        run = mtcd.train(
            data,
            mtcd.Glm("ridge", l2=L2),
            "grid",
            contender.same_ways,
            mtcd.Stop(iterations=periods * contender.period),
            engine=engine,
            metrics=(),
        )
        ends.append(run.final.seconds)
    per_iteration = (ends[1] - ends[0]) / (contender.sampled * contender.period)
    return count.iterations * per_iteration


def contenders(clients: int) -> list[Contender]:
    """All methods for K clients, with their settings."""
    return [
        *_client_server(),
        *_one_token(clients),
        *(_of_the_paper(tokens) for tokens in (2, 4)),
        *(made for tokens in _clusters(clients) for made in _of_ours(clients, tokens)),
    ]


def _client_server() -> list[Contender]:
    plain = mtcd.SVFL(local_updates=1, stepsize=1e-6)
    fast = mtcd.SVFL(acceleration="conjugate")
    found = [Contender("SVFL, accelerated", KINDS[0], "ours", fast, plain, 2_000, sampled=1)]
    for step in SVFL_STEPS:
        tuned = mtcd.SVFL(local_updates=20, stepsize=step)
        name = f"SVFL, step {step:g}"
        found.append(Contender(name, KINDS[0], "the paper's", tuned, plain, 2_000, sampled=1))
    return found


def _one_token(clients: int) -> list[Contender]:
    walk = mtcd.STCD(local_updates=1, stepsize=1e-6)
    tour = mtcd.STCD(local_updates=1, stepsize=1e-6, walk="tour")
    stcd = mtcd.STCD(local_updates=20, stepsize=3e-4)
    fast = mtcd.STCD(walk="tour", acceleration="conjugate")
    tree = mtcd.TreeCG()
    return [
        Contender("STCD", KINDS[2], "the paper's", stcd, walk, 3_000_000, WALKED),
        Contender("accelerated tours", KINDS[2], "ours", fast, tour, 100_000, clients),
        Contender("conjugate gradients on a tree", KINDS[2], "textbook", tree, tree, 5_000),
    ]


def _of_the_paper(tokens: int) -> Contender:
    """MTCD with the paper's weights."""
    hops = 64
    ways = mtcd.MTCD(tokens, hops, local_updates=1, stepsize=1e-6)
    average = mtcd.MTCD(tokens, hops, local_updates=20, stepsize=3e-4)
    name = f"MTCD, {tokens} tokens, S = {hops}"
    return Contender(name, KINDS[1], "the paper's", average, ways, 1_000_000, hops, 8)


def _clusters(clients: int) -> list[int]:
    """Numbers of clusters that are tried."""
    return sorted({2, 4, max(2, clients // 10), clients // 4})


def _of_ours(clients: int, tokens: int) -> list[Contender]:
    """A token per cluster, one tour a sync: accelerated, and with memory for each cluster."""
    network = grid(clients)
    kind = mtcd.MTCD(tokens, 1, clusters="auto", walk="tour")
    hops = longest_tour(network, kind.token_clusters(network, 0) or ())
    ways = mtcd.MTCD(tokens, hops, 1, 1e-6, clusters="auto", walk="tour")
    fast = mtcd.MTCD(tokens, hops, clusters="auto", walk="tour", acceleration="conjugate")
    memory = mtcd.MTCD(
        tokens, hops, local_updates=200, clusters="auto", walk="tour", combine="memory"
    )
    limit = 400 * hops
    found = [
        Contender(f"{tokens} clusters, accelerated", KINDS[1], "ours", fast, ways, limit, hops)
    ]
    # the server solves for 20 weights of each cluster at every sync
    if tokens <= MOST_REMEMBERED:
        name = f"{tokens} clusters, memory"
        found.append(Contender(name, KINDS[1], "ours", memory, ways, limit, hops))
    return found


def table(place: str, sizes: Iterable[int], counts: Counts) -> str:
    """Markdown: a row for each method, the best number of tokens in brackets."""
    rows: dict[str, dict[int, tuple[float, str]]] = {}
    for clients in sizes:
        links = PLACES[place].links(clients)
        for contender in contenders(clients):
            count = counts.of(clients, contender)
            took = math.inf
            if count.reached:
                took = seconds(clients, contender, count, links)
            family, setting = _family(contender)
            best = rows.setdefault(family, {}).get(clients, (math.inf, ""))
            rows[family][clients] = min(best, (took, setting))

    lines = [f"| {place} | {' | '.join(f'K = {clients}' for clients in sizes)} |"]
    lines.append("|---" * (1 + len(list(sizes))) + "|")
    for family, cells in rows.items():
        lines.append(f"| {family} | {' | '.join(_cell(cells, clients) for clients in sizes)} |")
    return "\n".join(lines)


def _family(contender: Contender) -> tuple[str, str]:
    """The row, and what is said of the setting."""
    if contender.name.startswith("SVFL, step"):
        return f"SVFL ({contender.whose})", ""
    if contender.name.startswith("MTCD"):
        tokens = contender.name.split()[1]
        return f"MTCD ({contender.whose})", f" ({tokens})"
    if "clusters" in contender.name:
        tokens, _, how = contender.name.split()
        return f"MTCD, a token per cluster, {how} ({contender.whose})", f" ({tokens})"
    return f"{contender.name} ({contender.whose})", ""


def _cell(cells: Mapping[int, tuple[float, str]], clients: int) -> str:
    took, setting = cells[clients]
    if math.isinf(took):
        return "not reached"
    return f"{took:.3g} s{setting}"


def main() -> None:
    """The tables, or the picture."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--clients", nargs="+", type=int, default=[8, 40, 200])
    parser.add_argument("--counts", type=Path, default=Path("runs/seconds.json"))
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    counts = Counts(options.counts)

    if options.picture is not None:
        # Matplotlib is for the picture alone
        from benchmarks.seconds_picture import draw

        draw(options.picture, counts)
        return

    for place in PLACES:
        print(f"{table(place, options.clients, counts)}\n", flush=True)


if __name__ == "__main__":
    main()
