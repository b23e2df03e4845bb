"""Split networks in hosts (``thread_cluster.py``): bit for bit as in one process; ``tests/processes/ray`` has
one on Ray."""

from __future__ import annotations

from copy import deepcopy
from itertools import islice
from typing import Any

import pytest

pytest.importorskip("torch")

from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.recipe import SplitRecipe
from mtcd.models.splitnet.setup import split_parties
from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.ray.cluster import RayActors
from mtcd.ray.engine import RayEngine
from split_problems import SplitCase, case, dropping, normed
from thread_cluster import ThreadCluster

METHODS = [
    MTCD(tokens=2, hops=3, stepsize=0.03),
    MTCD(tokens=2, hops=3, stepsize=0.03, combine="cluster"),
    MTCD(tokens=2, hops=3, stepsize=0.03, batch=5),
    STCD(stepsize=0.03, fusion_client="each"),
    STCD(stepsize=0.03, first_pass=False),
    SVFL(stepsize=0.03, batch=6),
]
ONE = case("cycle", count=13, made=normed, head=normed)
WITHOUT_SERVER = case("cycle", count=13, made=normed)


def of(method: Method) -> SplitCase:
    """Batch norm in all networks; in the fusion module only where a server holds its statistics."""
    return WITHOUT_SERVER if method.kind == "stcd" else ONE


def local(method: Method) -> LocalEngine:
    return LocalEngine(
        split_parties(method, of(method).problem(), ONE.network, 0).parties(), Ledger(float_bytes=4)
    )


def hosted(method: Method, cluster: RayActors | None = None) -> RayEngine:
    problem, cluster = of(method).problem(), cluster or ThreadCluster()
    recipe = SplitRecipe(method, ONE.network, 0, problem)
    parties = split_parties(method, problem, ONE.network, 0).parties()
    return RayEngine(cluster.settings, recipe, parties, Ledger(float_bytes=4), cluster)


def seen(engine: Engine) -> Any:
    weights = [{name: value.clone() for name, value in one.items()} for one in engine.parameters()]
    return weights, deepcopy(engine.ledger), engine.epoch_loss()


def assert_same(found: Any, expected: Any) -> None:
    for ours, theirs in zip(found[0], expected[0], strict=True):
        assert all(ours[name].equal(value) for name, value in theirs.items())
    assert found[1:] == expected[1:]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
def test_networks_losses_and_ledger_are_those_of_one_process(method: Method) -> None:
    plain = local(method)
    expected = [(one.hop, one.t, seen(plain)) for one in islice(plain.run(), 5)]
    with hosted(method) as engine:
        for progress, (hop, t, state) in zip(engine.run(), expected, strict=False):
            assert (progress.hop, progress.t) == (hop, t)
            assert_same(seen(engine), state)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
def test_an_actor_that_dies_changes_nothing(method: Method) -> None:
    plain, cluster = local(method), ThreadCluster()
    expected = [(one.hop, seen(plain)[:2]) for one in islice(plain.run(), 6)]
    with hosted(method, cluster) as engine:
        for count, (progress, (hop, state)) in enumerate(zip(engine.run(), expected, strict=False)):
            assert progress.hop == hop
            assert_same(seen(engine)[:2], state)
            if count in (1, 3):
                cluster.handles[count // 2].kill()
    assert engine.restarts == 2


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
@pytest.mark.parametrize("makers", [(local, hosted), (hosted, local), (hosted, hosted)])
def test_a_checkpoint_is_resumed_by_either_engine(method: Method, makers: Any) -> None:
    plain = local(method)
    expected = [(one.hop, seen(plain)[0]) for one in islice(plain.run(), 5)]
    with makers[0](method) as first:
        list(islice(first.run(), 3))
        seen(first)
        kept = deepcopy(first.snapshot())
    with makers[1](method) as second:
        second.resume(kept)
        again = [(one.hop, seen(second)[0]) for one in islice(second.run(), 3)]
    for (hop, weights), (its_hop, its_weights) in zip(again, expected[2:], strict=True):
        assert hop == its_hop
        assert_same((weights,), (its_weights,))


def test_a_host_has_the_samples_and_networks_of_its_own_clients_only() -> None:
    share = SplitRecipe(METHODS[0], ONE.network, 0, ONE.problem()).share([1, 3])
    assert set(share.part.modules) == set(share.part.features) == {1, 3}


def test_dropout_draws_the_same_masks() -> None:
    drawn = case("cycle", count=13, made=dropping)
    method = MTCD(tokens=2, hops=3, stepsize=0.03, combine="cluster")
    plain = LocalEngine(
        split_parties(method, drawn.problem(), drawn.network, 0).parties(), Ledger(float_bytes=4)
    )
    expected = [seen(plain) for _ in islice(plain.run(), 4)]
    # threads of one process share the generator of PyTorch
    problem, cluster = drawn.problem(), ThreadCluster(1)
    parties = split_parties(method, problem, drawn.network, 0).parties()
    recipe = SplitRecipe(method, drawn.network, 0, problem)
    with RayEngine(cluster.settings, recipe, parties, Ledger(float_bytes=4), cluster) as engine:
        for _, state in zip(engine.run(), expected, strict=False):
            assert_same(seen(engine), state)
