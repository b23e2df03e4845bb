"""The engine with all parties in this process."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from types import SimpleNamespace
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


def test_a_snapshot_has_what_clients_ahead_of_an_observation_have_sent() -> None:
    """Of a method without a server, some clients are an iteration ahead: what they have sent is
    recorded later, and their parameters are not those of the observation."""
    method = mtcd.DCPA(0.1, dual_stepsize=0.1)
    engine, resumed = engine_of(method), engine_of(method)
    going_on = engine.run()
    while not (engine._reached >= 2 and engine._ahead):
        next(going_on)

    resumed.resume(engine.snapshot())
    assert resumed._reached == engine._reached
    assert resumed._ahead.keys() == engine._ahead.keys()
    for name, value in engine.ledger.to_dict().items():
        setattr(resumed.ledger, name, value)

    # and it goes on as if it had not been interrupted
    again = resumed.run()
    for _ in range(4):
        for one, other in zip(resumed.parameters(), engine.parameters(), strict=True):
            assert (one == other).all()
        assert resumed.ledger == engine.ledger
        next(going_on)
        next(again)


def test_it_pauses_after_every_message_if_asked() -> None:
    shown = list(islice(engine_of(mtcd.STCD(stepsize=1e-3)).run(pausing=True), 8))
    assert shown.count(None) >= 3
    assert None not in list(islice(engine_of(mtcd.STCD(stepsize=1e-3)).run(), 8))


def test_parties_that_keep_their_own_checkpoints_are_asked_for_them() -> None:
    engine, opening = engine_of(mtcd.STCD(stepsize=1e-3)), [object()]
    asked: list[Any] = []

    def resume(snapshot: Any) -> Any:
        asked.append(snapshot)
        return opening

    kept = SimpleNamespace(snapshot=lambda: "state", resume=resume)
    engine.parties = replace(engine.parties, checkpointed=kept)  # type: ignore[arg-type]
    assert engine.snapshot() == "state"
    engine.resume("state")  # type: ignore[arg-type]
    assert asked == ["state"]
    assert engine.opening is opening
