"""Double masks in a federation with faults: it continues without clients that are down, as plain
uploads do."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from gathering_worlds import CLIENTS, METHODS, GatheringWorld, world_of
from mtcd.protocol.party import SERVER

masked_world = partial(world_of, "double masks")


def stuck(world: GatheringWorld) -> frozenset[int]:
    """The clients that the server waits for, after a while without a report."""
    told = len(world.reports)
    for _ in range(600):
        world.step()
    assert len(world.reports) <= told + 1
    return world.parties[SERVER].policy.waits_for


@pytest.mark.parametrize("name", METHODS)
def test_with_too_few_clients_the_server_waits(name: str) -> None:
    """Of five, three are enough."""
    world = masked_world(name, 2, reports=8)
    world.lose(0, 1, 4)
    if name == "mini-batches":  # tokens go to those that are up
        for _ in range(300):
            world.step()
    assert stuck(world) & {0, 1, 4}
    world.regain(4)
    world.run(10)
    assert set(world.sums[-1][1]) == {2, 3, 4}


def test_until_every_sample_is_summed_once_the_server_waits_for_all() -> None:
    """A first change would be the representation itself."""
    world = masked_world("rounds, mini-batches", 3, reports=2)
    world.lose(2)
    assert stuck(world) == {2}
    world.regain(2)
    world.run(12)
    batches = world.parties[SERVER].party.upload_batches.batches
    first = {tuple(sorted(batches.rows(t))) for t in range(1, 3)}
    assert all(
        len(clients) == 5 for t, clients in world.sums if tuple(sorted(batches.rows(t))) in first
    )
    world.lose(2)
    world.run(12)
    assert 2 not in world.sums[-1][1]


def until_one_has_opened(world: GatheringWorld) -> Any:
    """Step until all uploads are at the server, and the masks of one client. Returns the server."""
    server = world.parties[SERVER].party
    while not server.opened:
        world.step()
    return server


def test_a_client_that_is_down_after_its_upload_stays_in_the_sum() -> None:
    world = masked_world("rounds", 4, reports=6)
    server = until_one_has_opened(world)
    batch, slow = server.batch, next(k for k in CLIENTS if k not in server.opened)
    world.lose(slow)
    world.run(1)
    assert (batch, tuple(CLIENTS)) in world.sums
    assert world.revealed() == []
    world.run(5)
    assert slow not in world.sums[-1][1]


def test_two_that_are_down_after_their_uploads_are_waited_for() -> None:
    world = masked_world("rounds", 5, reports=6)
    server = until_one_has_opened(world)
    batch, slow = server.batch, [k for k in CLIENTS if k not in server.opened][:2]
    world.lose(*slow)
    assert stuck(world) == set(slow)
    for k, still in ((slow[0], {slow[1]}), (slow[1], set())):
        world.regain(k)
        assert still == set() or stuck(world) == still
    world.run(5)
    assert (batch, tuple(CLIENTS)) in world.sums
    assert world.revealed() == []


def test_the_smallest_sum_cannot_do_without_one_of_its_clients() -> None:
    world = masked_world("rounds", 7, reports=6)
    world.lose(0, 3)
    world.run(4)
    server = until_one_has_opened(world)
    slow = next(k for k in server.arrived if k not in server.opened)
    world.lose(slow)
    assert stuck(world) == {slow}


def test_a_client_that_never_sent_its_key_is_waited_for() -> None:
    world = masked_world("mini-batches", 6)
    world.lose(1)
    assert stuck(world) == {1}
    world.regain(1)
    world.run(5)
