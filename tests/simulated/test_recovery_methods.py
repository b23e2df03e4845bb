"""Delivery of every method: whatever fault passes, the training is the one without faults, bit for
bit."""

from collections import deque
from typing import Any

import numpy as np
import pytest

from mtcd.protocol.party import MONITOR, SERVER, Parties
from mtcd.testing.simulator.world import Faults, World
from recovering import waiting_party
from restored_parties import moment, restore_after_every_message
from simulated_methods import CASES, CROSSING, making_parties

EVERYTHING = Faults(loss=0.1, duplicate=0.1, crash=0.02, cut=0.02, hang=0.02)


def moments_without_faults(parties: Parties, most: int) -> dict[tuple[int, int], list[Any]]:
    by_number = {**dict(enumerate(parties.clients)), SERVER: parties.server}
    found, waiting, sent = {}, deque(), parties.opening
    while len(found) < most:
        # before a lone token goes on
        found |= [moment(message) for message in sent if message.to == MONITOR]
        waiting.extend(message for message in sent if message.to != MONITOR)
        message = waiting.popleft()
        sent = by_number[message.to].receive(message)
    return found


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("name", CASES)
def test_with_any_faults_that_pass_the_training_is_the_same(name: str, seed: int) -> None:
    world = World(making_parties(name), seed, waiting_party, EVERYTHING)
    expected = moments_without_faults(world.make_parties(), 300)
    told: dict[tuple[int, int], list[Any]] = {}
    while len(told) < 35:
        world.step()
        told |= map(moment, world.reports)
        world.reports.clear()
        assert world.time < 60_000, world.happened
    for when, values in told.items():
        for one, other in zip(values, expected[when], strict=True):
            if name in CROSSING:
                np.testing.assert_allclose(one, other, rtol=CROSSING[name], atol=CROSSING[name])
            else:
                assert one is other or np.asarray(one).tobytes() == np.asarray(other).tobytes()
    assert set(world.processed.values()) <= {0, 1}
    assert world.happened["crash"] > 3


@pytest.mark.parametrize("name", CASES)
def test_a_party_from_its_journal_goes_on_as_the_old_one(name: str) -> None:
    restore_after_every_message(making_parties(name), 150)
