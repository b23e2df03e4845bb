"""A party in training: what it sends, when it sends it again, and what it makes of the answers."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.core.errors import JournalError, WireError
from mtcd.federation.delivery.frames import encode_ack, encode_envelope
from mtcd.federation.node.presence import FIRST_RETRY_SECONDS, LONGEST_RETRY_SECONDS
from mtcd.federation.node.training import DEFERRED, Trainer
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.network.topology import make_network
from mtcd.protocol.codec.envelopes import Ack, Cancelled, Envelope
from mtcd.protocol.party import SERVER, Message
from mtcd.training.divergence import DIVERGED

NAMES = ["a", "b", "c"]
RUN = "run"
BOUNDS = (
    MTCD(tokens=1, hops=3, stepsize=0.1).messages(make_network("path", NAMES), 0, 8, 1).bounds(RUN)
)


def envelope(sender: int, to: int, sequence: int = 0) -> Envelope:
    return Envelope(sender, to, sequence, 0, 0, {}, Message(sender, to, Cancelled(0)), frozenset())


class Reliable:
    """The reliable party, of which the test says what it does."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.outbox: dict[tuple[int, int], Envelope] = {}
        self.reports: list[Any] = []
        self.ended: Any = None
        self.down: frozenset[int] = frozenset()
        self.sent: dict[int, int] = {}
        self.seen: dict[int, Any] = {}
        self.happened: list[Any] = []
        self.delivery: Callable[[Envelope], Any] = lambda one: (
            Ack(one.sender, one.to, one.sequence, {}),
            [],
        )
        self.policy = SimpleNamespace(waits_for=frozenset())

    def started(self) -> None:
        self.happened.append("started")

    def put(self, one: Envelope) -> None:
        self.outbox[one.to, one.sequence] = one

    def deliver(self, one: Envelope, look: Any) -> Any:
        return self.delivery(one)

    def acknowledge(self, ack: Ack) -> None:
        self.happened.append(("acknowledged", ack.to, ack.sequence))
        self.outbox.pop((ack.to, ack.sequence), None)

    def finish(self, status: str) -> None:
        self.happened.append(("finished", status))


class Training:
    """The trainer of a (0), or of the server."""

    def __init__(self, number: int = 0, *, server: bool = True, resumed: bool = False) -> None:
        self.asked: list[tuple[str, str, bytes]] = []
        self.answers: list[Callable[[bytes | None, str], None]] = []
        self.called: list[Any] = []
        self.timers: list[tuple[float, Any]] = []
        self.logged: list[Any] = []
        self.handlers: dict[str, Any] = {}
        self.reports: list[Any] = []
        self.ended = 0
        self.made: list[Reliable] = []
        self.number = number
        peers = {"b", "c", "server"} if server else {"b", "c"}
        limits = SimpleNamespace(lease_ms=10_000)
        rpc: Any = SimpleNamespace(
            ask=self.ask,
            bundle=SimpleNamespace(config=SimpleNamespace(parties=NAMES, limits=limits)),
            link=SimpleNamespace(peers=frozenset(peers), up=peers),
            me="a",
            note_refused=lambda name, what, error: self.logged.append((name, what)),
            on=self.handlers.__setitem__,
        )
        loop: Any = SimpleNamespace(
            call=self.called.append,
            later=lambda seconds, act: self.timers.append((seconds, act)),
            now=lambda: 100.0,
        )
        log: Any = SimpleNamespace(
            say=lambda event, text="", **facts: self.logged.append((event, text)),
            throttled=lambda kind, text, **facts: self.logged.append((kind, text)),
        )
        self.trainer = Trainer(
            rpc,
            loop,
            log,
            self.make,
            BOUNDS,
            lambda payload: None,
            self.reports.append,
            self.end,
            resumed,
        )

    @property
    def reliable(self) -> Reliable:
        return self.made[-1]

    def make(self) -> Any:
        self.made.append(Reliable(self.number))
        return self.made[-1]

    def end(self) -> None:
        self.ended += 1

    def ask(self, name: str, kind: str, body: bytes, done: Any, direct: bool = False) -> None:
        self.asked.append((name, kind, body))
        self.answers.append(done)

    def gets(self, one: Envelope, sender: str = "b", direct: bool = True) -> list[bytes]:
        answers: list[bytes] = []
        request: Any = SimpleNamespace(
            answer=lambda body=b"": answers.append(body),
            content=encode_envelope(one, RUN),
            direct=direct,
            sender=sender,
        )
        self.handlers["envelope"](request)
        return answers

    def sends(self, *envelopes: Envelope) -> None:
        for one in envelopes:
            self.reliable.put(one)
        self.trainer.go()
        self.timers.clear()


