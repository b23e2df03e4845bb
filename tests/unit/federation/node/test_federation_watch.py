"""What a party says of how far the run is."""

import numpy as np
import pytest

from mtcd.federation.node.log import Log
from mtcd.federation.node.watch import Watch
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.network.topology import make_network
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.token import Token
from mtcd.training.stop import Stop


def watching(method: Method) -> Watch:
    return Watch(
        Stop(iterations=100),
        method,
        make_network("cycle", ["a", "b", "c", "d"]),
        Costs(),
        2,
        10,
        Log("a", None),
    )


@pytest.mark.parametrize(
    ("method", "seen", "iterations"),
    [
        (MTCD(tokens=2, hops=4, stepsize=0.1), [(2, 3), (2, 1)], [11, 11]),
        # at 9, as the server is gone
        (MTCD(tokens=2, hops=4, stepsize=0.1), [(2, 9), (3, 1)], [12, 13]),
        (STCD(stepsize=0.1), [(0, 8), (0, 9)], [8, 9]),
    ],
)
def test_iterations_are_counted_by_syncs_and_hops_between_them(
    method: Method, seen: list[tuple[int, int]], iterations: list[int]
) -> None:
    watch = watching(method)
    told = []
    for t, hop in seen:
        watch.visited(Token(0, t, hop, np.zeros(10), 0.0))
        told.append(watch.facts()["iteration"])
    assert told == iterations


def test_tokens_are_told_in_order_with_milliseconds_since_their_last_visit() -> None:
    watch = watching(MTCD(tokens=2, hops=4, stepsize=0.1))
    now = [10.0]
    watch.now = lambda: now[0]  # type: ignore[method-assign]
    for index, t, hop in ((1, 0, 2), (0, 1, 3)):
        watch.visited(Token(index, t, hop, np.zeros(10), 0.0))
        now[0] += 0.1234
    assert watch.tokens() == [
        {"token": 0, "sync": 1, "hop": 3, "seconds_ago": 0.123},
        {"token": 1, "sync": 0, "hop": 2, "seconds_ago": 0.247},
    ]
