"""Requests before and after training are taken from the party whose they are, and with what that
party may say."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hubs import Done, Hub, Passing, holds, linear
from mtcd.core.errors import ConfigError, WireError
from mtcd.federation.node.aligning import agreement
from mtcd.federation.node.chunks import unwrap, wrap
from mtcd.federation.node.context import VersionExchange, spoken
from mtcd.federation.node.ending import FINAL_MODULE
from mtcd.federation.node.exit_status import EXIT_STATUS, ExitStatus, Signer
from mtcd.federation.node.opening import Agreed, OpeningFollower
from mtcd.federation.node.passing import order_of
from mtcd.federation.node.refusal import Refusal
from mtcd.federation.node.rpc import NO, OK
from mtcd.federation.node.training import DEFERRED
from mtcd.training.divergence import DIVERGED
from own_parts import model_section
from problems import MODELS, make_data

RIDGE = MODELS[0]
DATA = make_data(RIDGE, 10, [2, 1, 2], seed=3)
SETTINGS = {
    "model": model_section(RIDGE),
    "method": {"kind": "mtcd", "tokens": 1, "hops": 3, "stepsize": "auto"},
    "stop": {"iterations": 3},
}
REFUSED = "The message was refused: "
OF_THE_LEADER = {"check", "align", "prepare", "start", "evaluate", "result"}


@pytest.mark.parametrize("alignment", ["given order", "hashed"])
def test_requests_of_the_label_holder_are_refused_from_all_others(
    alignment: str, tmp_path: Path
) -> None:
    seen = set()
    with Hub(tmp_path, DATA.clients, linear(DATA), alignment=alignment, **SETTINGS) as hub:

        def meddle(passing: Passing) -> None:
            if passing.kind not in OF_THE_LEADER:
                return
            assert passing.sender == "c0"
            victim = hub.nodes[passing.to]
            before = holds(victim)
            for other in {*hub.nodes} - {passing.sender, passing.to}:
                answer = hub.ask(passing._replace(sender=other))
                assert answer is not None, passing.kind
                assert answer[:1] == NO, passing.kind
            assert holds(victim) == before
            seen.add(passing.kind)

        hub.train(meddle)
    assert seen == OF_THE_LEADER


def test_what_is_said_at_the_end_of_another_run_is_refused(tmp_path: Path) -> None:
    seen = set()
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:

        def meddle(passing: Passing) -> None:
            if passing.kind not in ("evaluate", "result"):
                return
            run, _, more = passing.body.partition(b" ")
            other_run = run[::-1] + (b" " + more if more else b"")
            answer = hub.ask(passing._replace(body=other_run))
            assert answer[:1] == NO, passing.kind
            seen.add(passing.kind)

        hub.train(meddle)
    assert seen == {"evaluate", "result"}


@pytest.mark.parametrize("alignment", ["given order", "hashed"])
def test_what_is_agreed_has_what_its_receiver_may_know_and_nothing_else(
    alignment: str, tmp_path: Path
) -> None:
    """A server must get neither labels that it may not have, nor ids; a party needs both."""
    seen, known = set(), set[bytes]()
    with Hub(tmp_path, DATA.clients, linear(DATA), alignment=alignment, **SETTINGS) as hub:
        assert hub.bundles["c0"].config.labels.shared_with == ("parties",)

        def meddle(passing: Passing) -> None:
            if passing.kind != "start" or hub.nodes[passing.to].trainer is not None:
                return
            head, (packed,) = unwrap(passing.body, ("agreement",), 1)
            honest = Agreed.unpacked(packed)
            known.update({honest.labels} - {b""})
            other_labels = b"" if honest.labels else max(known)
            other_announcement = b"" if honest.announcement else json.dumps(["id1", "id2"]).encode()
            for wrong in (
                replace(honest, labels=other_labels),
                replace(honest, announcement=other_announcement),
            ):
                answer = hub.ask(passing._replace(body=wrap(head, wrong.packed())))
                assert answer[:1] == NO
                assert hub.nodes[passing.to].trainer is None
            seen.add(passing.to)

        hub.train(meddle)
    assert seen == {"c1", "c2", "server"}


@pytest.mark.parametrize("run", ["", "a" * 65, "a b", "../run", "ü", 7, None])
def test_an_id_of_a_run_that_is_none_is_refused(run: Any) -> None:
    """It becomes part of file names and of what all parties send."""
    with pytest.raises(WireError, match="is not the id of a run"):
        Agreed.unpacked(Agreed(run, {}, b"", b"").packed())
    with pytest.raises(WireError, match="settings"):
        Agreed.unpacked(Agreed("a" * 64, [], b"", b"").packed())  # type: ignore[arg-type]


class Told:
    """A request, direct or relayed, that keeps how it was answered."""

    def __init__(self, sender: str, body: bytes, direct: bool) -> None:
        self.sender, self.body, self.direct = sender, body, direct
        self.outcome = ""

    def answer(self, body: bytes = b"") -> None:
        self.outcome = "answered"

    def drop(self) -> None:
        self.outcome = "dropped"


class StubRpc:
    """Keeps handlers, and what is asked of others."""

    loop = None

    def __init__(self) -> None:
        self.handlers: dict[str, Callable[[Any], None]] = {}
        self.asked: list[tuple[Any, ...]] = []

    def on(self, kind: str, handler: Callable[[Any], None]) -> None:
        self.handlers[kind] = handler

    def ask(self, *asked: Any) -> None:
        self.asked.append(asked)


def test_a_start_that_was_relayed_counts_once_the_leader_says_that_it_is_of_now(
    tmp_path: Path,
) -> None:
    """Whoever relays requests could send that of an earlier run again."""
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        bundle = hub.bundles["c1"]
    part: Any = SimpleNamespace(samples=10, ids=())
    for direct in (True, False):
        rpc, started = StubRpc(), list[str]()
        follower = OpeningFollower(
            rpc,
            bundle,
            part,
            SimpleNamespace(),
            lambda agreed, started=started: started.append(agreed.run),  # type: ignore[arg-type]
        )

        def start(
            run: str,
            follower: OpeningFollower = follower,
            rpc: StubRpc = rpc,
            direct: bool = direct,
        ) -> str:
            body = wrap(
                {"agreement": follower.alignment.agreement},
                Agreed(run, {}, b"labels", b"").packed(),
            )
            told = Told("c0", body, direct)
            rpc.handlers["start"](told)
            return told.outcome

        if not direct:
            assert start("run1") == "dropped"
            assert (started, rpc.asked[0][:3]) == ([], ("c0", "which", b"run1"))
            rpc.asked[0][3](b"run2", "")  # the run of now is another one
            assert start("run1") == "dropped"
            rpc.asked[-1][3](b"run1", "")
        assert start("run1") == "answered"
        assert start("run1") == "answered"  # sent again: nothing starts anew
        assert started == ["run1"]
        with pytest.raises(ConfigError, match="is in another run"):
            start("run2")
        assert started == ["run1"]


def test_bundles_with_other_promises_of_privacy_do_not_mix(tmp_path: Path) -> None:
    """They would differ in what parties learn of each other, and in nothing else."""
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:
        config = hub.bundles["c1"].config
    promises = [
        None,
        {"mode": "open", "aggregation": "masked"},
        {"mode": "sealed"},
        {"mode": "sealed", "dp": {"epsilon": 3.0}},
        {"mode": "sealed", "dp": {"epsilon": 2.0}},
    ]
    kind = type(config)
    found = [
        agreement(kind.model_validate(config.model_dump(mode="json") | {"privacy": promise}), "x")
        for promise in promises
    ]
    assert len(set(found)) == len(promises)


def test_a_refusal_that_was_relayed_is_refused() -> None:
    """Whoever relays it could have made it up: its sender is known over a link alone."""
    members = SimpleNamespace(bundle=SimpleNamespace(config=SimpleNamespace(parties=["c0", "c1"])))
    rpc, ended = StubRpc(), list[Any]()
    context: Any = SimpleNamespace(
        rpc=rpc, loop=SimpleNamespace(call=ended.append), **vars(members)
    )
    Refusal(context, lambda: False)
    body = json.dumps({"party": "c1", "reason": "no table"}).encode()
    with pytest.raises(WireError, match="never relayed"):
        rpc.handlers["unable"](Told("c0", body, direct=False))
    assert ended == []
    told = Told("c0", body, direct=True)
    rpc.handlers["unable"](told)
    assert told.outcome == "answered"
    assert len(ended) == 1


def test_a_hello_that_was_relayed_is_refused() -> None:
    """Whoever relays it could say that a peer speaks another protocol, and cut it off."""
    rpc, log = StubRpc(), SimpleNamespace()
    VersionExchange(rpc, log)  # type: ignore[arg-type]
    told = Told("c0", spoken(), direct=False)
    with pytest.raises(WireError, match="is never relayed"):
        rpc.handlers["hello"](told)
    assert told.outcome == ""


def refused_while_training(folder: Path, request: Callable[[Hub, Passing], Passing]) -> list[str]:
    """What a party hears that sends such a request at the first envelope, of which the training
    takes no notice."""
    heard: list[str] = []
    with Hub(folder, DATA.clients, linear(DATA), **SETTINGS) as hub:

        def meddle(passing: Passing) -> None:
            if passing.kind != "envelope" or heard:
                return
            made = request(hub, passing)
            before = holds(hub.nodes[made.to])
            answer = hub.ask(made)
            assert answer[:1] == NO
            assert holds(hub.nodes[made.to]) == before
            heard.append(answer[1:].decode())

        hub.train(meddle)
        assert {node.status for node in hub.nodes.values()} == {"iterations"}
    return heard


def test_the_divergence_of_another_run_ends_nothing(tmp_path: Path) -> None:
    def diverged(hub: Hub, passing: Passing) -> Passing:
        return Passing("c1", "server", DIVERGED, b"another run")

    assert refused_while_training(tmp_path, diverged) == [f"{REFUSED}run is another one."]


def test_a_pass_before_the_end_is_refused(tmp_path: Path) -> None:
    """It would judge a model that is not the one of the end."""

    def add(hub: Hub, passing: Passing) -> Passing:
        config = hub.bundles["c0"].config
        order = order_of(config)
        any_certificates = dict.fromkeys(config.parties, b64encode(b"x").decode())
        head = {"pass": "p1", "order": order, "certificates": any_certificates}
        return Passing("c0", order[0], "add", wrap(head, bytes(8)))

    assert refused_while_training(tmp_path, add) == [f"{REFUSED}pass comes before the end."]


def test_an_exit_status_of_another_run_is_refused(tmp_path: Path) -> None:
    """It was signed, but in an earlier run of the same bundles."""

    def ended(hub: Hub, passing: Passing) -> Passing:
        facts = {"party": "c1", "run": "r9", "outcome": "finished", "time": 10**14}
        status = ExitStatus.model_validate(
            {**facts, "status": "iterations", "iteration": 3, "objective": None}
        )
        body = json.dumps([Signer(hub.bundles["c1"]).sign(status)]).encode()
        return Passing("c1", "c0", EXIT_STATUS, body)

    assert refused_while_training(tmp_path, ended) == [f"{REFUSED}run is another one."]


def test_the_last_module_comes_from_the_server_if_there_is_one(tmp_path: Path) -> None:
    def module(hub: Hub, passing: Passing) -> Passing:
        return Passing("c1", "c2", FINAL_MODULE, b"module")

    [said] = refused_while_training(tmp_path, module)
    assert said == f"{REFUSED}sender is not the party that ended the training."


def test_an_ack_of_another_envelope_counts_for_none(tmp_path: Path) -> None:
    """The party would not send the envelope again that was lost."""
    earlier: dict[tuple[str, str], bytes] = {}
    replayed = []
    with Hub(tmp_path, DATA.clients, linear(DATA), **SETTINGS) as hub:

        def tamper(passing: Passing, answer: bytes | None, done: Done) -> None:
            if passing.kind != "envelope" or answer is None or answer == OK + DEFERRED:
                return
            old = earlier.setdefault((passing.sender, passing.to), answer)
            if old == answer:
                return
            node = hub.nodes[passing.sender]
            before = holds(node)
            done(old)
            assert holds(node) == before
            replayed.append(node.log.tail[-1]["text"])

        hub.train(tamper=tamper)
        assert {node.status for node in hub.nodes.values()} == {"iterations"}
    assert replayed
    assert all("sequence is that of another envelope" in one for one in replayed)


def test_a_message_of_parts_has_as_many_as_are_allowed_and_not_a_byte_more() -> None:
    parts = [b"one", b"", b"three"]
    sent = wrap({"run": "r"}, *parts)
    for least, more in ((3, 0), (2, 1), (1, 2), (0, 9)):
        assert unwrap(sent, ("run",), least, more) == ({"run": "r"}, parts)
    for least, more in ((4, 0), (2, 0), (1, 1)):
        with pytest.raises(WireError, match="sizes"):
            unwrap(sent, ("run",), least, more)
    for data in (sent + b"x", sent[:-1]):
        with pytest.raises(WireError, match="sizes"):
            unwrap(data, ("run",), 3)
    with pytest.raises(WireError, match="head is not readable"):
        unwrap(b"\n" + sent, ("run",), 3)
    with pytest.raises(WireError, match="head is not readable"):
        unwrap(b'{"run": "r", "sizes": []}x', ("run",), 0)


@pytest.mark.parametrize(("run", "sound"), [("r" * 64, True), ("r", True), ("r" * 65, False)])
def test_the_id_of_an_agreed_run_has_up_to_64_letters(run: str, sound: bool) -> None:
    packed = Agreed(run, {}, b"labels", b"ids").packed()
    if sound:
        assert Agreed.unpacked(packed) == Agreed(run, {}, b"labels", b"ids")
        return
    with pytest.raises(WireError, match="run is not the id of a run"):
        Agreed.unpacked(packed)
