"""Parties that cheat, with good certificates: every message of a training is preceded by spoilt
ones.

All of these must be refused, be logged with the sender's name, and change nothing: the training
ends as if nobody had ever sent them.
"""

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")

from cheats import Cheats
from hubs import Done, Hub, Passing, holds, linear
from live import in_process
from mtcd.federation.node.rpc import NO, OK
from mtcd.models.glm.party.block import read_block
from mtcd.training.divergence import DIVERGED
from own_parts import model_section
from problems import MODELS, make_data
from spoiling import spoilt_envelopes

RIDGE, LOGISTIC, MULTINOMIAL = MODELS[0], MODELS[5], MODELS[7]
STCD = {"kind": "stcd", "local_updates": 2, "stepsize": 0.01}
MTCD = {"kind": "mtcd", "tokens": 2, "hops": 3, "stepsize": 0.005}
CASES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "stcd": (LOGISTIC, STCD, {"network": {"kind": "path"}, "server": None, "alignment": "psi"}),
    "clusters": (
        LOGISTIC,
        {**MTCD, "combine": "cluster"},
        {"network": {"kind": "path"}, "alignment": "hashed"},
    ),
    "batches": (RIDGE, {**MTCD, "combine": "cluster", "batch": 4}, {}),
    "optimal": (
        RIDGE,
        {**MTCD, "combine": "optimal"},
        {"labels__shared_with": ["parties", "server"]},
    ),
    "svfl": (MULTINOMIAL, {"kind": "svfl", "stepsize": 0.005}, {"network": {"kind": "cycle"}}),
    "dcpa": (
        RIDGE,
        {"kind": "dcpa", "stepsize": 0.01},
        {"network": {"kind": "cycle"}, "server": None},
    ),
}
SAMPLES = 10  # so that the ids, sorted, are in the order of the rows


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_spoilt_messages_are_refused_and_change_nothing(name: str, tmp_path: Path) -> None:
    model, method, changes = CASES[name]
    data = make_data(model, SAMPLES, [2, 1, 3, 2], seed=3)
    settings = {
        "model": model_section(model),
        "method": method,
        "stop": {"iterations": 9},
        "seed": 5,
    }
    with Hub(tmp_path, data.clients, linear(data), **settings, **changes) as hub:
        cheats = Cheats(hub)
        hub.begin()
        hub.run()
    same = in_process(data, hub.bundles["c0"])
    for client, theta in same.parameters.items():
        np.testing.assert_allclose(
            read_block(tmp_path / "runs" / client).theta, theta, rtol=1e-12, atol=1e-12
        )
    assert cheats.sent["envelope"] >= 80
    assert cheats.sent.total() > 1000


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_sound_envelopes_that_lie_stop_no_process(name: str, tmp_path: Path) -> None:
    """What a party may say, it can lie about. Then the training is spoilt, but who hears it stays
    up, and whole."""
    model, method, changes = CASES[name]
    data = make_data(model, SAMPLES, [2, 1, 3, 2], seed=3)
    settings = {
        "model": model_section(model),
        "method": method,
        "stop": {"iterations": 9},
        "seed": 5,
    }
    some, answers = random.Random(3), Counter[bytes]()
    with Hub(tmp_path, data.clients, linear(data), **settings, **changes) as hub:

        def lie(passing: Passing) -> None:
            node = hub.nodes[passing.to]
            if passing.kind != "envelope" or node.trainer is None:
                return
            for spoilt in spoilt_envelopes(passing.body, some, 6):
                written = holds(node)[0]
                answer = hub.ask(passing._replace(body=spoilt)) or b""
                assert answer[:1] == OK or holds(node)[0] == written
                answers[answer[:1]] += 1

        hub.meddle = lie
        hub.begin()
        for _ in range(600):
            if all(node.loop._stopped for node in hub.nodes.values()):
                break
            if not hub.act() and not hub.deliver() and not hub.leave():
                hub.wait()
        for node in hub.nodes.values():
            if node.trainer is not None:
                node.trainer._restore()  # the journal can be read
        ends = [
            node.trainer.reliable.ended for node in hub.nodes.values() if node.trainer is not None
        ]
    by_a_lie = all(end is not None and end.status == DIVERGED for end in ends)
    assert answers[OK] > (0 if by_a_lie else 10)  # a token may well lie that training has diverged


