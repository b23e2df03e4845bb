"""Successive halving: all pilots may cost a little, the better half twice as much, and so on.

What a pilot may do is limited by what it costs in the objective of the plan, messages say, and not
by time: so the same pilots get as far on a fast, a slow and a busy machine, and the one that first
reaches the target is the best of all that are left. The CPU time of the budget ends the race where
it is too small for that.

The best pilot of each family (svfl, dcpa, stcd, mtcd, tree-cg) stays to the end, and so does the
config's own method: the picture and the comparison need them. A pilot that has cost more than
another needed to reach the target has lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from mtcd.planner.forecast import DIVERGED, ROUGH, UNKNOWN, Forecast

ENOUGH = 2.0  # times the best: what is likely beyond this need not be known better
KEPT = 10.0  # times the best: so far a family, or the config's own method, is followed at most
FIRST = 8.0  # passes over all clients, of the first rung
JUDGED = 5.0  # passes before which nothing is known: extrapolation begins after some
GROWTH = 2.0  # from rung to rung
CLOSEST = 4  # one in so many stays for its gap, whatever its forecast
NEXT_TO_NOTHING = 1e-9
FOLLOWED = 0.1  # of the time that is left, for a family that costs more than the best
UNFAIR = 4.0  # shares of the time that is left which one pilot may take


class Runner(Protocol):
    """The interface of a pilot for halving."""

    own: bool
    status: str | None

    @property
    def family(self) -> str:
        """The family of methods that it belongs to, of which the best stays to the end."""

    @property
    def forecast(self) -> Forecast:
        """When it gets to the target."""

    @property
    def predicted(self) -> float:
        """What it then has cost."""

    @property
    def spent(self) -> float:
        """What it has cost so far."""

    @property
    def unit(self) -> float:
        """What it costs to pass all clients once."""

    @property
    def lowest_gap(self) -> float | None:
        """The lowest gap that it has measured."""

    def advance(self, until: float, most: float = math.inf) -> None:
        """Train on until this time of the clock, or until what is minimised is above ``most``."""

    def dismiss(self) -> None:
        """It is not needed any more."""


R = TypeVar("R", bound=Runner)
Watch = Callable[[str, float], None]


Clock = Callable[[], float]
Advance = Callable[[Sequence[Any], float, Clock, Callable[[Any], float], Callable[[], None]], None]
"""Continues runners until a time of a clock, each up to its limit; calls the last function in
between."""


def one_by_one(
    running: Sequence[Runner],
    end: float,
    clock: Clock,
    most: Callable[[Runner], float],
    tick: Callable[[], None],
) -> None:
    """In this process. None may take many shares of the time that is left."""
    for place, runner in enumerate(running):
        tick()
        # of what is left now: a runner that stopped early leaves its time to those after it
        now = clock()
        share = (end - now) / (len(running) - place)
        runner.advance(min(end, now + UNFAIR * share), most(runner))


def race(
    runners: Sequence[R],
    until: float,
    clock: Clock,
    watch: Watch | None = None,
    advance: Advance = one_by_one,
) -> None:
    """Rung after rung, until all is known that matters, or until this time of the clock."""
    began, alive = clock(), list(runners)
    level = _first_level(runners)

    def show(state: str) -> None:
        if watch is not None:
            watch(state, (clock() - began) / (until - began))

    rung = 1
    while True:
        running = [runner for runner in ranked(alive) if _open(runner, alive)]
        if not running or clock() >= until:
            break

        before = [runner.spent for runner in running]
        tick = partial(show, f"rung {rung}: {len(running)} pilots")
        advance(running, until, clock, partial(_most, alive, level), tick)

        # all are where they may be at most: not one more iteration is worth its cost
        moved = [runner.spent for runner in running] != before
        if not moved and all(level >= _farthest(alive, runner) for runner in running):
            break
        alive = survivors(alive)
        level *= GROWTH
        rung += 1

    # also those that never ran: time may have been up before the first rung
    for runner in runners:
        if runner not in alive:
            runner.dismiss()


def follow(
    runners: Sequence[Runner], until: float, clock: Clock, advance: Advance = one_by_one
) -> None:
    """Race each family that has not reached the target by itself, and go on with the config's own
    method, for a part of the time that is left each: the picture and the comparison need them,
    whatever they cost."""
    groups: dict[object, list[Runner]] = {}
    for runner in runners:
        groups.setdefault("own" if runner.own else runner.family, []).append(runner)

    for members in groups.values():
        running = [runner for runner in members if runner.status is None]
        if running and math.isinf(reached(members)):
            now = clock()
            race(running, now + FOLLOWED * max(0.0, until - now), clock, None, advance)


def _first_level(runners: Sequence[Runner]) -> float:
    """What a pilot may cost on the first rung: some passes of those whose passes are cheapest."""
    units = [runner.unit for runner in runners if runner.unit > 0]
    # those that were in a race before are ahead of its first rungs
    spent = max((runner.spent for runner in runners), default=0.0)
    return max(FIRST * min(units, default=NEXT_TO_NOTHING), spent)


def _most(alive: Sequence[Runner], level: float, runner: Runner) -> float:
    """What a runner may cost on this rung."""
    return min(level, _farthest(alive, runner))


def _farthest(alive: Sequence[Runner], runner: Runner) -> float:
    """What a runner may cost in all."""
    best = reached(alive)
    if runner in _kept(alive):
        return KEPT * best
    return best


def ranked(runners: Sequence[R]) -> list[R]:
    """Cheapest first; among those that never arrive, the ones about which least is known."""
    doubt = {UNKNOWN: 0, DIVERGED: 2}
    return sorted(
        runners, key=lambda runner: (runner.predicted, doubt.get(runner.forecast.sure, 1))
    )


def reached(runners: Sequence[Runner]) -> float:
    """The least that any needed which has reached the target."""
    return min(
        (runner.predicted for runner in runners if runner.status == "converged"), default=math.inf
    )


def survivors(alive: Sequence[R]) -> list[R]:
    """The better half of those of which something is known, those of which nothing is, the best of
    each family, and the config's own; the others are dismissed."""
    order = ranked(alive)
    known = [runner for runner in order if _judged(runner)]
    # a pass of these is dear: they have hardly begun, which costs no time
    unknown = [runner for runner in order if not _judged(runner)]
    staying = _better_half(known) + _closest(known) + unknown + _kept(alive)
    for runner in order:
        if runner not in staying:
            runner.dismiss()
    return [runner for runner in order if runner in staying]


