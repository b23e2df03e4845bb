"""The engine with all parties in this process."""

from __future__ import annotations

from itertools import islice
from typing import Any

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.protocol.ledger.ledger import Ledger


def engine_of(method: Any) -> LocalEngine:
    data = mtcd.synthetic("ridge", samples=20, features=6, clients=3)
    problem = mtcd.Glm("ridge", l2=1.0).problem(data)
    network = mtcd.make_network("cycle", data.clients)
    return LocalEngine(method.parties(problem, network, 0), Ledger())


def test_a_token_that_is_not_due_is_not_shown_again() -> None:
    engine = engine_of(mtcd.STCD(stepsize=1e-3))
    engine.skip_to(5)
    observations = engine.run()
    shown = next(observations)
    assert shown.hop == 0  # the first is shown always: after an interrupt, it says where it is now

    later = next(observations)
    assert later is shown
    assert (later.hop, engine.ledger.hops) == (5, 5)
    engine.skip_to(0)
    assert [one.hop for one in islice(observations, 2) if one is not None] == [6, 7]


def test_the_report_of_a_sync_is_always_shown() -> None:
    """Each is an object of its own: after an interrupt, an old one would not say where it is."""
    engine = engine_of(mtcd.MTCD(tokens=2, hops=2, stepsize=1e-3))
    engine.skip_to(100)
    assert [one.t for one in islice(engine.run(), 3) if one is not None] == [0, 1, 2]
