"""Recovery with a server: tours go around clients that are down, terms are dropped in time,
mini-batches wait."""

import numpy as np
import pytest

from mtcd.federation.recovery.iterations import SPECULATIVE_TERMS
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.optimum.optimum import optimum
from mtcd.network.topology import make_network
from mtcd.protocol.party import SERVER
from mtcd.protocol.token import Token
from mtcd.testing.simulator.world import Faults, World
from simulated_deliveries import (
    DATA,
    METHODS,
    PROBLEM,
    assert_the_server_knows_what_clients_hold,
    no_more_faults,
    restart_iteration,
)
from simulated_roaming import go_on, recovery_world, tell, with_the_server_again, without_the_server

CHANCY = Faults(loss=0.05, duplicate=0.1, crash=0.005, cut=0.01, hang=0.01)
TOURS = {
    "tour": MTCD(tokens=1, hops=7, stepsize=0.02, local_updates=5, walk="tour"),
    "random-tour": MTCD(
        tokens=2, hops=5, stepsize=0.02, local_updates=5, walk="random-tour", combine="average"
    ),
    "clusters": MTCD(
        clusters=[[0, 1, 2], [3, 4]], hops=4, stepsize=0.02, local_updates=5, walk="tour"
    ),
}


def tokens_under_way(world: World) -> list[Token]:
    envelopes = [
        envelope for reliable in world.parties.values() for envelope in reliable.unacknowledged()
    ]
    return [
        envelope.message.payload
        for envelope in envelopes
        if isinstance(envelope.message.payload, Token)
    ]


@pytest.mark.parametrize("name", ["clusters", "average", "mini-batch"])
def test_a_server_that_died_after_all_clients_goes_on_with_those_who_are_there(name: str) -> None:
    """It kept the tokens, as there was nobody to send them to, and a new process does not know of
    that."""
    world = recovery_world(METHODS[name], make_network("cycle", DATA.clients), 1, Faults())
    while len(world.reports) < 5:
        world.step()
    for k in range(5):
        world.crash(k)
        world.parties[SERVER].peer_lost(k)
    world.in_flight = []
    for number in world.numbers:
        world.start(number)
    go_on(world, len(world.reports) + 3, most=5000)


def test_with_mini_batches_tokens_wait_for_the_server() -> None:
    method = METHODS["mini-batch"]
    world = recovery_world(method, make_network("cycle", DATA.clients), 1, Faults())
    while not (
        len(world.reports) > 3 and any(token.previous >= 0 for token in tokens_under_way(world))
    ):
        world.step()
    without_the_server(world)
    assert not tokens_under_way(world)
    with_the_server_again(world, 5)


@pytest.mark.parametrize(
    ("name", "network"), [("tour", "cycle"), ("random-tour", "cycle"), ("clusters", "complete")]
)
def test_tours_go_round_the_dead(name: str, network: str) -> None:
    world = recovery_world(TOURS[name], make_network(network, DATA.clients), 2, CHANCY)
    while len(world.reports) < 10:
        world.step()
    world.crash(1)
    before, held = len(world.reports), world.parameters()
    while len(world.reports) < before + 40:
        tell(world, {1, *world.away})
        world.step()
        if world.time % 50 == 0:
            assert_the_server_knows_what_clients_hold(world)
        assert world.time < 30_000, world.happened
    now = world.parameters()
    np.testing.assert_array_equal(now[1], held[1])
    assert all(np.abs(now[k] - held[k]).max() > 1e-6 for k in (0, 2, 3, 4))
    no_more_faults(world)
    tell(world, set())
    best = optimum(PROBLEM.blocks, PROBLEM.labels, PROBLEM.loss, PROBLEM.penalties).value
    while world.reports[-1].payload.hop < 1500:
        world.step()
    last = world.reports[-1].payload
    assert PROBLEM.read_off(last.aggregate, last.penalty) == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_terms_are_forgotten_but_not_too_early(seed: int) -> None:
    """A client that was away knows what counts of what it did; when all are there, nothing is
    kept."""
    method = METHODS["average"]
    world = recovery_world(method, make_network("cycle", DATA.clients), seed, CHANCY)
    most = restarts = 0
    while len(world.reports) < 50:
        gone = {2} if 10 < len(world.reports) < 40 else set()
        if gone and 2 in world.parties:
            world.crash(2)
        elif not gone and world.away.get(2) == -1:
            world.start(2)
        tell(world, gone)
        world.step()
        if SERVER in world.parties and world.random.random() < 0.02:
            restarts += restart_iteration(world)
        most = max(most, *(len(reliable.terms) for reliable in world.parties.values()))
        if world.time % 50 == 0:
            assert_the_server_knows_what_clients_hold(world)
        assert world.time < 40_000
    assert restarts > 5
    assert most > 2
    no_more_faults(world)
    for _ in range(1500):
        world.step()
    assert not any(journal.last()["terms"] for journal in world.journals.values())
    assert_the_server_knows_what_clients_hold(world)


def test_what_a_token_was_told_is_told_on_with_it() -> None:
    """So that who was away hears of it from whomever it hears of a later iteration."""
    world = recovery_world(METHODS["average"], make_network("cycle", DATA.clients), 0, Faults())
    world.parties[SERVER].policy.restart_iteration()  # type: ignore[attr-defined]
    seen = 0
    while seen < 3:
        world.step()
        for k in range(5):
            for envelope in world.parties[k].unacknowledged():
                if envelope.iteration == 1 and envelope.to != SERVER:
                    assert envelope.terms == {0: SPECULATIVE_TERMS}
                    assert not world.parties[k].terms
                    seen += 1
        assert world.time < 1000
