"""Parties that cheat, with good certificates: every message of a training is preceded by spoilt
ones.

All of these must be refused, be logged with the sender's name, and change nothing: the training
ends as if nobody had ever sent them.
"""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cheats import Cheats
from hubs import Done, Hub, Passing, holds, linear
from live import in_process
from mtcd.data.vertical import VerticalData
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
    "tree-cg": (LOGISTIC, {"kind": "tree-cg", "degree": 2}, {"server": None}),
    "accelerated rounds": (
        RIDGE,
        {"kind": "svfl", "acceleration": "conjugate"},
        {"labels__shared_with": ["parties", "server"]},
    ),
}
SAMPLES = 10  # so that the ids, sorted, are in the order of the rows


@contextmanager
def federation(name: str, folder: Path, iterations: int = 9) -> Iterator[tuple[VerticalData, Hub]]:
    """Of a case, not begun."""
    model, method, changes = CASES[name]
    data = make_data(model, SAMPLES, [2, 1, 3, 2], seed=3)
    settings = {"model": model_section(model), "method": method, "seed": 5}
    stop = {"iterations": iterations}
    with Hub(folder, data.clients, linear(data), stop=stop, **settings, **changes) as hub:
        yield data, hub


def check_trained_as_in_one_process(data: VerticalData, hub: Hub, folder: Path) -> None:
    for client, theta in in_process(data, hub.bundles["c0"]).parameters.items():
        found = read_block(folder / "runs" / client).theta
        np.testing.assert_allclose(found, theta, rtol=1e-12, atol=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_spoilt_messages_are_refused_and_change_nothing(name: str, tmp_path: Path) -> None:
    with federation(name, tmp_path) as (data, hub):
        cheats = Cheats(hub)
        hub.train()
    check_trained_as_in_one_process(data, hub, tmp_path)
    assert cheats.sent["envelope"] >= 80
    assert cheats.sent.total() > 1000


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
def test_sound_envelopes_that_lie_stop_no_process(name: str, tmp_path: Path) -> None:
    """What a party may say, it can lie about. Then the training is spoilt, but who hears it stays
    up, and whole."""
    some, answers = random.Random(3), Counter[bytes]()
    with federation(name, tmp_path) as (_, hub):

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
    told = []
    with federation("dcpa", tmp_path) as (data, hub):

        def answer(passing: Passing, answer: bytes | None, done: Done) -> None:
            if (passing.kind, passing.to) == ("evaluate", liar) and answer:
                told.append(answer)
                done(OK + b"nonsense")

        hub.train(tamper=answer)
        assert any(
            f"Refused a certificate from {liar}" in line.get("text", "")
            for line in hub.nodes["c0"].log.tail
        )
    assert told
    check_trained_as_in_one_process(data, hub, tmp_path)


def test_who_cannot_follow_an_envelope_is_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if somebody is gone: the iteration is not started anew once more."""
    tried = []
    with federation("clusters", tmp_path) as (_, hub):
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

        hub.train(meddle)
    assert [answer[:1] for answer in tried] == [NO]


def test_an_answer_from_earlier_is_no_answer(tmp_path: Path) -> None:
    """Who passes sealed requests on cannot keep an answer and give it to the next request of the
    same kind."""
    with federation("stcd", tmp_path, iterations=3) as (_, hub):
        hub.train()
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
