"""Which parties are down, as one in training sees it: links, and silence."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.core.errors import WireError
from mtcd.federation.node.presence import (
    ENDED,
    FIRST_RETRY_SECONDS,
    HAS_ENDED,
    IN_TRAINING,
    LONGEST_RETRY_SECONDS,
    SILENT_LEASES,
    Presence,
)

LEASE_SECONDS = 10.0


class Seeing(Presence):
    """a, with the peers b and server; c is behind them."""

    def __init__(self) -> None:
        self.happened: list[Any] = []
        self.asked: list[tuple[str, bytes]] = []
        self.answers: dict[str, Any] = {}
        self.moment = 100.0
        self.timers: list[tuple[float, Any]] = []
        limits = SimpleNamespace(lease_ms=1000 * LEASE_SECONDS)
        config = SimpleNamespace(parties=["a", "b", "c"], limits=limits)
        rpc: Any = SimpleNamespace(
            ask=self.ask,
            bundle=SimpleNamespace(config=config),
            link=SimpleNamespace(peers=frozenset({"b", "server"}), up={"b", "server"}),
            on=lambda kind, handler: None,
        )
        loop: Any = SimpleNamespace(
            now=lambda: self.moment,
            later=lambda seconds, act: self.timers.append((seconds, act)),
        )
        log: Any = SimpleNamespace(
            say=lambda event, text, peer: self.happened.append((event, text, peer)),
            throttled=lambda kind, text, often: self.happened.append((*kind, often)),
        )
        super().__init__(rpc, loop, log, "run")
        policy = SimpleNamespace(waits_for=frozenset(), waiting_reason=lambda names: "for c")
        self.reliable: Any = SimpleNamespace(
            down=set(),
            ended=None,
            outbox={},
            policy=policy,
            peer_found=self.found,
            peer_lost=self.lost,
        )

    def ask(self, name: str, kind: str, body: bytes, done: Any) -> None:
        assert kind == "ready"
        self.asked.append((name, body))
        self.answers[name] = done

    def found(self, number: int) -> None:
        self.reliable.down.discard(number)
        self.happened.append(("found", number))

    def lost(self, number: int) -> None:
        self.reliable.down.add(number)
        self.happened.append(("lost", number))

    def pump(self) -> None:
        self.happened.append("pump")

    def noticed(self) -> None:
        self.happened.append("noticed")

    def looks(self, after: float = 0.0) -> list[Any]:
        """What happens at the next look."""
        self.moment += after
        self.happened.clear()
        self._watch()
        return list(self.happened)


def test_a_link_that_goes_down_is_a_party_that_is_down_and_said_once() -> None:
    party = Seeing()
    party.changed("b", False)
    lost = [("lost", "b is unreachable.", "b"), ("lost", 1), "noticed", "pump"]
    assert party.happened == lost
    party.changed("b", False)
    assert party.happened == lost


def test_who_knows_of_the_end_may_leave_and_who_does_not_is_lost_without_a_word() -> None:
    party = Seeing()
    party.reliable.ended = object()
    party.known_ended = {"b"}
    party.changed("b", False)
    assert party.happened == []
    party.changed("server", False)
    assert party.happened[0] == ("lost", "", "server")
    party.reliable.ended = None  # the end was undone
    party.changed("b", False)
    assert party.happened[-3] == ("lost", 1)


def test_a_link_that_comes_up_is_a_party_that_is_up_once_it_says_so() -> None:
    party = Seeing()
    party.reliable.down = {1}
    party.silent = {1: 3.0, 2: 4.0}
    party.under_way = {(1, 0): 1.0, (2, 0): 1.0}
    party.reliable.outbox = {(1, 0): None, (1, 1): None, (2, 0): None}
    party.changed("b", True)
    assert party.asked == [("b", b"run")]
    assert party.happened == []
    party.answers["b"](IN_TRAINING, "")
    assert party.happened == [
        ("found", "b is reachable again.", "b"),
        ("found", 1),
        "noticed",
        "pump",
    ]
    assert party.silent == {2: 4.0}
    assert party.under_way == {(1, 0): FIRST_RETRY_SECONDS, (2, 0): 1.0}


def test_one_that_does_not_say_so_is_asked_again_while_it_is_down_and_linked() -> None:
    party = Seeing()
    party.changed("b", True)
    party.answers["b"](None, "")
    assert party.timers == [], "it is not down"
    party.reliable.down = {1}
    party.answers["b"](b"nonsense", "")
    ((seconds, again),) = party.timers
    assert seconds == LONGEST_RETRY_SECONDS
    again()
    assert party.asked == 2 * [("b", b"run")]
    party.rpc.link.up = {"server"}
    party.answers["b"](None, "")
    assert len(party.timers) == 1
    party.answers["b"](ENDED, "")
    assert ("found", 1) in party.happened


@pytest.mark.parametrize(
    ("ended", "awaits", "said"),
    [(False, False, IN_TRAINING), (True, False, ENDED), (True, True, IN_TRAINING)],
)
def test_a_party_says_that_it_has_ended_when_others_may_leave(
    ended: bool, awaits: bool, said: bytes
) -> None:
    party, answers = Seeing(), []
    party.reliable.ended = object() if ended else None
    party.awaits_reports = lambda: awaits
    for body in (b"run", b"run" + HAS_ENDED):
        party._ready(SimpleNamespace(sender="b", body=body, answer=answers.append))  # type: ignore[arg-type]
        assert party.known_ended == (set() if body == b"run" else {"b"})
    assert answers == 2 * [said]
    with pytest.raises(WireError, match="run is another one"):
        party._ready(SimpleNamespace(sender="b", body=b"run2", answer=answers.append))  # type: ignore[arg-type]


def test_one_that_is_silent_for_a_lease_and_a_half_is_down_and_asked_whether_it_is_there() -> None:
    party = Seeing()
    party.watch()
    assert party.timers[-1][0] == LONGEST_RETRY_SECONDS
    patience = SILENT_LEASES * LEASE_SECONDS
    party.silent = {1: party.moment, 2: party.moment}
    assert party.looks(patience - 0.1) == []
    assert party.looks(0.2) == [("lost", "b is unreachable.", "b"), ("lost", 1), "noticed", "pump"]
    assert party.asked == [("b", b"run")]
    assert party.looks() == [], "c is no peer, and b is known to be down"


def test_links_have_a_moment_to_come_up_after_the_start() -> None:
    party = Seeing()
    party.rpc.link.up = set()  # type: ignore[assignment]
    party.watch()
    patience = SILENT_LEASES * LEASE_SECONDS
    assert party.looks(patience - 0.1) == []
    assert {one[1] for one in party.looks(0.2) if one[0] == "lost"} >= {1, -1}
    assert party.asked == [], "without a link it cannot be asked"


def test_a_reason_to_wait_is_said_at_the_second_look() -> None:
    party = Seeing()
    party.reliable.policy.waits_for = frozenset({2})
    assert [party.looks(), party.looks()] == [[], [("waiting", "for c", 1)]]
    party.reliable.policy.waits_for = frozenset()
    assert party.looks() == []
    party.reliable.policy.waits_for = frozenset({2})
    assert party.looks() == [], "it is new again"
    party.reliable.ended = object()
    assert party.looks() == []
