"""Trainings whose numbers are recorded in ``recorded.json``: same seed, same iterates, same ledger
in every version.

Only public names are used here, so that the list outlives any change inside. `python
tests/support/recorded.py NAME...` records the named trainings anew, `--new` those that are not recorded
yet: for a change that is meant to change numbers.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import mtcd
from live import federate
from own_parts import model_section
from torch_if_installed import nn, torch

FILE = Path(__file__).with_name("recorded.json")
Record = dict[str, Any]
RIDGE, LASSO = mtcd.Glm("ridge", alpha=0.7), mtcd.Glm("linear", l1=0.3)
LOGISTIC, SPARSE = (
    mtcd.Glm("logistic", l2=0.2, intercept=True),
    mtcd.Glm("logistic", l1=0.1, l2=0.2),
)
MULTINOMIAL, HUBER = mtcd.Glm("multinomial", l2=0.3), mtcd.Glm("huber", delta=0.8, l2=0.4)
HINGE = mtcd.Glm("squared-hinge", l1=0.2, l2=0.1)
TOUR = {"walk": "tour", "local_updates": 3, "stepsize": 0.01}


def table(model: mtcd.Glm, clients: int = 6, samples: int = 30, seed: int = 1) -> mtcd.VerticalData:
    """Two features at every client, and labels that suit the model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, 2 * clients))
    score = X @ rng.standard_normal(2 * clients) + 0.3 * rng.standard_normal(samples)
    if model.kind in ("logistic", "squared-hinge"):
        return mtcd.split(X, (score > 0).astype(float), clients=clients)
    if model.kind == "multinomial":
        return mtcd.split(X, np.digitize(score, [-1.0, 1.0]).astype(float), clients=clients)
    return mtcd.split(X, score, clients=clients)


