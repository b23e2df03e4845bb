"""Masked aggregation in a federation with faults: the training is the plain one without."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.protocol.party import SERVER
from mtcd.testing.simulator.world import FOREVER, Faults, World, make_with
from problems import make_data

MODEL = Glm("ridge", alpha=0.7)
DATA = make_data(MODEL, 12, [2, 1, 3, 2], seed=3)
NETWORK = make_network("cycle", DATA.clients)
EVERYTHING = Faults(loss=0.1, duplicate=0.1, crash=0.02, cut=0.02, hang=0.02)
METHODS: dict[str, Method] = {
    "svfl": SVFL(stepsize=0.01),
    "mini-batches": MTCD(tokens=2, hops=2, batch=4, stepsize=0.02),
    "tokens": MTCD(clusters=[[0, 1], [2, 3]], hops=2, stepsize=0.02),
}


def world_of(method: Method, faults: Faults) -> World:
    return World(
        lambda: method.parties(MODEL.problem(DATA), NETWORK, 7),
        1,
        make_with(make_reliable_party, NETWORK),
        faults,
    )


def reported(world: World, count: int) -> dict[int, tuple[float, Any]]:
    """The penalty and the aggregate at the first reports."""
    found: dict[int, tuple[float, Any]] = {}
    while len(found) < count:
        world.step()
        found |= {
            one.payload.hop: (one.payload.penalty, one.payload.aggregate) for one in world.reports
        }
        world.reports.clear()
        assert world.time < 30_000, world.happened
    return found


@pytest.mark.parametrize("name", METHODS)
def test_with_faults_the_training_is_the_plain_one_without(name: str) -> None:
    plain = reported(world_of(METHODS[name], Faults()), 14)
    world = world_of(with_masks(METHODS[name]), EVERYTHING)
    found = reported(world, 12)
    found.pop(0)  # before any upload
    for hop, (penalty, aggregate) in found.items():
        assert penalty == pytest.approx(plain[hop][0], abs=1e-8)
        if aggregate is not None:
            np.testing.assert_allclose(aggregate, plain[hop][1], atol=1e-8)
    assert world.happened["crash"] > 3


@pytest.mark.parametrize("name", ["svfl", "mini-batches"])
@pytest.mark.parametrize("who", [1, SERVER])
def test_without_a_party_the_training_waits_and_with_it_goes_on(name: str, who: int) -> None:
    world = world_of(with_masks(METHODS[name]), Faults())
    before = reported(world, 3)
    world.crash(who, FOREVER)
    for _ in range(400):
        world.step()
    stuck = {one.payload.hop for one in world.reports}
    assert len(stuck - before.keys()) <= 1
    others = [party for number, party in world.parties.items() if number != who]
    for party in others:
        party.peer_lost(who)
        assert party.policy.waits_for == {who}
    world.start(who)
    assert max(reported(world, 4)) > max(before)
