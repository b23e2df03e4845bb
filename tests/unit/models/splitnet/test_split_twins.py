"""Fixed cases of split networks against their plain twin: quick, before the random ones of
``test_split_twin.py``."""

import pytest

import mtcd
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.mtcd.roaming import plan_roaming
from mtcd.methods.svfl.svfl import SVFL
from mtcd.testing.references import splitnet as reference
from split_problems import case
from split_references import check_equal, how, task, twin_of_mtcd


@pytest.mark.parametrize("aggregation", ["concat", "mean"])
@pytest.mark.parametrize("batch", [None, 5])
@pytest.mark.parametrize("clustered", [False, True])
def test_mtcd(clustered: bool, batch: int | None, aggregation: str) -> None:
    one = case(aggregation=aggregation, count=13, seed=3)
    clusters = [one.data.clients[:2], one.data.clients[2:]] if clustered else None
    schedule = mtcd.Schedule(every=1, factor=0.7)
    method = MTCD(2, 3, 2, 0.1, batch, clusters=clusters, schedule=schedule, fusion_updates=3)
    check_equal(
        one.train(method, mtcd.Stop(iterations=4 * method.hops)), *twin_of_mtcd(one, method, 4)
    )


@pytest.mark.parametrize("first_pass", [True, False])
def test_stcd(first_pass: bool) -> None:
    one, method, hops = case(count=13, seed=3), STCD(2, 0.1, first_pass=first_pass), 9
    roaming = plan_roaming(one.network, 1, None, "lazy", None, one.seed, None)
    twin = reference.stcd(task(one), roaming, how(one, method, 0), frozenset([0]), hops, first_pass)
    check_equal(one.train(method, mtcd.Stop(iterations=hops)), *twin)


@pytest.mark.parametrize("batch", [None, 4])
def test_svfl(batch: int | None) -> None:
    one, method = case(count=13, seed=3), SVFL(2, 0.05, batch, fusion_updates=3)
    run = one.train(method, mtcd.Stop(iterations=4))
    check_equal(run, *reference.svfl(task(one), how(one, method, 3), 4)[4])
