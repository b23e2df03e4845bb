"""Successive halving: all pilots get a little time, the better half gets twice as much, and so on.

The best pilot of each family (svfl, dcpa, stcd, mtcd, tree-cg) stays to the end, and so does the
config's own method: the picture and the comparison need them. A pilot that has cost more than
another needed to reach the target has lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter
from typing import Any, Protocol, TypeVar

from mtcd.planner.forecast import DIVERGED, ROUGH, UNKNOWN, Forecast

ENOUGH = 2.0  # times the best: what is likely beyond this need not be known better


class Runner(Protocol):
    """The interface of a pilot for halving."""

    own: bool
    status: str | None
    worked: float

    @property
    def family(self) -> str:
        """The family of methods that it belongs to, of which the best stays to the end."""

    @property
    def forecast(self) -> Forecast:
        """When it gets to the target."""

    @property
    def predicted(self) -> float:
        """What it then has cost."""

    def advance(self, until: float, most: float = math.inf) -> None:
        """Train on until this time of ``perf_counter``, or until what is minimised is above ``most``."""

    def dismiss(self) -> None:
        """It is not needed any more."""


R = TypeVar("R", bound=Runner)
Watch = Callable[[str, float], None]


Advance = Callable[[Sequence[Any], float, Callable[[Any], float], Callable[[], None]], None]
"""Continues runners until a time of ``perf_counter``, each up to its limit; calls the last function
in between."""


def one_by_one(
    running: Sequence[Runner], end: float, most: Callable[[Runner], float], tick: Callable[[], None]
) -> None:
    """In this process: each gets an equal share of the time that is left."""
    for place, runner in enumerate(running):
        tick()
        # of what is left now: a runner that stopped early leaves its time to those after it
        now = perf_counter()
        runner.advance(now + (end - now) / (len(running) - place), most(runner))


def race(
    runners: Sequence[R], until: float, watch: Watch | None = None, advance: Advance = one_by_one
) -> None:
    """Rung after rung until this time of ``perf_counter``, or until all is known that matters."""
    began, alive = perf_counter(), list(runners)
    rungs = max(1, math.ceil(math.log2(len(alive) + 1)))  # as many as halvings leave one of all

    def show(state: str) -> None:
        if watch is not None:
            watch(state, (perf_counter() - began) / (until - began))

    for rung in range(rungs):
        running = [runner for runner in ranked(alive) if _open(runner, alive)]
        now = perf_counter()
        if not running or now >= until:
            break

        # an equal share of the time for each rung: with half the runners, each gets twice as much
        end = now + (until - now) / (rungs - rung)
        tick = partial(show, f"rung {rung + 1}: {len(running)} pilots")
        advance(running, end, partial(_most, alive), tick)
        alive = survivors(alive)

    # also those that never ran: time may have been up before the first rung
    for runner in runners:
        if runner not in alive:
            runner.dismiss()


def _most(alive: Sequence[Runner], runner: Runner) -> float:
    """What a runner may cost."""
    if runner in _kept(alive):
        return math.inf
    return reached(alive)


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
    """The better half, half of those of which nothing is known yet (the first), the best of each
    family, and the config's own; the others are dismissed."""
    order = ranked(alive)
    known = [runner for runner in order if runner.forecast.sure != UNKNOWN]
    unknown = [runner for runner in order if runner.forecast.sure == UNKNOWN]
    # halved apart: what cannot be judged yet must neither push out what is known to be good, nor
    # all be lost to it
    staying = _better_half(known) + _better_half(unknown) + _kept(alive)
    for runner in order:
        if runner not in staying:
            runner.dismiss()
    return [runner for runner in order if runner in staying]


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
    """Whether more time for this pilot could change the choice or the report."""
    if runner.status is not None:
        return False
    forecast, best = runner.forecast, reached(alive)
    vague = forecast.sure in (UNKNOWN, ROUGH) or not forecast.arrives
    # what may still be within twice the best can decide; a vague forecast may be wrong by more
    return vague or runner.predicted * forecast.low / forecast.iterations <= ENOUGH * best
