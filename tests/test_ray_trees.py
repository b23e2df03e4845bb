"""Trees and mixed families in hosts (``thread_cluster.py``): bit for bit as in one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lightgbm")

import mtcd
from mtcd.engines.kinds import EngineSettings
from mtcd.models.trees.problem import AdditiveProblem
from mtcd.network.topology import make_network
from mtcd.ray.engine import RayEngine
from mtcd.ray.settings import Ray
from mtcd.training.recipes import BlockRecipe
from thread_cluster import ThreadCluster

CLIENTS = 4
METHODS = {
    "tour": mtcd.STCD(walk="tour"),
    "clusters": mtcd.MTCD(clusters=[[0, 1], [2, 3]], hops=4),
    "optimal": mtcd.MTCD(clusters=[[0, 1], [2, 3]], hops=4, combine="optimal"),
    "crossing": mtcd.MTCD(tokens=2, hops=3, local_updates=2),
}
MODELS = {
    "trees": mtcd.Trees("logistic", min_samples=5),
    "mixed": mtcd.Mixed(
        "logistic", {"client_1": "linear", "client_3": {"kind": "net", "hidden": [3]}}, "trees"
    ),
    "l1": mtcd.Mixed(
        "logistic", {"client_3": {"kind": "linear", "l1": 2.0}}, {"kind": "trees", "min_samples": 5}
    ),
}


@dataclass(frozen=True)
class Hosts(Ray):
    """Two hosts in threads of this process; ``on_start`` gets their cluster."""

    on_start: Callable[[ThreadCluster], None] = lambda cluster: None

    def maker(self, recipe: Any) -> Any:
        cluster = ThreadCluster(2)
        self.on_start(cluster)
        return partial(RayEngine, self, recipe, cluster=cluster)


def data(samples: int = 90) -> mtcd.VerticalData:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((samples, 3 * CLIENTS))
    y = X[:, 0] ** 2 + np.sin(2 * X[:, 4]) + X[:, 7] - X[:, 10] > 1
    return mtcd.split(X, y.astype(int), CLIENTS)


def trained(model: str, method: str, engine: EngineSettings | None) -> mtcd.Run:
    return mtcd.train(
        data(), MODELS[model], "cycle", METHODS[method], mtcd.Stop(iterations=24), engine=engine
    )


def assert_same(run: mtcd.Run, plain: mtcd.Run) -> None:
    X = np.random.default_rng(4).standard_normal((40, 3 * CLIENTS))
    np.testing.assert_array_equal(run.predict_proba(X), plain.predict_proba(X))
    assert run.final.objective == plain.final.objective
    assert run.ledger == plain.ledger


@pytest.mark.parametrize(
    ("model", "method"),
    [
        *(("trees", method) for method in METHODS),
        ("mixed", "tour"),
        ("mixed", "clusters"),
        ("l1", "optimal"),
    ],
)
def test_model_objective_and_ledger_are_those_of_one_process(model: str, method: str) -> None:
    if model == "mixed":
        pytest.importorskip("torch")
    plain = trained(model, method, None)
    assert plain.final.objective < 0.9 * plain.history["objective"][0]
    assert_same(trained(model, method, Hosts()), plain)


def test_an_actor_that_dies_changes_nothing() -> None:
    clusters: list[ThreadCluster] = []

    def killing(cluster: ThreadCluster) -> None:
        clusters.append(cluster)
        wait = cluster.wait

        def kill_once(*given: Any) -> Any:
            cluster.wait = wait  # type: ignore[method-assign]
            cluster.handles[1].kill()
            return wait(*given)

        cluster.wait = kill_once  # type: ignore[method-assign]

    run = trained("trees", "clusters", Hosts(on_start=killing))
    assert clusters[0].created == [0, 1, 1]
    assert_same(run, trained("trees", "clusters", None))


def test_a_share_has_the_blocks_of_its_own_clients_only() -> None:
    pytest.importorskip("torch")
    given = data()
    problem = AdditiveProblem.of(MODELS["mixed"], given, 0)
    share = BlockRecipe(METHODS["tour"], make_network("cycle", given.clients), 0, problem).share(
        [1, 3]
    )
    assert [block.shape[1] for block in share.problem.blocks] == [0, 3, 0, 3]
    assert share.problem.evaluation is None
    thetas = [problem.client(k).initial() for k in range(CLIENTS)]
    own = share.aggregate({k: thetas[k] for k in (1, 3)})
    np.testing.assert_array_equal(
        own, problem.client(1).represent(thetas[1]) + problem.client(3).represent(thetas[3])
    )
