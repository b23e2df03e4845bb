"""The order in which messages are delivered must not matter to methods whose clients tell the monitor their parts."""

import random
from collections.abc import Callable

import numpy as np

from mtcd.protocol.monitor import Monitor
from mtcd.protocol.party import MONITOR, Cast


def check_any_order(make: Callable[[], Cast], clients: int, seed: int) -> None:
    """First in first out, last in first out and at random: the same models, bit by bit, at the first five moments."""
    outcomes, shuffled = [], random.Random(seed)
    for pick in (lambda w: 0, lambda w: len(w) - 1, lambda w: shuffled.randrange(len(w))):
        cast = make()
        monitor, waiting, outgoing, found = Monitor(clients), [], cast.opening, []
        while len(found) < 5:
            for message in outgoing:
                if message.to != MONITOR:
                    waiting.append(message)
                elif (progress := monitor.hear(message)) is not None:
                    found.append(progress)
            message = waiting.pop(pick(waiting))
            outgoing = cast.clients[message.to].receive(message)
        outcomes.append(found)
    for other in outcomes[1:]:
        for first, second in zip(outcomes[0], other, strict=True):
            assert first.hop == second.hop
            for one, two in zip(first.parameters, second.parameters, strict=True):
                assert np.array_equal(one, two)
