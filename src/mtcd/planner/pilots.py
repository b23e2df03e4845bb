"""Pilots: short trainings that can be continued, and the forecasts from them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from mtcd.config.build import Setup
from mtcd.core.errors import MtcdError
from mtcd.data.standardise import standardise
from mtcd.engines.choose import engine_for
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.config import linear_parts
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.training import best_objective
from mtcd.network.topology import Network
from mtcd.planner.budget import CpuClock
from mtcd.planner.forecast import ROUGH, Forecast, forecast
from mtcd.planner.links import Links
from mtcd.planner.timing import Travel, travel
from mtcd.planner.virtual_time import VirtualTime, VirtualTimeEngine
from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.costs import UNIT, Costs, Sizes
from mtcd.protocol.ledger.ledger import LINKS, Ledger
from mtcd.protocol.party import Parties
from mtcd.theory.stepsize import Smoothness
from mtcd.training.divergence import DIVERGED, worst_end_of
from mtcd.training.history import Measurement
from mtcd.training.observer import Observer
from mtcd.training.stop import FOR_EVER, Stop

ROUNDING = 1e-9
# when it comes to choosing, what was not measured counts as this many times worse than it may be at
# worst ...
UNMEASURED = 1.25
DOUBT = 3.0  # ... which is no more than so many times the forecast


@dataclass(frozen=True, eq=False)
class PlanTask:
    """The task of a plan: the problem, the network, the prices, the target."""

    problem: LinearProblem
    network: Network
    costs: Costs
    links: Links | None
    best: float
    """f*."""
    target: float
    seed: int
    clock: CpuClock = field(default_factory=CpuClock)
    """What the budget counts."""

    @staticmethod
    def of(setup: Setup, target: float, costs: Costs, links: Links | None) -> PlanTask:
        """Built as ``mtcd.train`` would; computes f*, or finds it in the cache."""
        data, model = linear_parts(setup)
        if setup.config.data.standardise:
            data, _ = standardise(data)
        problem = model.problem(data)
        # once, and cached on disk: it takes longer than any pilot
        best = best_objective(data, model, problem)
        # without metrics: nobody reads those of a pilot
        problem = replace(problem, evaluation=None)
        return PlanTask(problem, setup.network, costs, links, best, target, setup.config.seed)

    @cached_property
    def smoothness(self) -> Smoothness:
        """L, of all columns together, and L_k, of those of each client; computed once for all pilots."""
        return BlockSmoothness(self.problem)

    @cached_property
    def _travels(self) -> dict[str, Travel]:
        return {}

    def travel(self, method: Method) -> Travel:
        """Where messages go; it does not depend on what the clients do with them."""
        # candidates that differ in these only share an answer, which takes long to compute
        way = method.with_stepsize(1.0)
        if isinstance(way, MTCD):
            way = replace(way, local_updates=1)

        key = repr(way)
        if key not in self._travels:
            N, outputs = self.problem.samples, self.problem.outputs
            self._travels[key] = travel(way, self.network, N, outputs, self.seed, self.links)
        return self._travels[key]

    def iteration_cost(self, method: Method) -> float:
        """The charged cost of an iteration, as histories count them."""
        prices = method.prices(self.network, self.travel(method).parallel)
        cost = prices.iteration(self.costs, self._sizes(method))
        if isinstance(method, MTCD):
            # prices are those of a roam and its sync, while histories count a hop of every token
            cost /= method.hops or 1
        return cost

    def _sizes(self, method: Method) -> Sizes:
        if self.costs.per == "message":
            return UNIT

        samples, outputs = self.problem.samples, self.problem.outputs
        return method.messages(self.network, self.seed, samples, outputs).sizes


class Pilot:
    """A method on trial: it goes on where it stopped."""

    def __init__(self, task: PlanTask, method: Method, own: bool = False) -> None:
        self.task, self.method, self.own = task, method, own
        self.status: str | None = None
        """None while it can go on. Then converged, diverged, refused or dismissed."""
        self.worked = 0.0
        """CPU seconds that were spent on it."""
        self.rows: list[Measurement] = []
        self._observer: Observer | None = None
        self._simulated: VirtualTime | None = None
        self._seen: tuple[tuple[int, str | None], Forecast] | None = None

    @property
    def family(self) -> str:
        """svfl, dcpa, stcd, mtcd or tree-cg."""
        return self.method.kind

    @property
    def iterations(self) -> int:
        """How far it has come."""
        if not self.rows:
            return 0
        return self.rows[-1].iteration

    @property
    def spent(self) -> float:
        """What it has cost so far: the quantity to minimise."""
        return self.iterations * self.rate

    @property
    def unit(self) -> float:
        """What it costs to pass all clients once."""
        distinct = self.task.travel(self.method).distinct
        return self.rate * self.task.network.size / max(distinct, ROUNDING)

    def advance(self, until: float, most: float = math.inf) -> None:
        """Go on until this time of the clock, or the target, or until the objective is above
        ``most``."""
        limit = FOR_EVER
        # not one iteration more: what costs more than the best cannot be chosen
        if self.rate and math.isfinite(most):
            limit = min(FOR_EVER, math.ceil((1 - ROUNDING) * most / self.rate))
        if self.status is not None or limit <= self.iterations:
            return

        began = self.task.clock()
        self.status = self._train(Stop(gap=self.task.target, iterations=limit), until)
        if self.status is not None:
            self._observer = None  # the parties take memory, and are not needed any more
        self.worked += self.task.clock() - began

    def _train(self, stop: Stop, until: float) -> str | None:
        """Go on until then; what the pilot's status is."""
        try:
            status = self._observed().advance(stop, until=until)
        except MtcdError:  # a setting that cannot work here
            return "refused"
        except np.linalg.LinAlgError:  # numbers beyond all bounds
            return DIVERGED

        if status in ("converged", DIVERGED):
            return status
        return None  # it was interrupted, or came to a limit: it can go on

    def _observed(self) -> Observer:
        if self._observer is None:
            task = self.task
            engine = self._engine(self.method.parties(task.problem, task.network, task.seed))
            # by the same rule as in a training, so that a pilot diverges where that would
            worst = worst_end_of(self.method, linear=True)
            self._observer = Observer(
                task.problem, engine, task.costs, task.best, worst, pausing=True, now=task.clock
            )
            self.rows = self._observer.rows
        return self._observer

    def _engine(self, parties: Parties) -> Engine:
        """With links, one with the time of a simulation: what a message waits for, how long it is,
        and what its sender computes, are then as in ``mtcd simulate``."""
        if self.task.links is None:
            return engine_for(parties, Ledger())
        self._simulated = VirtualTime(self.task.links)
        return VirtualTimeEngine(self._simulated, parties, Ledger())

    def dismiss(self) -> None:
        """Dismiss the pilot: by its forecast it is not needed."""
        self.status = self.status or "dismissed"

    def revive(self) -> None:
        """It was dismissed too early: it goes on where it was, or if it was released, from the
        start."""
        self.status = None

    def release(self) -> None:
        """Dismiss it, and forget the parties, which take memory."""
        self.dismiss()
        self._observer = None

    @property
    def forecast(self) -> Forecast:
        """When it gets to the target."""
        # asked for in every comparison of a sort: computed again only after it has gone on
        now = len(self.rows), self.status
        if self._seen is None or self._seen[0] != now:
            self._seen = now, self._new_forecast()
        return self._seen[1]

    def _new_forecast(self) -> Forecast:
        iterations = [row.iteration for row in self.rows]
        gaps = [row.gap or 0.0 for row in self.rows]
        jumps = self.method.acceleration is not None
        return forecast(iterations, gaps, self.task.target, self._lost, jumps)

    @property
    def _lost(self) -> bool:
        """Whether it cannot get to the target, whatever its gaps say."""
        return self.status in (DIVERGED, "refused")

    @property
    def rate(self) -> float:
        """The quantity to minimise, per iteration: the cost, or with links the seconds."""
        if self.task.links is None:
            return self.cost_rate
        return self.wall_rate

    @property
    def cost_rate(self) -> float:
        """Cost per iteration: as measured, or as the paper charges it if nothing was."""
        if not self.iterations:
            return self.task.iteration_cost(self.method)
        return self.rows[-1].cost / self.iterations

    @property
    def wall_rate(self) -> float:
        """Seconds per iteration, as they were simulated; on the wire alone, if nothing was; 0
        without links."""
        if self.task.links is None:
            return 0.0
        if self.iterations:
            return self.rows[-1].seconds / self.iterations
        return self.task.travel(self.method).wire or 0.0

    @property
    def compute_rate(self) -> float:
        """Seconds of computing per iteration, parties that work at the same time counted once."""
        if not self.iterations:
            return 0.0

        # a pilot computes for all parties in one process, one after the other
        parallel = self.task.travel(self.method).parallel
        if self.task.links is not None:
            return self.computed / (self.iterations * parallel)

        # the later half only: before, clients prepare for their first visit
        last, middle = self.rows[-1], self.rows[len(self.rows) // 2]
        seconds = last.seconds / self.iterations
        done = self.iterations - middle.iteration
        if done:
            seconds = (last.seconds - middle.seconds) / done
        return seconds / parallel

    @property
    def computed(self) -> float:
        """Seconds that all parties have computed in a simulation."""
        if self._simulated is None:
            return 0.0
        return sum(self._simulated.use.computing.values())

    @property
    def predicted(self) -> float:
        """The cost, or the seconds, at the target."""
        return self.forecast.until_target(self.rate)

    @property
    def cautious(self) -> tuple[bool, float, float]:
        """By what it is chosen: rough guesses last, what was not measured as if it turned out
        badly; then the gap."""
        forecast, gap = self.forecast, math.inf
        if not self._lost and self.lowest_gap is not None:
            gap = self.lowest_gap
        if self.status == "converged" or not forecast.arrives:
            return not forecast.arrives, self.predicted, gap

        # no bound is known of a rough forecast: it counts as three times itself
        at_worst = min(forecast.high, DOUBT * forecast.iterations)
        return forecast.sure == ROUGH, UNMEASURED * self.rate * at_worst, gap

    @property
    def lowest_gap(self) -> float | None:
        """The lowest that was measured; None before the first measurement."""
        return min((row.gap for row in self.rows if row.gap is not None), default=None)

    def gap_for(self, spent: float) -> float:
        """The lowest gap that it had measured when it had cost so much; infinite before the first
        measurement."""
        far = spent / self.rate if self.rate else math.inf
        gaps = [row.gap for row in self.rows if row.gap is not None and row.iteration <= far]
        return min(gaps, default=math.inf)

    def messages(self) -> dict[str, float]:
        """By kind of link, at the target (or so far, where it never gets there)."""
        return self._at_target("messages")

    def floats(self) -> dict[str, float]:
        """The numbers in them."""
        return self._at_target("floats")

    def _at_target(self, what: str) -> dict[str, float]:
        if not self.iterations:
            return dict.fromkeys(LINKS, 0.0)

        longer = 1.0
        if self.forecast.arrives:
            longer = self.forecast.iterations / self.iterations
        return {link: count * longer for link, count in getattr(self.rows[-1], what).items()}
