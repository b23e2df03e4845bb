"""Delivery of every method: whatever fault passes, the training is the one without faults, bit for
bit."""

from collections import deque
from typing import Any

import numpy as np
import pytest

from mtcd.federation.delivery.journal import MemoryJournal
from mtcd.protocol.party import MONITOR, SERVER, Message, Part, Parties
from mtcd.testing.simulator.world import Faults, World
from recovering import waiting_party
from simulated_methods import CASES, CROSSING, making_parties

EVERYTHING = Faults(loss=0.1, duplicate=0.1, crash=0.02, cut=0.02, hang=0.02)


def moment(message: Message) -> tuple[tuple[int, int], list[Any]]:
    """Which moment is told of, and what."""
    told = message.payload
    if isinstance(told, Part):
        return (message.sender, told.iteration), [told.parameters.copy()]
    return (0, told.hop), [told.penalty, None if told.aggregate is None else told.aggregate.copy()]


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
    """Every attribute that changes is kept: parties that are restored after every message stay
    equal to others."""
    make = making_parties(name)
    parties, journals = make(), {}
    waiting = deque(message for message in parties.opening if message.to != MONITOR)
    parties = {**dict(enumerate(parties.clients)), SERVER: parties.server}
    for _ in range(150):
        message = waiting.popleft()
        k = message.to
        again = make()
        party = again.server if k == SERVER else again.clients[k]
        if k in journals:
            party.restore(journals[k].last())
        journal = journals.setdefault(k, MemoryJournal())
        copied = MemoryJournal()
        copied.commit(message)
        sent, other = list(parties[k].receive(message)), list(party.receive(copied.last()))
        journal.commit(party.state())
        for one, two in zip(sent, other, strict=True):
            copied.commit(one if one.to != MONITOR else moment(one))
            content = copied.content
            copied.commit(two if two.to != MONITOR else moment(two))
            assert copied.content == content
        waiting.extend(one for one in sent if one.to != MONITOR)
