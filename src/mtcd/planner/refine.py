"""A search around the best: one setting changed a little at a time, as long as that is better and
there is time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from mtcd.methods.method import Method
from mtcd.planner.candidates import Space, further, neighbours
from mtcd.planner.forecast import UNKNOWN
from mtcd.planner.halving import Advance, Clock, Watch, one_by_one, race, ranked, reached
from mtcd.planner.pilots import Pilot, PlanTask
from mtcd.planner.screening import kind

STARTS = 4  # the best of so many kinds
CONTENDERS = 3
BETTER = 0.999
PATIENCE = 10.0  # times the CPU time of the best, that a neighbour may take
BRIEF = 0.1  # CPU seconds that every neighbour may take
PART = 0.4  # of what the best cost: then a neighbour that is behind is given up


def confirm(pilots: Sequence[Pilot], until: float, clock: Clock) -> None:
    """Run the leading pilot to the target, until the leader has reached it: a forecast is not
    enough to be chosen."""
    while clock() < until:
        leader = ranked(pilots)[0]
        if leader.status == "dismissed":
            leader.revive()
        elif leader.status is not None or math.isinf(leader.predicted):
            return

        # as far again as so far: a better forecast may show another leader before that
        spent = leader.spent
        leader.advance(until, min(max(2 * spent, leader.unit), reached(pilots)))
        if leader.spent == spent:  # it has cost as much as the best, and is not there
            return


def race_on(
    pilots: Sequence[Pilot],
    until: float,
    clock: Clock,
    watch: Watch | None,
    advance: Advance = one_by_one,
) -> None:
    """If no pilot has reached the target: continue the best, and some without a forecast."""
    known = [pilot for pilot in ranked(pilots) if pilot.forecast.arrives]
    unknown = [pilot for pilot in pilots if pilot.forecast.sure == UNKNOWN]
    # a forecast that is too early may hide the best of all
    contenders = known[:CONTENDERS] + unknown[:CONTENDERS]
    for pilot in contenders:
        pilot.revive()
    if contenders:
        race(contenders, until, clock, watch, advance)


def second_chances(pilots: Sequence[Pilot], until: float, clock: Clock) -> None:
    """Those that may be better than the best for all that is known: each may go as far as the best
    did.

    The config's own comes first, then those of which nothing is known, then those that were
    dismissed on a forecast.
    """
    # what is known least comes first: it may win by most
    order = sorted(pilots, key=lambda pilot: (not pilot.own, pilot.forecast.sure != UNKNOWN))
    for pilot in order:
        best = reached(pilots)  # again for each, as the one before may have lowered it
        if math.isinf(best) or clock() >= until:
            return
        if pilot.status in (None, "dismissed") and _may_win(pilot, best):
            pilot.revive()
            pilot.advance(until, best)


def _may_win(pilot: Pilot, best: float) -> bool:
    if pilot.own:
        return True  # it is what the recommendation is held against: better measured than forecast
    if pilot.forecast.sure == UNKNOWN:
        return True
    return pilot.forecast.arrives and pilot.rate * pilot.forecast.low < best


def refine(
    task: PlanTask, space: Space, pilots: list[Pilot], until: float, watch: Watch | None = None
) -> None:
    """Climb from the best of each of some kinds, then look further around the best; pilots are
    added.

    Only from those that have reached the target: a forecast is no place to start from.
    """
    search = HillClimb(task, space, pilots, until, watch)
    leaders: dict[object, Pilot] = {}
    for pilot in ranked(pilots):
        if pilot.status == "converged":
            # kinds that differ in the number of tokens only count as one: climbing changes it
            leaders.setdefault(kind(pilot.method)[:4], pilot)
    for leader in list(leaders.values())[:STARTS]:
        search.climb(leader)

    best: Pilot | None = ranked(pilots)[0]
    # two settings changed at once: a better one may lie behind a worse one
    while best is not None and best.status == "converged":
        found = search.first_better(best, further)
        best = found and search.climb(found)


class HillClimb:
    """Hill climbing: every setting is tried once."""

    def __init__(
        self, task: PlanTask, space: Space, pilots: list[Pilot], until: float, watch: Watch | None
    ) -> None:
        self.task, self.space = task, space
        self.pilots = pilots
        self.until, self.watch = until, watch
        self.began = task.clock()
        # by repr: equal settings are one method, however often they are made
        self.tried = {repr(pilot.method) for pilot in pilots}

    def climb(self, pilot: Pilot) -> Pilot:
        """To where no neighbour is better."""
        better: Pilot | None = pilot
        while better is not None:
            pilot, better = better, self.first_better(better, neighbours)
        return pilot

    def first_better(
        self, current: Pilot, around: Callable[[Space, Method], Iterator[Method]]
    ) -> Pilot | None:
        """The first setting around the current one that is better; None if none is, or time is
        up."""
        for method in around(self.space, current.method):
            if self.task.clock() >= self.until:
                return None
            if repr(method) in self.tried:
                continue

            self.tried.add(repr(method))
            self._show(current)
            pilot = Pilot(self.task, method)
            self.pilots.append(pilot)
            if _improves(pilot, current, self.until):
                return pilot
        return None

    def _show(self, current: Pilot) -> None:
        """Say around which setting is searched, and how much of the time has passed."""
        if self.watch is not None:
            passed = (self.task.clock() - self.began) / (self.until - self.began)
            self.watch(f"around {current.method.describe()}", passed)


def _improves(pilot: Pilot, current: Pilot, until: float) -> bool:
    """Whether it reaches the target too, for less."""
    clock = pilot.task.clock
    until = min(until, clock() + max(BRIEF, PATIENCE * current.worked))
    pilot.advance(until, PART * current.predicted)
    if not _is_behind(pilot, current):
        pilot.advance(until, current.predicted)

    # hundreds of neighbours are tried: parties of all of them would fill the memory
    pilot.release()
    return pilot.status == "converged" and pilot.predicted < BETTER * current.predicted


def _is_behind(pilot: Pilot, current: Pilot) -> bool:
    """Whether it is behind what the current one was for the same cost, and by its own forecast
    stays there."""
    if pilot.status is not None:
        return pilot.status != "converged"
    if pilot.forecast.sure == UNKNOWN or pilot.lowest_gap is None:
        return False  # a pass of it is dear: it has hardly begun
    late = pilot.rate * pilot.forecast.low > current.predicted
    return late and pilot.lowest_gap > current.gap_for(pilot.spent)