def _judged(runner: Runner) -> bool:
    """Whether enough is known of it to dismiss it."""
    if runner.status is not None:
        return True
    return runner.forecast.sure != UNKNOWN and runner.spent >= JUDGED * runner.unit


def _closest(known: list[R]) -> list[R]:
    """Those with the lowest gaps of all that still run: they have cost about the same."""
    running = [runner for runner in known if runner.status is None]
    running.sort(key=_gap)
    return running[: len(running) // CLOSEST]


def _gap(runner: Runner) -> float:
    if runner.lowest_gap is None:
        return math.inf
    return runner.lowest_gap


def _better_half(order: list[R]) -> list[R]:
    return order[: math.ceil(len(order) / 2)]


def _kept(alive: Sequence[R]) -> list[R]:
    """The best of each family, and the config's own."""
    best: dict[str, R] = {}
    for runner in ranked(alive):
        # in the order of ranked(): the first of a family is its best
        best.setdefault(runner.family, runner)
    return [runner for runner in alive if runner.own or best[runner.family] is runner]


def _open(runner: Runner, alive: Sequence[Runner]) -> bool:
    """Whether more of this pilot could change the choice or the report."""
    if runner.status is not None:
        return False
    best = reached(alive)
    if math.isinf(best):
        return True
    if runner.spent >= _farthest(alive, runner):
        return False
    forecast = runner.forecast
    vague = forecast.sure in (UNKNOWN, ROUGH) or not forecast.arrives
    # what may still be within twice the best can decide; a vague forecast may be wrong by more
    return vague or runner.predicted * forecast.low / forecast.iterations <= ENOUGH * best
