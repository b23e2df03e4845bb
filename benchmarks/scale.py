"""Large networks in one process: start-up, CPU time per hop and memory per client against K.

`python -m benchmarks.scale [PICTURE.png]` prints the tables of docs/scaling.md, and draws a hop
against K; each row is measured in a process of its own.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from itertools import cycle, islice, pairwise
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

SIZES = (100, 300, 1000, 3000, 10_000)
KINDS = ("grid", "random-geometric", "complete", "star", "erdos-renyi", "path")
HOPS = 3000
ITERATIONS = 2 * SIZES[-1] + HOPS  # for every K, so that a hop has the same share of measurements


def memory() -> float:
    """The resident memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 2**20


def network_of(kind: str, clients: Any) -> Any:
    """A connected network of this kind."""
    from mtcd.network.topology import make_network

    K = len(clients)
    settings = {"random-geometric": {"radius": 1.3 * math.sqrt(2 * math.log(K) / (math.pi * K))}}
    settings["erdos-renyi"] = {"p": min(1.0, 3 * math.log(K) / K)}
    return make_network(kind, clients, **settings.get(kind, {}))


def training(kind: str, K: int, samples: int, columns: int) -> dict[str, float]:
    """Start-up, time per hop and memory of a training by STCD with Q = 5 on made-up data."""
    import mtcd
    from mtcd.network.tours import closed_walk

    small = mtcd.synthetic("ridge", samples=20, features=8, clients=4)  # so that all code is loaded
    mtcd.train(
        small,
        network=network_of(kind, small.clients),
        method=mtcd.STCD(),
        stop=mtcd.Stop(iterations=9),
    )
    data = mtcd.synthetic("ridge", samples=samples, features=columns * K, clients=K)
    before, began = memory(), process_time()
    network = network_of(kind, data.clients)
    made = process_time() - began

    toured, seen = 2 * K, []  # a whole tour: at its first visit a client prepares
    method, stop = (
        mtcd.STCD(5, stepsize=0.1 / samples, walk="tour"),
        mtcd.Stop(iterations=ITERATIONS),
    )
    began = process_time()
    run = mtcd.train(
        data,
        mtcd.Glm("ridge", alpha=1.0),
        network,
        method,
        stop,
        metrics=(),
        watch=lambda row, _: seen.append((row.iteration, process_time())),
    )
    start = seen[0][1] - began
    later = [one for one in seen if one[0] >= toured]
    hop = median(
        (after[1] - before[1]) / (after[0] - before[0]) for before, after in pairwise(later)
    )
    used = memory() - before
    bare = products(data.blocks, closed_walk(network, range(K)))
    with tempfile.TemporaryDirectory() as folder:
        began = process_time()
        run.save(Path(folder) / "run")
        mtcd.load_run(Path(folder) / "run")
        stored = process_time() - began
    return {
        "network": made,
        "start": start,
        "hop": hop,
        "bare": bare,
        "client": used / K,
        "stored": stored,
        "total": memory(),
    }


def products(blocks: Any, tour: Any) -> float:
    """CPU time of the two products of a visit alone, with the blocks of a tour."""
    blocks, token = [np.asfortranarray(block) for block in blocks], np.ones(blocks[0].shape[0])
    room = np.empty_like(token)
    began = process_time()
    for k in islice(cycle(tour), HOPS):
        token += np.dot(blocks[k], 1e-9 * np.dot(blocks[k].T, token), out=room)
    return (process_time() - began) / HOPS


def searches(kind: str, K: int) -> dict[str, float]:
    """The time of what is looked for in a network: a spanning tree, clusters, tours of clusters."""
    from mtcd.methods.mtcd.mtcd import MTCD
    from mtcd.network.spanning import spanning_tree
    from mtcd.network.tours import closed_walk

    network_of(kind, "abcd")  # so that all code is loaded
    before, network = memory(), network_of(kind, [f"client_{k}" for k in range(K)])
    found: dict[str, float] = {}

    def timed(name: str, work: Any) -> Any:
        began = process_time()
        result = work()
        found[name] = process_time() - began
        return result

    timed("tree", lambda: spanning_tree(network))
    timed("communities", lambda: MTCD(None, 1, clusters="auto").token_clusters(network, 0))
    clusters = timed("clusters", lambda: MTCD(16, 1, clusters="auto").token_clusters(network, 0))
    timed("tours", lambda: [closed_walk(network, cluster) for cluster in clusters])
    timed("tour", lambda: closed_walk(network, range(K)))
    return found | {"memory": memory() - before}


def apart(name: str, *arguments: object) -> dict[str, float]:
    """The result of one of these functions in a process of its own, so that memory is not
    shared."""
    command = [sys.executable, "-m", "benchmarks.scale", name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(picture: str | None = None) -> None:
    """Print the tables; draw the time of a hop if a file is named."""
    hops: dict[tuple[str, int], tuple[float, float]] = {}
    print("Trainings by STCD, Q = 5: CPU time; memory per client beyond the data\n")
    print(
        "| network | clients | samples | columns each | network | start | hop | bare products | "
        "save, load | memory |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    cases = [(kind, K, 1000, 2) for kind in ("grid", "random-geometric") for K in SIZES]
    for kind, K, samples, columns in [*cases, ("grid", 1000, 100_000, 1)]:
        row = apart("training", kind, K, samples, columns)
        if samples == cases[0][2]:
            hops[kind, K] = row["hop"], row["bare"]
        print(
            f"| {kind} | {K:,} | {samples:,} | {columns} | {row['network']:.2f} s | "
            f"{row['start']:.2f} s "
            f"| {1e6 * row['hop']:.0f} µs | {1e6 * row['bare']:.0f} µs | {row['stored']:.2f} s "
            f"| {1000 * row['client']:.1f} kB |",
            flush=True,
        )
    if picture is not None:
        draw(hops, picture)
    print(
        f"\nSearches in networks of {SIZES[-1]:,} clients: CPU time; memory of network and "
        f"results\n"
    )
    print(
        "| network | spanning tree | communities | 16 clusters | tours of these | tour of all | "
        "memory |"
    )
    print("|---|---|---|---|---|---|---|")
    for kind in KINDS:
        row = apart("searches", kind, SIZES[-1])
        names = ("tree", "communities", "clusters", "tours", "tour")
        times = " | ".join(f"{row[name]:.2f} s" for name in names)
        print(f"| {kind} | {times} | {row['memory']:.0f} MB |", flush=True)


def draw(hops: dict[tuple[str, int], tuple[float, float]], file: str) -> None:
    """The time of a hop, and of its bare products, against K."""
    from matplotlib.figure import Figure

    from mtcd.plots.styles import COLOURS

    figure = Figure(figsize=(6.5, 3.6), layout="constrained")
    axes = figure.subplots()
    for colour, kind in zip(COLOURS, dict.fromkeys(kind for kind, _ in hops), strict=False):
        hop, bare = zip(*(1e6 * np.array(hops[kind, K]) for K in SIZES), strict=True)
        axes.semilogx(SIZES, hop, color=colour, marker="o", label=f"a hop, {kind}")
        axes.semilogx(
            SIZES,
            bare,
            color=colour,
            marker=".",
            linestyle=":",
            label=f"its two bare products, {kind}",
        )
    axes.set_ylim(bottom=0)
    axes.set_xlabel("clients K")
    axes.set_ylabel("CPU time in µs")
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    if len(sys.argv) <= 2:
        main(*sys.argv[1:])
    else:
        work, kind, *numbers = sys.argv[1:]
        print(
            json.dumps({"training": training, "searches": searches}[work](kind, *map(int, numbers)))
        )  # type: ignore[operator]
