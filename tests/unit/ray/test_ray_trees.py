"""Trees and mixed families in hosts (``thread_cluster.py``): bit for bit as in one process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lightgbm")

from additive_trainings import CLIENTS, METHODS, MODELS, assert_same, data, trained
from mtcd.models.trees.problem import AdditiveProblem
from mtcd.network.topology import make_network
from mtcd.ray.engine import RayEngine
from mtcd.ray.settings import Ray
from mtcd.training.training import BlockRecipe
from thread_cluster import ThreadCluster


@dataclass(frozen=True)
class Hosts(Ray):
    """Two hosts in threads of this process; ``on_start`` gets their cluster."""

    on_start: Callable[[ThreadCluster], None] = lambda cluster: None

    def maker(self, recipe: Any) -> Any:
        cluster = ThreadCluster(2)
        self.on_start(cluster)
        return partial(RayEngine, self, recipe, cluster=cluster)


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
