"""mtcd plan --machines: what the candidates of a plan would take on many machines."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from mtcd.config.build import Setup
from mtcd.core.terminal.table import ScreenTable
from mtcd.core.terminal.text import duration
from mtcd.models.glm.config import linear_parts
from mtcd.planner.planning import SettingsPlan
from mtcd.planner.proposal import Proposal, finite_or_none
from mtcd.planner.scaling import Machine, Prediction, Work, predict

SIZES = (1, 10, 100, 1000)
FASTER = 1.05  # less than this is within what a prediction can tell apart
ADVICE = {
    "compute": "more machines, cores or tokens help; fewer local updates make an iteration shorter",
    "latency": "let each machine host more neighbouring clients, or take more local updates per visit",
    "link bandwidth": "use transport: float32, mini-batches, or more local updates per visit",
    "server link": "sync less often (more hops), use fewer tokens, or a method without a server",
    "memory": "use more machines, or machines with more memory",
}


@dataclass(frozen=True)
class PlacedProposal:
    """A candidate on a number of machines."""

    proposal: Proposal
    iteration: Prediction
    """One iteration there."""

    @property
    def seconds(self) -> float:
        """Seconds to the target."""
        return self.proposal.forecast.until_target(self.iteration.seconds)

    def cells(self) -> list[str]:
        """The row of a table."""
        one = self.iteration
        return [
            f"{one.machines:,}",
            self.proposal.label(),
            duration(self.seconds),
            duration(one.seconds),
            _limit_with_share(one),
            f"{one.memory_gb:.2g} GB",
        ]

    def summary(self) -> dict[str, Any]:
        """The same as plain values, for JSON."""
        one = self.iteration
        return {
            "machines": one.machines,
            "method": self.proposal.label(),
            "seconds": finite_or_none(self.seconds),
            "seconds_per_iteration": one.seconds,
            "parts": one.parts,
            "limit": one.limit,
            "memory_gb": one.memory_gb,
            "fits": one.fits,
        }


@dataclass(frozen=True)
class Fleet:
    """The machines of ``--machines``, and the problem that is placed on them."""

    work: Work
    machine: Machine
    count: int

    @staticmethod
    def of(setup: Setup, machine: Machine, count: int) -> Fleet:
        """The problem of a config on ``count`` machines."""
        # columns as they are: scaling them changes neither sizes nor times
        data, model = linear_parts(setup)
        problem = model.problem(data)

        size = 0
        for block in problem.blocks:
            # a sparse block has no size of its own: its entries are what it takes
            size += int(getattr(block, "nbytes", 0) or block.data.nbytes)

        work = Work(setup.network, problem.samples, problem.outputs, setup.config.seed, size)
        return Fleet(work, machine, count)

    def place(self, proposal: Proposal, count: int) -> PlacedProposal:
        """A candidate on ``count`` machines."""
        compute = 0.0
        if _timed(proposal):
            compute = proposal.compute_seconds / proposal.forecast.iterations
        return PlacedProposal(
            proposal, predict(proposal.method, compute, self.work, self.machine, count)
        )

    def seconds(self, proposal: Proposal) -> float:
        """Seconds to the target of one candidate."""
        return self.place(proposal, self.count).seconds

    def best(self, plan: SettingsPlan, count: int) -> PlacedProposal:
        """The candidate that reaches the target first on ``count`` machines, of those whose time is
        known. One that does not fit into memory comes after all that do."""
        # a candidate that was at the target from the start has no time per iteration
        timed = [self.place(one, count) for one in plan.proposals if _timed(one)]
        return min(timed, key=lambda placed: (not placed.iteration.fits, placed.seconds))

    def bests(self, plan: SettingsPlan) -> list[PlacedProposal]:
        """The best candidate on each number of machines that is shown."""
        return [self.best(plan, count) for count in sorted({*SIZES, self.count})]

    def advice(self, plan: SettingsPlan) -> str:
        """What to choose on so many machines, in a sentence or two."""
        chosen = self.best(plan, self.count)
        limit = chosen.iteration.limit
        gain = _gain(self.best(plan, 1), chosen)
        return (
            f"On {self.count:,} machines: {chosen.proposal.label()}, {duration(chosen.seconds)} to "
            f"the target, {gain}. {limit.capitalize()} gives out first: {ADVICE[limit]}."
        )

    def nothing_measured(self, plan: SettingsPlan) -> str:
        """Why there is no advice on machines."""
        why = f"no candidate is known to get to a gap of {plan.target:g}: give a larger --budget or --target"
        if plan.chosen.arrives:
            why = f"the start has a gap below {plan.target:g} already, so nothing is to be trained"
        return f"No advice on {self.count:,} machines: {why}."


def measured(plan: SettingsPlan) -> bool:
    """Whether there is a time per iteration to place on machines: some pilot took iterations and
    gets to the target."""
    return any(_timed(one) for one in plan.proposals)


def machines_table(bests: list[PlacedProposal]) -> ScreenTable:
    """The best candidate on each number of machines, its time, and the resource that gives out
    first."""
    titles = ["machines", "method", "to the target", "iteration", "gives out first", "memory each"]
    rows = [best.cells() for best in bests]
    return ScreenTable(titles, rows, words=["method", "gives out first"])


def _timed(proposal: Proposal) -> bool:
    return proposal.arrives and proposal.forecast.iterations > 0


def _limit_with_share(one: Prediction) -> str:
    """The resource that gives out first; one that takes time, with its share of an iteration."""
    if not one.fits:
        return one.limit

    share = 1.0
    if one.seconds:
        share = one.parts[one.limit] / one.seconds
    return f"{one.limit} ({share:.0%})"


def _gain(alone: PlacedProposal, chosen: PlacedProposal) -> str:
    """How the choice compares with the best on one machine."""
    if not alone.iteration.fits:
        return "where one machine has too little memory"

    faster = math.inf
    if chosen.seconds > 0:
        faster = alone.seconds / chosen.seconds
    if faster > FASTER:
        return f"{faster:.3g} times as fast as on one"
    return "no faster than on one"
