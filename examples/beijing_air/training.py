"""The same model trained by messages: without a server, with one now and then, and through a server
all the time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from accuracy import predictions, scores

import mtcd

LINKS = Path(__file__).parent / "links.csv"
NETWORK_METHODS: dict[str, Any] = {
    "conjugate tours, no server": mtcd.STCD(walk="tour", acceleration="conjugate"),
    "conjugate tours, a token per cluster": mtcd.MTCD(
        clusters="auto", hops=6, walk="tour", acceleration="conjugate"
    ),
    "conjugate gradients on a tree, no server": mtcd.TreeCG(),
    "STCD, no server": mtcd.STCD(local_updates=20),
    "MTCD, 2 tokens": mtcd.MTCD(tokens=2, hops=16, local_updates=20),
}
CLIENT_SERVER = "SVFL, client-server"
DRAWN = ("STCD, no server", "MTCD, 2 tokens")  # whose walks are random
GAP, ROUNDS, HOPS = 1e-3, 2000, 10_000
TRIAL = 50  # rounds for which a step size of SVFL is tried


def best_multiple(data: mtcd.VerticalData, model: mtcd.Glm, network: mtcd.Network) -> int:
    """Of the default step size of SVFL, which is safe for any data and too small for these: tried
    for some rounds."""
    reached = {}
    for multiple in (1, 2, 4, 8):
        method = multiplied_svfl(data, model, network, multiple)
        run = mtcd.train(
            data, model, network, method, mtcd.Stop(iterations=TRIAL), standardise=True, metrics=[]
        )
        reached[multiple] = np.inf if run.status == "diverged" else run.objective
    return min(reached, key=lambda multiple: reached[multiple])


def multiplied_svfl(
    data: mtcd.VerticalData, model: mtcd.Glm, network: mtcd.Network, multiple: int
) -> mtcd.SVFL:
    """SVFL with so many times the step size that it would choose."""
    first = mtcd.SVFL(local_updates=20)
    run = mtcd.train(
        data, model, network, first, mtcd.Stop(iterations=1), standardise=True, metrics=[]
    )
    assert run.stepsize is not None
    return replace(first, stepsize=multiple * run.stepsize)


def train(
    data: mtcd.VerticalData,
    model: mtcd.Glm,
    network: mtcd.Network,
    method: Any,
    seed: int,
    gap: float = GAP,
) -> mtcd.Run:
    """Until the objective is within ``gap`` of the optimum, relative to it."""
    limit = mtcd.Stop(gap=gap, iterations=ROUNDS if isinstance(method, mtcd.SVFL) else HOPS)
    costs = mtcd.Costs(account="sent")
    return mtcd.train(
        data, model, network, method, limit, costs, seed=seed, standardise=True, metrics=["rmse"]
    )


def outcome(run: mtcd.Run, test: mtcd.VerticalData) -> dict[str, Any]:
    """Accuracy on the test year, and what was sent for it."""
    messages, size = run.ledger.messages("sent"), run.ledger.bytes("sent")
    return {
        "status": run.status,
        "gap": run.gap,
        **scores(test.labels, run.predict(test).astype(float)),
        "messages": sum(messages.values()),
        "server_messages": messages["uplink"] + messages["downlink"],
        "megabytes": sum(size.values()) / 1e6,
        "server_megabytes": (size["uplink"] + size["downlink"]) / 1e6,
    }


def curve(run: mtcd.Run) -> Iterator[dict[str, Any]]:
    """Gap and test error against what the parties have sent until then, as the history has it."""
    for row in run.history.rows:
        sent = 8 * sum(row.floats.values()) / 1e6
        yield {"megabytes": sent, "gap": row.gap, "rmse": row.metrics.get("test_rmse")}


def agreement(data: mtcd.VerticalData, model: mtcd.Glm, network: mtcd.Network) -> float:
    """The largest difference from the closed form, over the predictions of the test year."""
    method = NETWORK_METHODS["conjugate tours, no server"]
    run = train(data, model, network, method, seed=0, gap=1e-12)
    assert data.test is not None
    return float(
        np.abs(run.predict(data.test) - predictions(data, np.array([model.l2_weight]))[0]).max()
    )


def trainings(
    data: mtcd.VerticalData, model: mtcd.Glm, multiple: int, seeds: int
) -> Iterator[tuple[dict[str, Any], mtcd.Run]]:
    """A row of the table for every method and seed, with the run."""
    assert data.test is not None
    network = mtcd.read_network(LINKS, data.clients)
    methods = {**NETWORK_METHODS, CLIENT_SERVER: multiplied_svfl(data, model, network, multiple)}
    for name, method in methods.items():
        for seed in range(seeds if name in DRAWN else 1):
            run = train(data, model, network, method, seed)
            yield {"method": name, "seed": seed, **outcome(run, data.test)}, run
