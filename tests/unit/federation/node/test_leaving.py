"""When a party exits after the end of a run: whom it waits for, for how long, and what it tells."""

from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cryptography")

from mtcd.federation.node.ending import (
    ANSWER_SECONDS,
    LONGEST_INTERVAL,
    LONGEST_STAY_SECONDS,
    SLACK_SECONDS,
    STEP_SECONDS,
    UNANSWERED_LIMIT,
    UNREACHABLE_STAY_SECONDS,
    Leaving,
    Watched,
)
from mtcd.federation.node.presence import ENDED, HAS_ENDED, IN_TRAINING
from mtcd.protocol.codec.envelopes import Cancelled, End


class Clock:
    """The loop of a party, with a clock that the test sets."""

    def __init__(self) -> None:
        self.moment = 100.0
        self.timers: list[tuple[float, Any]] = []

    def now(self) -> float:
        return self.moment

    def later(self, seconds: float, act: Any) -> None:
        self.timers.append((seconds, act))


def watched(clock: Clock, interval: float) -> Watched:
    """An operator has asked twice, the second time now."""
    made = Watched(clock)  # type: ignore[arg-type]
    clock.moment -= interval
    made.asked()
    clock.moment += interval
    made.asked()
    return made


def test_the_next_request_is_expected_within_twice_the_interval_and_some_slack() -> None:
    clock = Clock()
    operator = watched(clock, 3.0)
    assert operator.silence_seconds == pytest.approx(6.0 + SLACK_SECONDS)
    clock.moment += 2.0
    assert operator.silence_seconds == pytest.approx(4.0 + SLACK_SECONDS)
    clock.moment += 100.0
    assert operator.silence_seconds == 0.0


@pytest.mark.parametrize(
    ("interval", "watches"), [(LONGEST_INTERVAL, True), (LONGEST_INTERVAL + 0.1, False)]
)
def test_who_asks_seldom_does_not_watch(interval: float, watches: bool) -> None:
    assert (watched(Clock(), interval).silence_seconds > 0) == watches


def test_who_asks_while_it_is_waited_for_is_answered_before_the_exit_which_comes_once() -> None:
    clock, left = Clock(), []
    operator = watched(clock, 1.0)
    assert clock.timers == [], "nobody leaves yet"
    operator.leave(lambda: left.append("left"))
    operator.asked()
    (silence, over), (answer, answered) = clock.timers
    assert (silence, answer) == (pytest.approx(2.0 + SLACK_SECONDS), ANSWER_SECONDS)
    answered()
    over()
    assert left == ["left"]


def test_without_a_watching_operator_a_party_leaves_at_once() -> None:
    clock, left = Clock(), []
    Watched(clock).leave(lambda: left.append("left"))  # type: ignore[arg-type]
    assert left == ["left"]
    assert clock.timers == []