@pytest.mark.parametrize("liar", ["c1", "c3"])
def test_who_answers_nonsense_at_the_end_costs_nobody_its_block(liar: str, tmp_path: Path) -> None:
    """Asked for its certificate, to add up the objective, it gives none; the others end as without
    a result."""
    model, method, changes = CASES["dcpa"]
    data = make_data(model, SAMPLES, [2, 1, 3, 2], seed=3)
    settings = {
        "model": model_section(model),
        "method": method,
        "stop": {"iterations": 9},
        "seed": 5,
    }
    told = []
    with Hub(tmp_path, data.clients, linear(data), **settings, **changes) as hub:

        def answer(passing: Passing, answer: bytes | None, done: Done) -> None:
            if (passing.kind, passing.to) == ("evaluate", liar) and answer:
                told.append(answer)
                done(OK + b"nonsense")

        hub.tamper = answer
        hub.begin()
        hub.run()
        assert any(
            f"Refused a certificate from {liar}" in line.get("text", "")
            for line in hub.nodes["c0"].log.tail
        )
    assert told
    for client, theta in in_process(data, hub.bundles["c0"]).parameters.items():
        np.testing.assert_allclose(
            read_block(tmp_path / "runs" / client).theta, theta, rtol=1e-12, atol=1e-12
        )


def test_who_cannot_follow_an_envelope_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if somebody is gone: the iteration is not started anew once more."""
    model, method, changes = CASES["clusters"]
    data = make_data(model, SAMPLES, [2, 1, 3, 2], seed=3)
    settings = {
        "model": model_section(model),
        "method": method,
        "stop": {"iterations": 9},
        "seed": 5,
    }
    tried = []
    with Hub(tmp_path, data.clients, linear(data), **settings, **changes) as hub:
        server = hub.nodes["server"]

        def meddle(passing: Passing) -> None:
            if (passing.to, passing.kind) != ("server", "envelope") or tried:
                return
            trainer = server.trainer
            trainer.peer_lost("c3")
            reliable, before = trainer.reliable, holds(server)
            monkeypatch.setattr(reliable.party, "receive", lambda message: 1 / 0)
            monkeypatch.setattr(reliable.policy, "is_stale", lambda envelope: False)
            monkeypatch.setattr(reliable.policy, "_accepts", lambda envelope, index: True)
            tried.append(hub.ask(passing))
            assert trainer.reliable is not reliable
            assert holds(server) == before
            assert reliable.down == trainer.reliable.down == {3}
            trainer._found("c3")

        hub.meddle = meddle
        hub.begin()
        hub.run()
    assert [answer[:1] for answer in tried] == [NO]


def test_an_answer_from_earlier_is_no_answer(tmp_path: Path) -> None:
    """Who passes sealed requests on cannot keep an answer and give it to the next request of the
    same kind."""
    model, method, changes = CASES["stcd"]
    data = make_data(model, SAMPLES, [2, 1, 3, 2], seed=3)
    settings = {"model": model_section(model), "method": method, "stop": {"iterations": 3}}
    with Hub(tmp_path, data.clients, linear(data), **settings, **changes) as hub:
        hub.begin()
        hub.run()
        asker, answerer = hub.nodes["c0"], hub.nodes["c2"]
        asker.rpc.link.up = {"c1"}
        heard: list[bytes | None] = []
        sealed: list[bytes] = []
        for _ in range(2):
            hub.under_way.clear()
            asker.rpc.ask(
                "c2",
                "ready",
                answerer.trainer.run.encode(),
                lambda answer, why: heard.append(answer),
            )
            (passing, done) = hub.under_way.pop()
            sealed.append(hub.ask(passing._replace(sender="c1", to="c2")) or b"")
            done(sealed[0])
        assert heard == [b"ended", None]
        assert "Refused a sealed answer from c2" in asker.log.tail[-1]["text"]
