"""What 1 to 1,000 machines would do, by the model of `mtcd plan --machines`: the table and picture
of docs/scaling.md.

`python -m benchmarks.machines [PICTURE.png]`. A logistic regression of 1,000 clients on a grid with
100,000 samples and 50 columns each; the computing time of a visit is measured here.
"""

from __future__ import annotations

import sys
from time import process_time

import numpy as np

import mtcd
from mtcd.network.topology import make_network
from mtcd.planner.scaling import Machine, Work, predict

CLIENTS, SAMPLES, COLUMNS, Q = 1000, 100_000, 50, 10
COUNTS = (1, 3, 10, 30, 100, 300, 1000)
MACHINE = Machine()
METHODS = {
    "STCD, tour": mtcd.STCD(Q, 1.0, walk="tour"),
    "MTCD, 16 tokens in clusters, 256 hops": mtcd.MTCD(
        16, 256, Q, 1.0, clusters="auto", walk="tour"
    ),
    "MTCD, 100 tokens in clusters, 256 hops": mtcd.MTCD(
        100, 256, Q, 1.0, clusters="auto", walk="tour"
    ),
    "SVFL": mtcd.SVFL(Q, 1.0),
}


def visit_seconds() -> float:
    """The computing time of a visit, measured on two clients of that size."""
    data = mtcd.synthetic("logistic", samples=SAMPLES, features=2 * COLUMNS, clients=2)
    method, hops = mtcd.STCD(Q, stepsize=1e-6), 20
    began = process_time()
    mtcd.train(
        data, mtcd.Glm("logistic", l2=1.0), "path", method, mtcd.Stop(iterations=2), metrics=()
    )
    start = process_time() - began
    mtcd.train(
        data,
        mtcd.Glm("logistic", l2=1.0),
        "path",
        method,
        mtcd.Stop(iterations=2 + hops),
        metrics=(),
    )
    return (process_time() - began - 2 * start) / hops


def main() -> None:
    """Print the table: visits per second, and what gives out first; draw it if a file is named."""
    visit = visit_seconds()
    network = make_network("grid", [f"client_{k}" for k in range(CLIENTS)])
    work = Work(network, SAMPLES, 1, 0, 8 * SAMPLES * COLUMNS * CLIENTS)
    print(f"a visit: {1e3 * visit:.0f} ms of computing\n")
    print("| method | " + " | ".join(f"{count:,}" for count in COUNTS) + " |")
    print("|---" * (len(COUNTS) + 1) + "|")
    rates: dict[str, list[float]] = {}
    for name, method in METHODS.items():
        found = [predict(method, visit, work, MACHINE, count) for count in COUNTS]
        visits = {"STCD, tour": 1, "SVFL": CLIENTS}.get(name) or int(name.split()[1])
        rates[name] = [visits / one.seconds for one in found]
        cells = (f"{rate:,.3g} ({one.limit})" for rate, one in zip(rates[name], found, strict=True))
        print(f"| {name} | " + " | ".join(cells) + " |")
    if len(sys.argv) > 1:
        draw(rates, sys.argv[1])


def draw(rates: dict[str, list[float]], file: str) -> None:
    """Visits per second against machines."""
    from matplotlib.figure import Figure

    from mtcd.plots.styles import COLOURS, DASHES

    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    axes = figure.subplots()
    for place, (name, values) in enumerate(rates.items()):
        axes.loglog(
            COUNTS,
            values,
            label=name,
            color=COLOURS[place],
            linestyle=DASHES[place % len(DASHES)],
            marker="o",
        )
    ideal = np.array(COUNTS) * rates["STCD, tour"][0]
    axes.loglog(COUNTS, ideal, color="#BBBBBB", linewidth=0.9, label="one core busy per machine")
    axes.set_xlabel("machines")
    axes.set_ylabel("visits per second (predicted)")
    axes.grid(alpha=0.25, which="both")
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(file, dpi=110)


if __name__ == "__main__":
    main()