class Ended:
    """A party, a, whose run has ended, with the peers b and c; d is behind them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.asked: list[tuple[str, bytes]] = []
        self.answers: dict[str, Any] = {}
        self.happened: list[str] = []
        self.reliable: Any = SimpleNamespace(
            commit=lambda: self.happened.append("committed"), ended=object(), number=0, outbox={}
        )
        self.link = SimpleNamespace(up=set(), peers={"b", "c"})
        self.trainer: Any = SimpleNamespace(
            awaits_reports=lambda: False,
            known_ended=set(),
            log=SimpleNamespace(say=lambda event, text: self.happened.append(text)),
            loop=self.clock,
            names=dict(enumerate("abcd")),
            reliable=self.reliable,
            rpc=SimpleNamespace(ask=self.ask, link=self.link),
            run="run",
        )
        self.client: Any = SimpleNamespace(waits_for=set())
        self.leaving = Leaving(
            self.trainer,
            self.client,
            lambda: self.happened.append("left"),
            lambda: self.happened.append("undone"),
        )

    def ask(self, name: str, kind: str, body: bytes, done: Any) -> None:
        assert kind == "ready"
        self.asked.append((name, body))
        self.answers[name] = done

    def put(self, to: int, payload: Any = None) -> None:
        """Put a message into the outbox."""
        envelope = SimpleNamespace(to=to, message=SimpleNamespace(payload=payload))
        self.reliable.outbox[to, len(self.reliable.outbox)] = envelope

    def step(self) -> list[str]:
        """What happens in a step."""
        self.happened.clear()
        self.asked.clear()
        self.leaving.step()
        return list(self.happened)


def test_where_nobody_is_up_and_nothing_is_left_to_tell_a_party_leaves() -> None:
    assert Ended().step() == ["committed", "left"]


def test_messages_to_itself_wait_for_nobody() -> None:
    party = Ended()
    party.put(0)
    assert party.step() == ["committed", "left"]


def test_an_end_that_was_undone_is_no_end() -> None:
    party = Ended()
    party.reliable.ended = None
    assert party.step() == ["undone"]


def test_a_peer_that_is_up_is_asked_until_it_knows_of_the_end() -> None:
    party = Ended()
    party.link.up = {"b"}
    assert party.step() == []
    assert party.asked == [("b", b"run" + HAS_ENDED)]
    assert party.clock.timers[-1][0] == STEP_SECONDS
    party.answers["b"](IN_TRAINING, "")
    assert party.step() == []
    party.answers["b"](ENDED, "")
    assert party.step() == ["committed", "left"]


def test_a_party_that_still_owes_an_answer_is_asked_though_it_knows_of_the_end() -> None:
    party = Ended()
    party.link.up = {"b"}
    party.trainer.known_ended = {"b"}
    party.client.waits_for = {"b"}
    assert party.step() == []
    assert party.asked == [("b", b"run" + HAS_ENDED)]


def test_one_that_is_not_reached_has_a_while_to_come_back() -> None:
    party = Ended()
    party.put(1)
    party.clock.moment += UNREACHABLE_STAY_SECONDS - 0.1
    assert party.step() == []
    party.clock.moment += 0.2
    left = "Unreachable at the end of the run: b. When restarted, this party notifies them."
    assert party.step() == [left, "committed", "left"]


def test_one_that_is_up_is_waited_for_longer_but_not_for_ever() -> None:
    party = Ended()
    party.link.up = {"b"}
    party.clock.moment += LONGEST_STAY_SECONDS - 0.1
    assert party.step() == []
    party.clock.moment += 0.2
    assert party.step() == ["committed", "left"]


def test_while_reports_are_awaited_it_stays_and_does_not_say_that_it_has_ended() -> None:
    party = Ended()
    party.trainer.awaits_reports = lambda: True
    assert party.step() == []
    party.link.up = {"b"}
    assert party.step() == []
    assert party.asked == [("b", b"run")]


def test_one_behind_others_is_given_up_after_some_requests_without_an_answer() -> None:
    party = Ended()
    party.put(3)
    party.step()
    party.clock.moment += UNREACHABLE_STAY_SECONDS + 1
    answer = party.answers["d"]
    for _ in range(UNANSWERED_LIMIT - 1):
        answer(None, "")
    assert party.step() == []
    answer(IN_TRAINING, "")  # it is there: the count begins anew
    for _ in range(UNANSWERED_LIMIT - 1):
        answer(None, "")
    assert party.step() == []
    answer(None, "")
    assert party.step()[-1] == "left"


def test_only_ends_that_are_known_already_are_taken_back_from_the_outbox() -> None:
    party = Ended()
    party.trainer.known_ended = {"b"}
    for to in (1, 2):
        party.put(to, End("iterations", 0, 3))
        party.put(to, Cancelled(0))
    party.leaving._commit()
    kinds = [(one.to, type(one.message.payload)) for one in party.reliable.outbox.values()]
    assert kinds == [(1, Cancelled), (2, End), (2, Cancelled)]