def ack(sequence: int = 0, to: int = 1) -> bytes:
    """As ``to`` sends it, for an envelope of a."""
    return encode_ack(Ack(0, to, sequence, {}), RUN)


def test_nothing_is_sent_before_the_start_and_each_envelope_once_then() -> None:
    party = Training()
    party.reliable.put(envelope(0, 1))
    party.trainer.pump()
    assert party.asked == []
    party.trainer.go()
    party.trainer.pump()
    assert party.asked == [("b", "envelope", encode_envelope(envelope(0, 1), RUN))]


def test_an_ack_takes_an_envelope_from_the_outbox() -> None:
    party = Training()
    party.sends(envelope(0, 1, 0), envelope(0, 1, 1))
    party.answers[1](ack(1), "")
    assert party.reliable.happened == ["started", ("acknowledged", 1, 1)]
    assert list(party.reliable.outbox) == [(1, 0)]
    assert list(party.trainer.under_way) == [(1, 0)]


def test_without_an_answer_it_is_sent_again_later_and_later() -> None:
    party = Training()
    party.sends(envelope(0, 1))
    waits = []
    for _ in range(9):
        party.answers[-1](None, "")
        waits.append(party.timers[-1][0])
        party.timers[-1][1]()
    doubled = [min(FIRST_RETRY_SECONDS * 2**times, LONGEST_RETRY_SECONDS) for times in range(9)]
    assert waits == pytest.approx(doubled)
    assert len(party.asked) == 10
    assert party.trainer.silent == {1: 100.0}
    party.answers[-1](ack(), "")
    assert party.trainer.silent == {}


def test_a_refusal_counts_as_silence_and_is_logged_and_not_now_does_not() -> None:
    party = Training()
    party.sends(envelope(0, 1))
    party.answers[0](None, "why")
    assert party.trainer.silent == {1: 100.0}
    assert party.logged[-1] == (("unsent", "b", "why"), "b refuses an envelope: why")
    party.answers[0](DEFERRED, "")
    assert party.trainer.silent == {}
    assert len(party.timers) == 2
    assert party.reliable.happened == ["started"]


def test_an_envelope_that_is_gone_is_not_sent_again() -> None:
    party = Training()
    party.sends(envelope(0, 1))
    party.answers[0](None, "")
    party.reliable.outbox.clear()
    party.timers[0][1]()
    assert party.trainer.under_way == {}
    assert len(party.asked) == 1


@pytest.mark.parametrize("answer", [b"", b"nonsense", ack(1), ack(0, to=2)])
def test_what_is_no_ack_of_this_envelope_is_noted_and_it_is_sent_again(answer: bytes) -> None:
    party = Training()
    party.sends(envelope(0, 1))
    party.answers[0](answer, "")
    assert party.logged[-1] == ("b", "ack")
    assert len(party.timers) == 1
    assert list(party.reliable.outbox) == [(1, 0)]


def test_an_envelope_that_arrives_is_acknowledged_and_its_reports_are_read() -> None:
    party = Training()
    report = Message(0, -2, "a report")
    party.reliable.delivery = lambda one: (Ack(1, 0, one.sequence, {}), [report])
    (answer,) = party.gets(envelope(1, 0, 3))
    assert answer == encode_ack(Ack(1, 0, 3, {}), RUN)
    assert party.reports == ["a report"]


def test_an_envelope_that_cannot_be_taken_now_is_answered_so() -> None:
    party = Training()
    party.reliable.delivery = lambda one: (None, [])
    assert party.gets(envelope(1, 0)) == [DEFERRED]