def linear(model: mtcd.Glm, network: Any, method: Any, stop: Any = None, **more: Any) -> Record:
    """A linear model, in one process."""
    data = table(model)
    changes = more.pop("changes", None)
    if changes is not None:
        network = mtcd.with_changes(mtcd.make_network(network, data.clients), changes)
    run = mtcd.train(
        data, model, network, method, stop or mtcd.Stop(iterations=120), seed=5, **more
    )
    return {
        "status": run.status,
        "iterations": run.final.iteration,
        "ledger": run.ledger.to_dict(),
        "objective": [row.objective for row in list(run.history)[:: max(1, len(run.history) // 6)]],
        "parameters": np.asarray(run.coefficients).ravel().tolist(),
        "tolerance": 1e-9,
    }


def split(aggregation: str, method: Any, **more: Any) -> Record:
    """A split network, in one process."""
    rng = np.random.default_rng(2)
    features = {f"c{k}": rng.standard_normal((24, 3)).astype(np.float32) for k in range(4)}
    labels = (sum(x.sum(axis=1) for x in features.values()) > 0).astype(int)
    torch.manual_seed(0)
    modules = {
        name: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3)) for name in features
    }
    model = mtcd.SplitModel(
        modules, nn.Linear(12 if aggregation == "concat" else 3, 2), aggregation=aggregation
    )
    data = mtcd.VerticalDataset(features, labels)
    run = mtcd.train(
        data,
        model,
        "path",
        method,
        mtcd.Stop(iterations=60),
        seed=5,
        compute=mtcd.Compute("cpu"),
        **more,
    )
    return {
        "status": run.status,
        "iterations": run.final.iteration,
        "ledger": run.ledger.to_dict(),
        "objective": [row.objective for row in list(run.history)[:: max(1, len(run.history) // 6)]],
        "parameters": [],
        "tolerance": 2e-4,
    }


def federated(
    model: mtcd.Glm, method: dict[str, Any], network: str = "cycle", **more: Any
) -> Record:
    """A linear model, trained by parties that are nodes of their own, over real links."""
    data = table(model, clients=4)
    server = {} if method["kind"] in ("mtcd", "svfl") else {"server": None}
    settings = {
        "model": model_section(model),
        "method": method,
        "stop": {"iterations": 40},
        "seed": 5,
    }
    with tempfile.TemporaryDirectory() as folder:
        left = federate(Path(folder), data, network={"kind": network}, **settings, **server, **more)
    summary = left.summaries[data.clients[0]]
    return {
        "status": summary.status,
        "iterations": summary.iterations,
        "ledger": left.ledger.to_dict(),
        "objective": [],
        "parameters": np.concatenate(
            [left.blocks[name].theta.ravel() for name in data.clients]
        ).tolist(),
        "tolerance": 1e-9,
    }


MTCD, STCD, SVFL = mtcd.MTCD, mtcd.STCD, mtcd.SVFL
CLUSTERS = {"tokens": 2, "hops": 5, "local_updates": 2, "stepsize": 0.01, "combine": "cluster"}
ACCELERATED = {**CLUSTERS, "hops": 8, "walk": "tour"}
CHANGES = [mtcd.Change(40, leave=("client_2",)), mtcd.Change(80, join=("client_2",))]
WIRED = {"kind": "mtcd", "tokens": 2, "hops": 5, "local_updates": 2, "stepsize": 0.005}

TRAININGS: dict[str, Callable[[], Record]] = {
    "stcd, ridge, cycle": partial(linear, RIDGE, "cycle", STCD(3, 0.01)),
    "stcd, lasso, path": partial(linear, LASSO, "path", STCD(3, 0.01)),
    "stcd, sparse logistic, metropolis": partial(
        linear, SPARSE, "star", STCD(3, 0.01, walk="metropolis")
    ),
    "stcd, multinomial, tour": partial(linear, MULTINOMIAL, "cycle", STCD(**TOUR)),
    "stcd, huber, random-tour": partial(linear, HUBER, "path", STCD(2, 0.01, walk="random-tour")),
    "stcd, hinge, non-backtracking": partial(
        linear, HINGE, "cycle", STCD(2, 0.01, walk="non-backtracking")
    ),
    "stcd, conjugate": partial(
        linear, RIDGE, "path", STCD(acceleration="conjugate", depth=3, **TOUR)
    ),
    "stcd, conjugate, steps of its own": partial(
        linear, LOGISTIC, "star", STCD(walk="tour", acceleration="conjugate")
    ),
    "stcd, twin": partial(linear, LOGISTIC, "star", STCD(walk="tour", acceleration="twin")),
    "stcd, momentum": partial(linear, SPARSE, "cycle", STCD(acceleration="momentum", **TOUR)),
    "stcd, anderson": partial(
        linear, RIDGE, "cycle", STCD(acceleration="anderson", depth=3, **TOUR)
    ),
    "stcd, auto": partial(linear, LOGISTIC, "complete", STCD(2), standardise=True),
    "stcd, to a gap": partial(linear, RIDGE, "cycle", STCD(5), mtcd.Stop(gap=1e-3)),
    "stcd, clients that leave": partial(linear, RIDGE, "complete", STCD(2, 0.01), changes=CHANGES),
    "mtcd, average": partial(linear, LOGISTIC, "complete", MTCD(3, 4, 2, 0.01)),
    "mtcd, clusters": partial(linear, RIDGE, "path", MTCD(**CLUSTERS)),
    "mtcd, clusters found": partial(
        linear, RIDGE, "path", MTCD(hops=4, stepsize=0.01, clusters="auto")
    ),
    "mtcd, visitors": partial(linear, LASSO, "cycle", MTCD(3, 4, 2, 0.01, combine="visitors")),
    "mtcd, optimal": partial(linear, HUBER, "cycle", MTCD(3, 4, 2, 0.02, combine="optimal")),
    "mtcd, batches": partial(linear, LOGISTIC, "path", MTCD(**CLUSTERS, batch=7)),
    "mtcd, average, batches": partial(
        linear, MULTINOMIAL, "complete", MTCD(2, 3, 2, 0.01, batch=6)
    ),
    "mtcd, conjugate": partial(
        linear, RIDGE, "path", MTCD(acceleration="conjugate", depth=3, **ACCELERATED)
    ),
    "mtcd, momentum": partial(linear, SPARSE, "path", MTCD(acceleration="momentum", **ACCELERATED)),
    "mtcd, schedule": partial(
        linear, RIDGE, "path", MTCD(**CLUSTERS, schedule=mtcd.Schedule(every=10, factor=0.5))
    ),
    "svfl": partial(linear, MULTINOMIAL, "complete", SVFL(2, 0.005), mtcd.Stop(iterations=30)),
    "svfl, batches": partial(
        linear, RIDGE, "complete", SVFL(2, 0.005, batch=6), mtcd.Stop(iterations=30)
    ),
    "dcpa": partial(linear, RIDGE, "cycle", mtcd.DCPA(), mtcd.Stop(iterations=40)),
    "dcpa, variant A": partial(
        linear, SPARSE, "complete", mtcd.DCPA(variant="A"), mtcd.Stop(iterations=40)
    ),
    "tree-cg": partial(linear, LOGISTIC, "star", mtcd.TreeCG(), mtcd.Stop(iterations=12)),
    "split, mtcd, clusters, concat": partial(
        split, "concat", MTCD(2, 2, 2, 0.1, combine="cluster", batch=6)
    ),
    "split, mtcd, average, sum": partial(split, "sum", MTCD(2, 3, 2, 0.1)),
    "split, stcd, mean": partial(split, "mean", STCD(2, 0.1, fusion_client="each")),
    "split, svfl": partial(split, "concat", SVFL(2, 0.1, batch=6)),
    "federation, stcd": partial(
        federated, LOGISTIC, {"kind": "stcd", "local_updates": 2, "stepsize": 0.01}
    ),
    "federation, mtcd, clusters": partial(
        federated, LOGISTIC, {**WIRED, "combine": "cluster"}, "path"
    ),
    "federation, mtcd, batches": partial(
        federated, RIDGE, {**WIRED, "combine": "average", "batch": 7}
    ),
    "federation, svfl": partial(
        federated, RIDGE, {"kind": "svfl", "local_updates": 2, "stepsize": 0.005}
    ),
    "federation, conjugate": partial(
        federated, RIDGE, {"kind": "stcd", "walk": "tour", "acceleration": "conjugate"}
    ),
}


def recorded() -> dict[str, Record]:
    """What was recorded, by name."""
    found: dict[str, Record] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def main(named: list[str]) -> None:
    """Record trainings anew."""
    records = recorded()
    wanted = [
        name for name in TRAININGS if name in named or ("--new" in named and name not in records)
    ]
    records |= {name: TRAININGS[name]() for name in wanted}
    FILE.write_text(
        json.dumps({name: records[name] for name in TRAININGS if name in records}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
