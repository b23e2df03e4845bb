"""The event loop of a party: actions in order of arrival, timers when they are due."""

from __future__ import annotations

import pytest

from mtcd.federation.node.loop import Loop


class Timed:
    """A loop whose clock goes on by an hour with every action; what happened, and when."""

    def __init__(self) -> None:
        self.moment = 0.0
        self.loop = Loop(lambda: self.moment)
        self.loop.may_spin = False
        self.happened: list[tuple[float, str]] = []

    def act(self, name: str, hours: float = 0.0) -> None:
        self.happened.append((self.moment, name))
        self.moment += hours

    def run(self) -> list[str]:
        self.loop.run()
        return [name for _, name in self.happened]


def test_actions_run_in_order_and_a_timer_at_its_very_moment() -> None:
    timed = Timed()
    timed.loop.later(2.0, lambda: timed.act("due"))
    timed.loop.later(2.1, timed.loop.stop)
    timed.loop.call(lambda: timed.act("first", 1.0))
    timed.loop.call(lambda: timed.act("second", 1.0))
    timed.loop.call(lambda: timed.act("third", 0.1))
    assert timed.run() == ["first", "second", "due", "third"]


def test_timers_of_one_moment_run_in_the_order_in_which_they_were_set() -> None:
    timed = Timed()
    for name in "abc":
        timed.loop.later(0.0, lambda name=name: timed.act(name))
    timed.loop.later(0.0, timed.loop.stop)
    timed.loop.later(0.0, lambda: timed.act("after the end"))
    assert timed.run() == ["a", "b", "c"]


def test_timers_that_were_dropped_never_run() -> None:
    timed = Timed()
    timed.loop.later(0.0, lambda: timed.act("dropped"))
    timed.loop.drop_timers()
    timed.loop.later(0.0, timed.loop.stop)
    assert timed.run() == []


def test_an_error_of_an_action_ends_the_loop() -> None:
    timed = Timed()

    def fail() -> None:
        raise ValueError("of the action")

    timed.loop.call(fail)
    with pytest.raises(ValueError, match="of the action"):
        timed.loop.run()


def test_a_turn_is_marked_when_the_loop_looks_for_work() -> None:
    timed = Timed()
    assert timed.loop.turned == 0.0
    timed.loop.call(lambda: timed.act("long", 3.0))
    timed.loop.call(lambda: timed.act("looked for"))
    timed.loop.call(timed.loop.stop)
    timed.run()
    assert timed.loop.turned == 3.0
