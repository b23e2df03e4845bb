"""plan(): from a config to the settings that reach the target at the least cost, or in the least
time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

from mtcd.config.build import Setup, resolved_yaml
from mtcd.config.method_schema import method_section
from mtcd.config.schema import Config
from mtcd.config.stop_schema import StopSection
from mtcd.core.checks import check_number
from mtcd.core.errors import ConfigError, MtcdError, NetworkError
from mtcd.core.workers import Backend
from mtcd.methods.method import resolve_stepsize
from mtcd.methods.planned import planned
from mtcd.planner.budget import one_blas_thread
from mtcd.planner.candidates import Space
from mtcd.planner.halving import Watch, follow, race, ranked, reached
from mtcd.planner.hosted_pilots import Racing, hosting
from mtcd.planner.interfaces import sharing_notes
from mtcd.planner.links import Links
from mtcd.planner.pilots import Pilot, PlanTask
from mtcd.planner.proposal import Proposal
from mtcd.planner.refine import confirm, race_on, refine, second_chances
from mtcd.planner.screening import affordable, ordered
from mtcd.protocol.ledger.costs import Costs

TARGET = 1e-4
SCREEN = 0.2  # of the budget, for making candidates
LEAST = 0.25  # of the budget, for pilots, even if the candidates took all of it
# of what is left then: until when candidates race, their leader is taken to the target, and others
# get a second chance
RACE, CONFIRM, CHANCES = 0.5, 0.65, 0.8
FEWEST_PILOTS = 6


@dataclass(frozen=True, eq=False)
class SettingsPlan:
    """The proposed settings, the alternatives, and their expected costs. ``proposals`` are in
    order."""

    proposals: tuple[Proposal, ...]
    own: Proposal | None
    """The config's own method; None if it cannot work here."""
    target: float
    costs: Costs
    links: Links | None
    config: Config
    """The config to use."""
    notes: tuple[str, ...]
    seconds: float
    """CPU seconds of the plan, without the optimum and the start of workers."""
    optimum_seconds: float

    @property
    def chosen(self) -> Proposal:
        """The one to use."""
        return self.proposals[0]

    @property
    def by_time(self) -> bool:
        """Whether it is the wall-clock that is to be small, and not the cost."""
        return self.links is not None

    @property
    def per_unit(self) -> str:
        """What follows a cost in a sentence; nothing where whole messages are charged."""
        if self.costs.per == "message":
            return ""
        return f" per {self.costs.per}"

    @property
    def saving(self) -> float | None:
        """How many times less than the config's own method; None where one of them never gets
        there."""
        if self.own is None or not self.chosen.arrives or not self.own.arrives:
            return None
        ours, own = self.chosen.objective, self.own.objective
        if ours <= 0:
            return None
        return own / ours

    def yaml(self) -> str:
        """The config to use, as a file that trains as it is."""
        return resolved_yaml(self.config)

    def summary(self) -> dict[str, Any]:
        """Everything in plain values."""
        own = None
        if self.own is not None:
            own = self.own.summary()
        objective = "cost"
        if self.by_time:
            objective = "seconds"

        return {
            "target": self.target,
            "ratio": self.costs.ratio,
            "per": self.costs.per,
            "objective": objective,
            "chosen": self.chosen.summary(),
            "own": own,
            "saving": self.saving,
            "candidates": [proposal.summary() for proposal in self.proposals],
            "seconds": self.seconds,
            "optimum_seconds": self.optimum_seconds,
            "notes": list(self.notes),
        }


def plan(
    setup: Setup,
    *,
    target: float | None = None,
    budget: float = 60.0,
    ratio: float | None = None,
    links: Links | None = None,
    watch: Watch | None = None,
    prefer: Callable[[Proposal], float] | None = None,
    backend: Backend | None = None,
) -> SettingsPlan:
    """Propose a method and its settings for the data, the network and the link costs of a config.

    ``target`` is the relative gap to reach: the config's, or 1e-4. ``budget`` is in CPU seconds, of
    all workers together; f* is not counted. With ``links`` the wall-clock is to be small, otherwise
    the cost at ``ratio`` (the config's unless given). ``watch`` is called with what is going on and
    how far along it is. ``prefer`` orders the candidates that reach the target by another number,
    the least first. With a ``backend``, candidates race on workers, several at a time.
    """
    if target is None:
        target = setup.stop.gap or TARGET
    check_number("target", target, above=0)
    check_number("budget", budget, above=0)
    if ratio is not None and links is not None:
        raise ConfigError("ratio and links are two ways to say what counts: give one of them.")

    costs = setup.costs
    if ratio is not None:
        costs = replace(costs, ratio=ratio)

    # the budget is for pilots: neither f* nor the start of workers counts
    began = process_time()
    task = PlanTask.of(setup, target, costs, links)
    known = process_time()
    with hosting(backend, setup, task) as racing, one_blas_thread():
        ready = task.clock()
        pilots, notes = _pilots(setup, task, racing, ready, budget, watch)

    # two orders, both stable: cheapest first, then by how much of that was measured
    order = sorted(ranked(pilots), key=lambda pilot: pilot.cautious)

    if prefer is not None:
        order.sort(key=lambda pilot: (not pilot.forecast.arrives, prefer(Proposal.of(pilot))))
    proposals = tuple(Proposal.of(pilot) for pilot in order)
    own = next((proposal for proposal in proposals if proposal.own), None)
    config, changed = _config(setup, task, proposals[0], ratio)

    notes = (*setup.notes, *setup.data.notes, *notes, *changed)
    if links is not None:
        notes += sharing_notes(links, links.has_server)
    return SettingsPlan(
        proposals=proposals,
        own=own,
        target=target,
        costs=costs,
        links=links,
        config=config,
        notes=notes,
        seconds=task.clock() - ready,
        optimum_seconds=known - began,
    )


