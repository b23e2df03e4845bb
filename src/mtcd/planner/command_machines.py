"""mtcd plan --machines: what the candidates of a plan would take on many machines."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mtcd.config.build import Setup
from mtcd.core.terminal.table import ScreenTable
from mtcd.models.glm.config import linear_parts
from mtcd.planner.planning import SettingsPlan
from mtcd.planner.proposal import Proposal
from mtcd.planner.scaling import Machine, Prediction, Work, predict

SIZES = (1, 10, 100, 1000)
ADVICE = {
    "compute": "more machines, cores or tokens help; fewer local updates make an iteration shorter",
    "latency": "let each machine host more neighbouring clients, or take more local updates per visit",
    "link bandwidth": "use transport: float32, mini-batches, or more local updates per visit",
    "server link": "sync less often (more hops), use fewer tokens, or a method without a server",
    "memory": "use more machines, or machines with more memory",
}


def work_of(setup: Setup) -> Work:
    """The problem of a config, to be placed on machines."""
    data, model = linear_parts(setup)
    problem = model.problem(data)
    size = sum(int(getattr(block, "nbytes", 0) or block.data.nbytes) for block in problem.blocks)
    return Work(setup.network, problem.samples, problem.outputs, setup.config.seed, size)


def measured(plan: SettingsPlan) -> bool:
    """Whether there is a time per iteration to place on machines: some pilot took iterations and
    gets to the target."""
    return any(_known(one) for one in plan.proposals)


def _known(proposal: Proposal) -> bool:
    return proposal.arrives and proposal.forecast.iterations > 0


def nothing_measured(plan: SettingsPlan, machines: int) -> str:
    """Why there is no advice on machines."""
    if plan.chosen.arrives:
        why = f"the start has a gap below {plan.target:g} already, so nothing is to be trained"
    else:
        why = f"no candidate is known to get to a gap of {plan.target:g}: give a larger --budget or --target"
    return f"No advice on {machines:,} machines: {why}."


def predictions(
    found: Proposal, work: Work, machine: Machine, counts: Sequence[int]
) -> list[Prediction]:
    """Of one candidate, on so many machines each."""
    compute = found.compute_seconds / found.forecast.iterations if _known(found) else 0.0
    return [predict(found.method, compute, work, machine, count) for count in counts]


def best_on(
    plan: SettingsPlan, work: Work, machine: Machine, machines: int
) -> tuple[Proposal, Prediction]:
    """The candidate that reaches the target first on so many machines, of those whose time is
    known."""
    arriving = [one for one in plan.proposals if _known(one)]
    known = [(one, predictions(one, work, machine, [machines])[0]) for one in arriving]
    return min(known, key=lambda pair: (not pair[1].fits, total(*pair)))


def total(proposal: Proposal, one: Prediction) -> float:
    """Seconds to the target."""
    return one.seconds * proposal.forecast.iterations if proposal.arrives else math.inf


def seconds_on(proposal: Proposal, work: Work, machine: Machine, machines: int) -> float:
    """Seconds to the target of one candidate."""
    return total(proposal, predictions(proposal, work, machine, [machines])[0])


def machines_table(
    plan: SettingsPlan, work: Work, machine: Machine, machines: int
) -> tuple[ScreenTable, list[dict[str, Any]]]:
    """The best candidate on each number of machines, its time, and the resource that gives out
    first."""
    rows, plain = [], []
    for count in sorted({*SIZES, machines}):
        proposal, one = best_on(plan, work, machine, count)
        seconds = total(proposal, one)
        share = (
            one.parts[one.limit] / one.seconds if one.limit in one.parts and one.seconds else 1.0
        )
        rows.append(
            [
                f"{count:,}",
                proposal.label(),
                _time(seconds),
                _time(one.seconds),
                f"{one.limit} ({share:.0%})" if one.fits else "memory",
                f"{one.memory_gb:.2g} GB",
            ]
        )
        plain.append(
            {
                "machines": count,
                "method": proposal.label(),
                "seconds": seconds if math.isfinite(seconds) else None,
                "seconds_per_iteration": one.seconds,
                "parts": one.parts,
                "limit": one.limit,
                "memory_gb": one.memory_gb,
                "fits": one.fits,
            }
        )
    titles = ["machines", "method", "to the target", "iteration", "gives out first", "memory each"]
    return ScreenTable(titles, rows, words=["method", "gives out first"]), plain


def advice(plan: SettingsPlan, work: Work, machine: Machine, machines: int) -> str:
    """What to choose on so many machines, in a sentence or two."""
    proposal, one = best_on(plan, work, machine, machines)
    _, alone = best_on(plan, work, machine, 1)
    first, then = total(*best_on(plan, work, machine, 1)), total(proposal, one)
    faster = first / then if then > 0 else math.inf
    gain = f"{faster:.3g} times as fast as on one" if faster > 1.05 else "no faster than on one"
    if not alone.fits:
        gain = "where one machine has too little memory"
    return (
        f"On {machines:,} machines: {proposal.label()}, {_time(then)} to the target, {gain}. "
        f"{one.limit.capitalize()} gives out first: {ADVICE[one.limit]}."
    )


def _time(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "-"
    return f"{seconds:,.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"
