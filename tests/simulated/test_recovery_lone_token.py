"""Recovery of a lone token: one token at all times, whichever client is suspected of being down, or
is."""

import numpy as np
import pytest

from lone_worlds import DATA, PROBLEM, assert_kept, lone_world
from mtcd.federation.recovery.search import Search
from mtcd.network.topology import make_network
from mtcd.protocol.codec.records import pack, unpack
from mtcd.testing.simulator.world import Faults, World
from simulated_ends import limited
from suspected_clients import all_is_well, slander

FAULTS = Faults(loss=0.05, duplicate=0.1, crash=0.005, cut=0.01, hang=0.01)


@pytest.mark.parametrize("network", ["cycle", "complete", "path", "star"])
def test_whatever_links_believe_the_token_is_neither_doubled_nor_lost(network: str) -> None:
    world = lone_world(network, 2, FAULTS)
    while world.time < 1200:
        world.step()
        if world.random.random() < 0.1:
            who, k = world.random.sample(world.numbers, 2)
            world.report(who, k, world.random.random() < 0.7)
        if world.time % 25 == 0:
            assert_kept(world)
    hop = assert_kept(world).hop
    all_is_well(world)
    for _ in range(800):
        world.step()
    assert assert_kept(world).hop > hop + 50


def steps(world: World, fewest: int, most: int) -> None:
    for _ in range(world.random.randrange(fewest, most)):
        world.step()


@pytest.mark.parametrize("network", ["cycle", "complete", "path", "star"])
@pytest.mark.parametrize("seed", range(2))
def test_of_two_who_regenerate_the_token_one_counts(
    network: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where nobody asks whether others see the receiver as down."""
    monkeypatch.setattr(Search, "unreachable", lambda search, _: {search.to})
    world = lone_world(network, seed, Faults(loss=0.02, duplicate=0.1, crash=0.002))
    terms: set[int] = set()
    for _ in range(10):
        steps(world, 5, 30)
        slander(world)
        steps(world, 1, 30)
        slander(world)
        steps(world, 60, 160)
        assert_kept(world)
        terms |= {term for reliable in world.parties.values() for term in reliable.terms}
        all_is_well(world)
        world.faults = Faults(loss=0.02, duplicate=0.1, crash=0.002)
    assert terms


@pytest.mark.parametrize("seed", range(2))
def test_faults_that_links_tell_of_are_lived_through(seed: int) -> None:
    network = make_network("cycle" if seed else "complete", DATA.clients)
    world = lone_world(network, seed, FAULTS)
    while world.time < 2500:
        world.report_truth(network)
        world.step()
        if world.time % 50 == 0:
            assert_kept(world)
    assert assert_kept(world).hop > 100
    assert min(world.happened[kind] for kind in ("crash", "cut", "hang")) > 3


def ends_at_40(world: World) -> World:
    """The same, with an end."""
    world.make = limited(world.make, lambda told: "iterations" if told.hop >= 40 else None)
    for number in world.numbers:
        world.start(number)
    return world


@pytest.mark.parametrize("seed", range(3))
def test_the_end_goes_from_neighbour_to_neighbour_and_to_one_who_was_away(seed: int) -> None:
    world = ends_at_40(lone_world("cycle", seed, Faults()))
    near = make_network("cycle", DATA.clients).neighbours
    while not any(reliable.ended for reliable in world.parties.values()):
        world.step()
    first = next(k for k, reliable in world.parties.items() if reliable.ended)
    late = (first + 1) % len(world.numbers)
    world.crash(late)
    while not all(reliable.ended for reliable in world.parties.values()):
        world.step()
        assert world.time < 2000
        told = [
            (k, envelope.to)
            for k, reliable in world.parties.items()
            for envelope in reliable.unacknowledged()
        ]
        assert all(to == k or to in near[k] for k, to in told)
    world.crash(first)  # it need not be there any more
    world.start(late)
    while not world.parties[late].ended:
        world.step()
        assert world.time < 3000


@pytest.mark.parametrize("seed", range(3))
def test_all_end_at_one_moment_whoever_is_suspected(seed: int) -> None:
    world = ends_at_40(lone_world("complete", seed, Faults(loss=0.05, duplicate=0.1, crash=0.005)))
    while not all(journal.last()["ended"] for journal in world.journals.values()):
        world.step()
        if world.time < 3000 and world.random.random() < 0.05:
            slander(world)
        if world.time % 500 == 0:
            all_is_well(world)
        assert world.time < 8000
    all_is_well(world)
    for _ in range(300):
        world.step()
    ends = [journal.last()["ended"] for journal in world.journals.values()]
    assert {(end.status, end.hop) for end in ends} == {("iterations", 40)}
    aggregate = PROBLEM.aggregate(world.parameters())
    told = [message.payload.aggregate for message in world.reports if message.payload.hop == 40]
    assert min(np.abs(one - aggregate).max() for one in told) < 1e-9


def test_a_client_behind_a_cut_link_is_asked_by_others_and_gone_round() -> None:
    """It says that it lacks the token, which then goes another way; and does not take it in when
    the link is back."""
    world = lone_world("complete", 1, Faults())
    sender = world.parties[0]
    history = sender.policy.history
    while history.last_sent is None or world.parties[history.last_sent.to].is_duplicate(
        history.last_sent
    ):
        world.step()
    first = history.last_sent
    sender.peer_lost(first.to)
    while sender.policy.term_of(0) == 0:
        world.in_flight = [data for data in world.in_flight if repr(unpack(data)) != repr(first)]
        world.step()
        assert world.time < 1000
    assert history.last_sent.to != first.to
    assert not world.parties[first.to].is_duplicate(first)
    world.in_flight.append(pack(first))
    for _ in range(200):
        world.step()
        assert_kept(world)
