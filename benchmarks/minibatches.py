"""Mini-batches against tours on all samples: numbers sent to a gap, as multiples of N.

`python -m benchmarks.minibatches [--samples N] [--features d] [--most SYNCS]`: logistic regression
(l2 = 1) on columns of an AR process, 8 clients in a cycle. A number counts as eight bytes, so that
half of those of `transport: delta32` count. Mini-batches have the settings that were best by hand
of some; their steps shrink with N, as gradients are sums. At N = 1,000,000 it takes minutes and
3 GB.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import mtcd
from benchmarks.anchor import autoregressive, labels
from mtcd.methods.method import Method

CLIENTS = 8
GAPS = (1e-1, 1e-2, 1e-3, 1e-4)
TOURS = {"walk": "tour", "acceleration": "conjugate"}
# with N = 20,000: batch, step size, and after how many epochs it is halved
BY_HAND = ((500, 3e-5, 1000), (500, 6e-5, 2), (500, 6e-5, 4), (2000, 6e-5, 6))


def tours(features: int, samples: int) -> dict[str, Method]:
    """Accelerated tours on all samples."""
    found: dict[str, Method] = {}
    for transport in ("float64", "delta32"):
        name = f"tours, exact Newton blocks, {transport}"
        found[name] = mtcd.STCD(**TOURS, local_solver="newton", transport=transport)
    # gradient steps take 200 products a visit where Newton takes three
    if samples * features <= 10_000_000:
        found["tours, auto"] = mtcd.STCD(**TOURS)
        found["tours, auto, delta32"] = mtcd.STCD(**TOURS, transport="delta32")
    return found


def mini_batches(samples: int) -> dict[str, Method]:
    """One token that tours the cycle between syncs, with several batches and steps."""
    found: dict[str, Method] = {}
    for batch, step, halved in BY_HAND:
        name = f"mini-batches of {batch}, halved every {halved} epochs"
        if halved >= 1000:
            name = f"mini-batches of {batch}, constant step"
        found[f"{name}, step {step:g}"] = mtcd.MTCD(
            tokens=1,
            hops=CLIENTS,
            local_updates=1,
            stepsize=step * 20_000 / samples,
            batch=batch,
            walk="tour",
            schedule=mtcd.Schedule(every=halved),
        )
    return found


def row(name: str, method: Method, data: mtcd.VerticalData, most: int) -> str:
    """A row of the table."""
    began = time.process_time()
    stop = mtcd.Stop(gap=GAPS[-1], iterations=most)
    run = mtcd.train(data, mtcd.Glm("logistic", l2=1.0), "cycle", method, stop, metrics=())
    took = time.process_time() - began

    # `delta32` sends numbers of four bytes
    share = 0.5 if "delta32" in name else 1.0
    cells = []
    for gap in GAPS:
        there = [entry for entry in run.history.rows if entry.gap is not None and entry.gap <= gap]
        cell = "not reached"
        if there:
            cell = f"{share * sum(there[0].floats.values()) / data.samples:.3g}N"
        cells.append(cell)
    return f"| {name} | {' | '.join(cells)} | {run.final.gap:.0e} | {took:.0f} |"


def main() -> None:
    """The table, as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=80)
    parser.add_argument("--most", type=int, default=1500, help="syncs of mini-batches")
    options = parser.parse_args()

    rng = np.random.default_rng(0)
    X = autoregressive(rng, options.samples, options.features)
    y = labels("logistic", X @ rng.standard_normal(options.features), rng)
    data = mtcd.split(X, y, clients=CLIENTS)

    titles = [f"to {gap:g}" for gap in GAPS]
    print(f"| N = {options.samples:,} | {' | '.join(titles)} | gap at the end | CPU seconds |")
    print("|---" * (len(GAPS) + 3) + "|")
    for name, method in tours(options.features, options.samples).items():
        print(row(name, method, data, 100 * CLIENTS), flush=True)
    for name, method in mini_batches(options.samples).items():
        print(row(name, method, data, options.most * CLIENTS), flush=True)


if __name__ == "__main__":
    main()
