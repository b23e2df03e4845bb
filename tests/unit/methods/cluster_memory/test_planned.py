"""What ``mtcd plan`` tries of ``combine: memory``: several numbers of tokens, solved blocks, tours
of even length."""

from __future__ import annotations

import pytest

import mtcd
from mtcd.methods.cluster_memory.rule import ClusterMemory
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.planned import PlanSetting
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.network.tours import closed_walk
from mtcd.planner.candidates import Space


def space_of(clients: int, model: mtcd.Glm) -> Space:
    """On a grid."""
    data = mtcd.synthetic("ridge", samples=20, features=clients, clients=clients, seed=1)
    network = mtcd.make_network("grid", data.clients)
    return Space(network, BlockSmoothness(model.problem(data)), mtcd.STCD(1, 0.01), 1, 0)


def of_memory(space: Space) -> list[MTCD]:
    found = []
    for method in space.candidates():
        if isinstance(method, MTCD) and method.combine == "memory":
            found.append(method)
    return found


def test_several_numbers_of_tokens_are_tried_each_with_solved_blocks() -> None:
    found = of_memory(space_of(12, mtcd.Glm("ridge", alpha=1.0)))
    assert {method.tokens for method in found} == {2, 4, 8, 12}
    assert {method.local_solver for method in found} == {"newton", "majorise"}


def test_every_one_of_them_can_be_trained() -> None:
    data = mtcd.synthetic("ridge", samples=20, features=12, clients=12, seed=1)
    for method in of_memory(space_of(12, mtcd.Glm("ridge", alpha=1.0))):
        stop = mtcd.Stop(gap=1e-3, iterations=4000)
        run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "grid", method, stop)
        assert run.status == "converged"


def test_none_is_tried_with_l1() -> None:
    assert of_memory(space_of(12, mtcd.Glm("linear", l1=0.1))) == []


@pytest.mark.parametrize(("tokens", "auto", "even"), [(20, 16, 12), (50, 8, 8)])
def test_clusters_are_balanced_where_that_shortens_the_longest_tour(
    tokens: int, auto: int, even: int
) -> None:
    space: PlanSetting = space_of(225, mtcd.Glm("ridge", alpha=1.0))
    given = MTCD(tokens, auto, clusters="auto", walk="tour", combine="memory", stepsize=0.1)
    for method in ClusterMemory.tried(given, space):
        assert method.clusters == ("balanced" if even < auto else "auto")
        assert method.hops == even
        clusters = method.token_clusters(space.network, 0)
        assert clusters is not None
        assert max(len(closed_walk(space.network, cluster)) for cluster in clusters) == even
