"""Actors that die, on a cluster in this process (``thread_cluster.py``); ``tests/processes/ray`` kills real
ones."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")  # of the cases

from contract_cases import BY_NAME, RIDGE, assert_close, reference
from engine_cases import EngineCase
from mtcd.core.errors import MtcdError
from mtcd.engines.local import LocalEngine
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER
from mtcd.ray.engine import RayEngine
from mtcd.training.training import BlockRecipe
from thread_cluster import ThreadCluster

ONE_OF_EACH = ("stcd", "mtcd in clusters", "mtcd in batches", "svfl", "dcpa", "accelerated")


def killing(cluster: ThreadCluster, at: dict[int, int]) -> Any:
    """After so many deliveries to an actor (values), kill it (keys); once each."""
    left = dict(at)

    def watched(number: int) -> None:
        handle, deliver = cluster.handles[number], cluster.handles[number].actor.deliver

        def counted(*given: Any) -> None:
            left[number] = left.get(number, -1) - 1
            if left[number] == 0:
                handle.kill()
            else:
                deliver(*given)

        handle.actor.deliver = counted

    return watched


@pytest.mark.parametrize("name", ONE_OF_EACH)
@pytest.mark.parametrize("at", [{1: 1}, {1: 4}, {0: 3, 1: 5}])
def test_iterates_and_ledger_are_those_of_a_training_without_faults(
    name: str, at: dict[int, int]
) -> None:
    case, expected = BY_NAME[name], reference(name)
    cluster = ThreadCluster()
    cluster.on_create = killing(cluster, at)
    engine = case.hosted(cluster)
    found = case.train(engine)
    assert engine.restarts >= 1
    assert (found.status, found.ledger) == (expected.status, expected.ledger)
    assert_close(name, found.parameters, expected.parameters)
    assert_close(name, found.objectives, expected.objectives)


def test_the_token_is_true_after_every_death() -> None:
    """The aggregate of the token is that of the blocks which the clients hold."""
    case = BY_NAME["mtcd in clusters"]
    cluster = ThreadCluster()
    with case.hosted(cluster) as engine:
        for count, progress in enumerate(engine.run()):
            held = case.problem.aggregate(engine.parameters())
            np.testing.assert_allclose(progress.aggregate, held, rtol=1e-10, atol=1e-12)
            if count in (3, 4, 9):
                cluster.handles[count % 2].kill()
            if count == 12:
                break
    assert engine.restarts == 3


def test_an_actor_that_keeps_dying_ends_the_training() -> None:
    case, cluster = BY_NAME["stcd"], ThreadCluster(restarts=2)
    engine = case.hosted(cluster)
    with engine:
        observations = engine.run()
        for _ in range(5):
            next(observations)
        cluster.on_create = lambda number: cluster.handles[number].kill()
        cluster.handles[1].kill()
        with pytest.raises(
            MtcdError, match=r"died 3 times without progress.*it was killed.*engine.memory"
        ):
            list(observations)


def test_a_party_that_raises_ends_the_training_with_its_error() -> None:
    case = BY_NAME["mtcd average"]
    engine = case.hosted(ThreadCluster())
    with engine:
        observations = engine.run()
        next(observations)
        server = engine.cluster.handles[0].actor.host._parties[SERVER]
        server.receive = _no_more
        with pytest.raises(MtcdError, match="no more"):
            list(observations)


def _no_more(message: Any) -> Any:
    raise MtcdError("no more")


def test_tree_cg_is_as_in_one_process() -> None:
    case = EngineCase("tree-cg", RIDGE, {"kind": "stcd", "stepsize": 0.01}, "cycle")
    network, method = case.config.network, TreeCG()
    expected = LocalEngine(method.parties(case.problem, network, 0), Ledger())
    observed = [
        [theta.copy() for theta in expected.parameters()] for _ in islice(expected.run(), 6)
    ]
    cluster = ThreadCluster()
    recipe = BlockRecipe(method, network, 0, case.problem)
    engine = RayEngine(
        cluster.settings, recipe, method.parties(case.problem, network, 0), Ledger(), cluster
    )
    with engine:
        for _, parameters in zip(engine.run(), observed, strict=False):
            for ours, theirs in zip(engine.parameters(), parameters, strict=True):
                np.testing.assert_array_equal(ours, theirs)
