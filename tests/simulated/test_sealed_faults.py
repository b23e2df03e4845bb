"""Sealed tours in a federation with faults: the training is the one without, bit for bit.

The cipher is the one in the clear, which computes the same integers; one storm is under encryption.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.privacy.sealed.bfv.cipher import SchemeName, find
from mtcd.privacy.sealed.settings import SealedTours, gathered
from mtcd.protocol.party import SERVER
from mtcd.testing.simulator.world import FOREVER, Faults, World, make_with
from problems import make_data
from simulated_deliveries import EVERYTHING
from simulated_ends import ends, in_process, limited, run_to_the_end, summed

MODEL = Glm("logistic", l2=0.5)
DATA = make_data(MODEL, 40, [8, 6, 7], seed=3)  # without a server: three tours at most
PROBLEM = MODEL.problem(DATA)
# requests pass through others where there is no server
NETWORK = make_network("path", DATA.clients)
HOLDERS = pytest.mark.parametrize("server", [True, False], ids=["server", "alone"])
LABEL_HOLDER, TOURS = 0, 3


def making_parties(server: bool, scheme: SchemeName = "clear") -> Any:
    """The parties of one run: its key is made once, as if it were in the folder of its holder."""
    method, make_key = (
        SealedTours(server=server, depth=2, scheme=scheme),
        cache(find(scheme).generate),
    )
    return lambda: method.parties(PROBLEM, NETWORK, 7, make_key=make_key)


def world_of(server: bool, faults: Faults, seed: int = 1, scheme: SchemeName = "clear") -> World:
    return World(
        making_parties(server, scheme), seed, make_with(make_reliable_party, NETWORK), faults
    )


def completed(world: World) -> int:
    """The tours that have ended, by the journal of the key holder."""
    holder = SERVER if SERVER in world.numbers else LABEL_HOLDER
    tours: int = world.journals[holder].last()["party"]["holding"]["completed"]
    return tours


def run_tours(world: World, tours: int) -> None:
    while completed(world) < tours:
        world.step()
        assert world.time < 30_000, world.happened


def held(world: World) -> list[np.ndarray]:
    """theta after the tour that ended last, as the journals have it."""
    made: dict[int, Any] = {k: world.from_journal(k).party for k in world.numbers}
    server = made.pop(SERVER, None)
    return gathered([made[k] for k in sorted(made)], server)


@cache
def undisturbed(server: bool, tours: int) -> list[np.ndarray]:
    world = world_of(server, Faults())
    run_tours(world, tours)
    return held(world)


def assert_undisturbed(world: World, tours: int) -> None:
    for mine, theirs in zip(held(world), undisturbed(SERVER in world.numbers, tours), strict=True):
        np.testing.assert_array_equal(mine, theirs)
        assert np.abs(mine).max() > 0


@HOLDERS
@pytest.mark.parametrize("seed", range(2))
def test_with_faults_the_training_is_the_one_without(server: bool, seed: int) -> None:
    world = world_of(server, EVERYTHING, seed)
    for tours in range(1, TOURS + 1):
        run_tours(world, tours)
        assert_undisturbed(world, tours)
    assert world.happened["crash"] > 2
    assert set(world.processed.values()) == {1}


def test_under_encryption_too() -> None:
    pytest.importorskip("tenseal")
    world = world_of(True, EVERYTHING, scheme="bfv")
    run_tours(world, 2)
    assert_undisturbed(world, 2)
    assert world.happened["crash"] > 0


@HOLDERS
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_crash_at_any_commit_changes_nothing(server: bool, after: bool) -> None:
    for at in range(after, 100, 3):
        world = world_of(server, Faults())
        checks = iter(range(2 * at + after + 1))

        def crashes(checks: Any = checks, last: int = 2 * at + after) -> bool:
            return next(checks, None) == last

        for journal in world.journals.values():
            journal.crashes = crashes
        run_tours(world, 2)
        assert_undisturbed(world, 2)
        if not world.happened["crash"]:
            assert at > 20
            return
    raise AssertionError("there is no end of commits")


@HOLDERS
@pytest.mark.parametrize("who", [SERVER, LABEL_HOLDER, 2], ids=["server", "label holder", "party"])
def test_without_a_party_the_others_wait_and_with_it_they_go_on(server: bool, who: int) -> None:
    world = world_of(server, Faults())
    if who not in world.numbers:
        return
    run_tours(world, 1)
    world.crash(who, FOREVER)
    for _ in range(300):
        world.step()
    assert completed(world) == 1
    for party in world.parties.values():
        party.peer_lost(who)
        assert party.policy.waits_for == {who}
    world.start(who)
    for party in world.parties.values():
        party.peer_found(who)
    run_tours(world, TOURS)
    assert_undisturbed(world, TOURS)


@HOLDERS
def test_the_end_is_that_of_a_training_in_one_process(server: bool) -> None:
    make = limited(make_with(make_reliable_party, NETWORK), limit)
    world = World(making_parties(server), 3, make, EVERYTHING)
    run_to_the_end(world)
    assert {end.status for end in ends(world) if end is not None} == {"iterations"}
    expected, ledger = in_process(world.make_parties(), limit)
    for mine, theirs in zip(world.parameters(), expected, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    assert summed(world) == ledger


def limit(told: Any) -> str | None:
    return "iterations" if told.hop >= 2 else None