def test_nobody_sends_in_the_name_of_another() -> None:
    party = Training()
    with pytest.raises(WireError, match="sender"):
        party.gets(envelope(2, 0), sender="b")
    with pytest.raises(WireError, match="receiver"):
        party.gets(envelope(1, 2), sender="b")


def test_after_an_envelope_that_cannot_be_processed_the_party_is_as_before() -> None:
    party = Training()
    before = party.reliable
    before.down = frozenset({2})

    def fail(one: Envelope) -> Any:
        raise ValueError("dishonest")

    before.delivery = fail
    with pytest.raises(WireError, match=r"envelope cannot be processed \(ValueError\)"):
        party.gets(envelope(1, 0))
    assert party.trainer.reliable is party.reliable is not before
    assert party.reliable.down == frozenset({2})

    def full(one: Envelope) -> Any:
        raise JournalError("the disk is full")

    party.reliable.delivery = full
    with pytest.raises(JournalError, match="the disk is full"):
        party.gets(envelope(1, 0))


def test_what_it_sends_to_itself_goes_through_the_loop() -> None:
    party = Training()
    party.sends(envelope(0, 0))
    assert party.asked == []
    party.called[0]()
    assert party.reliable.happened == ["started", ("acknowledged", 0, 0)]
    assert party.trainer.under_way == {}
    party.sends(envelope(0, 0, 1))
    party.reliable.outbox.clear()
    party.called[1]()
    assert party.reliable.happened[2:] == [], "it was taken back meanwhile"


def test_the_end_is_told_once_and_once_more_if_it_was_undone() -> None:
    party = Training()
    for ended, times in ((object(), 1), (object(), 1), (None, 1), (object(), 2)):
        party.reliable.ended = ended
        party.trainer.noticed()
        assert party.ended == times


def test_numbers_that_cannot_be_sent_are_reported_to_the_server_until_it_knows() -> None:
    party = Training()
    too_many = envelope(0, 1)._replace(terms=dict.fromkeys(range(5000), 1))
    party.sends(too_many)
    assert party.asked == [("server", DIVERGED, b"run")]
    party.answers[0](None, "")
    assert party.timers[0][0] == LONGEST_RETRY_SECONDS
    party.timers[0][1]()
    assert len(party.asked) == 2
    party.answers[1](b"", "")
    party.reliable.ended = object()
    party.answers[1](None, "")
    assert len(party.timers) == 1


def test_without_a_server_a_party_ends_a_diverged_training_itself() -> None:
    party = Training(server=False)
    party.trainer.report_divergence()
    assert party.reliable.happened == ["started", ("finished", DIVERGED)]
    assert len(party.called) == 1


def test_the_server_ends_a_training_of_which_a_party_says_that_it_has_diverged() -> None:
    server = Training(SERVER)
    answers: list[bytes] = []
    for body in (b"another run", b"run"):
        request = SimpleNamespace(
            answer=lambda body=b"": answers.append(body), body=body, sender="b"
        )
        if body == b"run":
            server.handlers[DIVERGED](request)
        else:
            with pytest.raises(WireError, match="run is another one"):
                server.handlers[DIVERGED](request)
    assert answers == [b""]
    assert server.reliable.happened == ["started", ("finished", DIVERGED)]
    assert DIVERGED not in Training().handlers


def test_a_party_that_resumes_exchanges_nothing_before_its_journal_is_confirmed() -> None:
    party = Training(resumed=True)
    assert party.gets(envelope(1, 0)) == [DEFERRED]
    assert [(name, kind) for name, kind, _ in party.asked] == [("b", "counts")]
    party.sends(envelope(0, 1), envelope(0, 2))
    assert [(name, kind) for name, kind, _ in party.asked[1:]] == [("c", "counts")]
    party.answers[0](b"current", "")
    assert [name for name, kind, _ in party.asked if kind == "envelope"] == ["b"]
    party.trainer.changed("server", True)
    assert party.asked[-2][:2] == ("server", "counts")
    with pytest.raises(JournalError, match="c remembers messages of a that this folder lacks"):
        party.answers[1](b"older", "")
