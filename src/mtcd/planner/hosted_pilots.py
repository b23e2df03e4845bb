"""Pilots on workers. Each worker builds the task from the config, and keeps the pilots that it has
begun."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import uuid4

from mtcd.config.build import Setup, build
from mtcd.config.schema import Config
from mtcd.core.workers import Backend, Failed, News, Workers, open_workers
from mtcd.methods.method import Method
from mtcd.planner.halving import UNFAIR, Advance, Clock, one_by_one
from mtcd.planner.links import Links
from mtcd.planner.pilots import Pilot, PlanTask
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.history import Measurement

PATIENCE = 0.25  # seconds between two looks at the workers


@dataclass(frozen=True)
class TaskSettings:
    """From this a worker builds the task of a plan. ``plan`` is a name that no other plan has."""

    plan: str
    config: Config
    target: float
    costs: Costs
    links: Links | None

    def task(self) -> PlanTask:
        """As the process that plans has it; f* is in the cache."""
        return PlanTask.of(build(self.config), self.target, self.costs, self.links)


@dataclass(frozen=True)
class Advanced:
    """How far a pilot has come."""

    status: str | None
    worked: float
    rows: list[Measurement]
    computed: float = 0.0


@dataclass
class KeptPilots:
    """What a worker keeps of the latest plan."""

    task: PlanTask
    pilots: dict[int, Pilot]


_KEPT: dict[str, KeptPilots] = {}


@dataclass(frozen=True)
class PilotJob:
    """Continue a pilot for some seconds, or until it has cost ``most``. Without a method, only
    build the task."""

    settings: TaskSettings
    number: int = 0
    method: Method | None = None
    seconds: float = 0.0
    most: float = math.inf

    def run(self, tell: Callable[[float], None] = lambda fraction: None) -> Advanced | None:
        """How far the pilot is then."""
        kept = _KEPT.get(self.settings.plan)
        if kept is None:
            _KEPT.clear()  # the pilots of an earlier plan take memory, and nobody asks for them
            kept = _KEPT[self.settings.plan] = KeptPilots(self.settings.task(), {})
        if self.method is None:
            return None

        pilot = kept.pilots.setdefault(self.number, Pilot(kept.task, self.method))
        pilot.advance(kept.task.clock() + self.seconds, self.most)
        return Advanced(pilot.status, pilot.worked, pilot.rows, pilot.computed)


class HostedPilot(Pilot):
    """A pilot that runs on one of the workers; if that dies, in this process, from the start."""

    def __init__(self, task: PlanTask, method: Method, own: bool, hosts: Hosts) -> None:
        super().__init__(task, method, own)
        self.hosts, self.number = hosts, hosts.next_number()
        self.worker: int | None = None
        self.here = False
        self._computed = 0.0

    @property
    def computed(self) -> float:
        """Seconds that all parties have computed in a simulation."""
        if self.here:
            return super().computed
        return self._computed

    def advance(self, until: float, most: float = math.inf) -> None:
        if self.here:
            super().advance(until, most)
        elif self.status is None:
            self.hosts.advance([self], until, self.task.clock, lambda pilot: most)

    def take(self, news: News) -> None:
        """The answer of the worker."""
        if isinstance(news, Advanced):
            # the budget is that of all processes together
            self.task.clock.add(news.worked - self.worked)
            self.status, self.worked, self.rows = news.status, news.worked, news.rows
            self._computed = news.computed
        elif isinstance(news, Failed) and news.lost:
            # with its worker the parties are gone; another one could be lost to the same cause
            self.here, self.rows = True, []
        else:
            self.status = "refused"


class Hosts:
    """The workers of a plan."""

    def __init__(self, workers: Workers[int], settings: TaskSettings) -> None:
        self.workers, self.settings = workers, settings
        self._numbers = 0

    def next_number(self) -> int:
        """A number for a pilot."""
        self._numbers += 1
        return self._numbers

    def pilot(self, task: PlanTask, method: Method, own: bool) -> HostedPilot:
        """A pilot on these workers."""
        return HostedPilot(task, method, own, self)

    def prepare(self) -> None:
        """Have the workers that have started build the task, which the budget does not count."""
        # with the first that has started: others may wait for a CPU for as long as this plan runs
        while not self.workers.idle:
            list(self.workers.news(PATIENCE))

        asked = self.workers.idle
        for worker in asked:
            self.workers.give(-worker, PilotJob(self.settings), worker)  # pilots count from 1
        answered = 0
        while answered < len(asked):
            for _, news in self.workers.news(PATIENCE):
                answered += not isinstance(news, float)  # a number is progress, not an answer

    def advance(
        self,
        pilots: Sequence[HostedPilot],
        end: float,
        clock: Clock,
        most: Callable[[HostedPilot], float],
        tick: Callable[[], None] = lambda: None,
    ) -> None:
        """Continue these pilots until this time of the clock, each on its worker, several at a
        time."""
        waiting, busy = list(pilots), dict[int, HostedPilot]()
        while waiting or busy:
            for worker in self.workers.idle:
                pilot = _next_for(worker, waiting)
                if pilot is not None:
                    # so that those which have to wait get something too
                    share = max(0.0, end - clock()) / len(waiting)
                    seconds = min(end - clock(), UNFAIR * share)
                    waiting.remove(pilot)
                    # from now on it stays there: its parties are kept by that process
                    busy[pilot.number], pilot.worker = pilot, worker
                    job = PilotJob(self.settings, pilot.number, pilot.method, seconds, most(pilot))
                    self.workers.give(pilot.number, job, worker)

            # those that lost their worker, while the workers are busy with the others
            for pilot in [one for one in waiting if one.here]:
                waiting.remove(pilot)
                left = max(0.0, end - clock())
                pilot.advance(clock() + left / (len(waiting) + 1), most(pilot))

            tick()
            waiting += self._returned(busy)

    def _returned(self, busy: dict[int, HostedPilot]) -> list[HostedPilot]:
        """Take the answers that have come; the pilots among them that still want time, here."""
        lost = []
        for number, news in self.workers.news(PATIENCE):
            if isinstance(news, float):
                continue
            pilot = busy.pop(number)
            pilot.take(news)
            if pilot.here:
                lost.append(pilot)
        return lost


def _next_for(worker: int, waiting: Sequence[HostedPilot]) -> HostedPilot | None:
    """The first that may run on this worker: one that has begun stays where its parties are."""
    for pilot in waiting:
        if not pilot.here and pilot.worker in (None, worker):
            return pilot
    return None


@dataclass(frozen=True)
class Racing:
    """How pilots are made, and how several are continued."""

    make: Callable[[PlanTask, Method, bool], Pilot] = Pilot
    advance: Advance = one_by_one


@contextmanager
def hosting(backend: Backend | None, setup: Setup, task: PlanTask) -> Iterator[Racing]:
    """Pilots in this process, or on workers."""
    if backend is None:
        yield Racing()
        return
    settings = TaskSettings(uuid4().hex, setup.config, task.target, task.costs, task.links)
    with open_workers(backend) as workers:
        hosts = Hosts(workers, settings)
        hosts.prepare()
        yield Racing(hosts.pilot, hosts.advance)