def _pilots(
    setup: Setup, task: PlanTask, racing: Racing, began: float, budget: float, watch: Watch | None
) -> tuple[list[Pilot], tuple[str, ...]]:
    """Screen, race, refine: all pilots that were run, the config's own first."""
    served = task.links is None or task.links.has_server
    own, notes = _own(setup, task, racing, served)
    resolved = resolve_stepsize(setup.method, task.smoothness)[0]
    space = Space(
        task.network,
        task.smoothness,
        resolved,
        task.problem.outputs,
        task.seed,
        served,
        bytes_count=task.links is not None,
    )
    clock = task.clock
    # on a large network, making all candidates would take longer than the budget
    methods = ordered(task, space.candidates(), began + SCREEN * budget, clock)

    now = clock()
    left = max(began + budget - now, LEAST * budget)
    # half of it is for what stays longer than the first rung
    most = max(FEWEST_PILOTS, affordable(task, RACE * left / 2))
    if len(methods) > most:
        notes += (f"Time for {most} of {len(methods)} candidates: a larger budget tries more.",)

    pilots = own + [racing.make(task, method, False) for method in methods[:most]]
    if not pilots:
        raise NetworkError(
            "No method can work here: connect the network, or give links of a server."
        )

    race(pilots, now + RACE * left, clock, watch, racing.advance)
    confirm(pilots, now + CONFIRM * left, clock)
    follow(pilots, now + CONFIRM * left, clock, racing.advance)
    if math.isinf(reached(pilots)):
        race_on(pilots, now + left, clock, watch, racing.advance)
    second_chances(pilots, now + CHANCES * left, clock)

    # refining stops at a new leader that is only forecast, so the end confirms it
    refine(task, space, pilots, now + left, watch)
    confirm(pilots, now + left, clock)
    return pilots, notes


def _own(
    setup: Setup, task: PlanTask, racing: Racing, served: bool
) -> tuple[list[Pilot], tuple[str, ...]]:
    """The config's own method, if it can work here; a note if not."""
    method, _ = resolve_stepsize(setup.method, task.smoothness)
    notes: tuple[str, ...] = ()
    # without links for the server, a method with one cannot even be simulated
    if served:
        try:
            # a trial: settings that do not fit the data or the network are refused here
            method.parties(task.problem, task.network, task.seed)
        except MtcdError as error:
            return [], (f"The config's own method cannot work here. {error}",)
    else:
        notes = ("The links have no server: only methods without one are considered.",)
        if method.has_server:
            return [], notes
    return [racing.make(task, method, True)], notes


def _config(
    setup: Setup, task: PlanTask, chosen: Proposal, ratio: float | None
) -> tuple[Config, tuple[str, ...]]:
    """The user's config with this method, and limits that let it reach the target."""
    stop = setup.config.stop.model_copy(update={"gap": task.target})
    epoch = chosen.method.timeline().epoch(task.problem.samples)
    enough, notes = _raised_limits(stop, chosen.forecast.latest, {"iterations": 1, "epochs": epoch})
    stop = stop.model_copy(update=enough)

    # money and time are the user's to give: these limits stay, with a note
    for name, value in (("cost", chosen.cost), ("seconds", chosen.compute_seconds)):
        limit = getattr(stop, name)
        if limit is not None and limit < value < math.inf:
            notes.append(f"stop.{name} is {limit:g}: training will end there, before the target.")

    update: dict[str, Any] = {"stop": stop}
    if planned(chosen.method).replaceable:  # otherwise it is the config's own
        update["method"] = method_section(chosen.method)
    if ratio is not None:
        update["costs"] = setup.config.costs.model_copy(update={"ratio": ratio})
    return setup.config.model_copy(update=update), tuple(notes)


def _raised_limits(
    stop: StopSection, need: float, lengths: dict[str, int]
) -> tuple[dict[str, int], list[str]]:
    """Limits of a training's length that are below twice the ``need`` iterations, raised to that;
    ``lengths`` are the iterations of one unit of each limit."""
    raised: dict[str, int] = {}
    notes: list[str] = []
    if math.isinf(need):
        return raised, notes

    for name, length in lengths.items():
        limit = getattr(stop, name)
        if limit is not None and limit * length < 2 * need:
            raised[name] = math.ceil(2 * need / length)
            notes.append(
                f"stop.{name} was {limit:,}, too few for this method: it is {raised[name]:,} now."
            )
    return raised, notes
