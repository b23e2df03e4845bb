"""Engines that deliver messages in another order: for the parties, it must not matter."""

import random
from collections import deque
from collections.abc import Callable
from itertools import islice

import numpy as np

from mtcd.engines.local import LocalEngine
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Message, Parties

Pick = Callable[[int], int]


class Reordered(deque[Message]):
    """Of so many messages under way, ``pick`` chooses which is delivered next."""

    def __init__(self, pick: Pick) -> None:
        super().__init__()
        self.pick = pick

    def popleft(self) -> Message:
        place = self.pick(len(self))
        message = self[place]
        del self[place]
        return message


def in_orders(make: Callable[[], Parties], seed: int) -> list[LocalEngine]:
    """First in first out, last in first out, and at random."""
    shuffled = random.Random(seed)
    picks: list[Pick] = [lambda count: 0, lambda count: count - 1, shuffled.randrange]
    return [reordered(make(), pick) for pick in picks]


def reordered(parties: Parties, pick: Pick) -> LocalEngine:
    """The local engine in another order."""
    engine = LocalEngine(parties, Ledger())
    engine.queue = lambda: Reordered(pick)
    return engine


def check_any_order(make: Callable[[], Parties], seed: int) -> None:
    """The same models and ledgers, bit for bit, at the first five observations."""
    outcomes = []
    for engine in in_orders(make, seed):
        observed = islice(engine.run(), 5)
        outcomes.append(
            [(progress.hop, engine.parameters(), engine.ledger.to_dict()) for progress in observed]
        )
    for other in outcomes[1:]:
        for (hop, thetas, ledger), (its_hop, its_thetas, its_ledger) in zip(
            outcomes[0], other, strict=True
        ):
            assert (hop, ledger) == (its_hop, its_ledger)
            for one, two in zip(thetas, its_thetas, strict=True):
                assert np.array_equal(one, two)
