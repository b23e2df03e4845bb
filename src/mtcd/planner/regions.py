"""The picture of a plan: predicted cost against R_C, and where each family of methods is the
cheapest."""

from __future__ import annotations

import io
import math
from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mtcd.core.arrays import Array
from mtcd.planner.forecast import ROUGH
from mtcd.planner.planning import SettingsPlan
from mtcd.planner.proposal import Proposal
from mtcd.plots.styles import COLOURS, DASHES

RATIOS = np.logspace(-1, 4, 251)
# the same colour for a family in every picture
LOOKS = {
    kind: (COLOURS[i], DASHES[i])
    for i, kind in enumerate(("svfl", "stcd", "mtcd", "dcpa", "tree-cg"))
}
NAMES = {
    "svfl": "SVFL, client-server",
    "stcd": "STCD, one token",
    "mtcd": "MTCD, tokens and server",
    "dcpa": "DCPA",
    "tree-cg": "Conjugate gradients on a tree",
}
HEADROOM = 0.12  # of the height, for the names of the regions
LEAST_SHARE = 0.06  # of the width, that a region must have to be named


def regions_png(plan: SettingsPlan) -> bytes:
    """The picture, as a PNG file."""
    # no pyplot: it keeps figures, and may look for a screen
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.subplots()
    lines = family_costs(plan)
    _shade(axes, lines)
    for kind, costs in lines.items():
        colour, dash = LOOKS[kind]
        axes.plot(RATIOS, costs, color=colour, linestyle=dash, linewidth=2.2, label=NAMES[kind])

    _mark(axes, plan)

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(RATIOS[0], RATIOS[-1])
    bottom, top = axes.get_ylim()
    # room above the curves, in which the regions have their names
    axes.set_ylim(bottom, top * (top / bottom) ** HEADROOM)

    axes.set_xlabel(
        f"$R_C$: a client-server {plan.costs.per} costs as much as so many between clients"
    )
    axes.set_ylabel(f"predicted cost{plan.per_unit} to a gap of {plan.target:g}")
    axes.set_title("The cheapest of each family; the background shows which one wins", fontsize=10)
    axes.grid(alpha=0.25)
    if lines:
        figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    else:
        note = "no cost to show: nothing is sent, or nothing was seen to reach the target"
        axes.text(0.5, 0.5, note, transform=axes.transAxes, ha="center", va="center")

    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    return picture.getvalue()


def family_costs(plan: SettingsPlan) -> dict[str, Array]:
    """For each family, the least cost of its candidates at each R_C; families that never arrive
    have no line."""
    lines = {}
    for kind in LOOKS:
        family = [proposal for proposal in plan.proposals if proposal.method.kind == kind]
        costs = [_cost_line(proposal) for proposal in _credible(family)]
        if costs and np.max(costs) > 0:  # one client alone talks to nobody
            lines[kind] = np.min(costs, axis=0)
    return lines


def _credible(proposals: list[Proposal]) -> list[Proposal]:
    """Those that reach the target, without rough forecasts where there are better ones: of many
    candidates the least rough one would look like the best."""
    arriving = [proposal for proposal in proposals if proposal.arrives]
    known = [proposal for proposal in arriving if proposal.forecast.sure != ROUGH]
    return known or arriving


def _cost_line(proposal: Proposal) -> list[float]:
    return [proposal.cost_at(ratio) for ratio in RATIOS]


def winners(lines: dict[str, Array]) -> list[tuple[str, float, float]]:
    """The regions from left to right: the cheapest curve, and its range of R_C."""
    if not lines:
        return []
    kinds = list(lines)
    best = np.argmin(np.stack(list(lines.values())), axis=0)
    # a region ends half way to the next R_C, on the logarithmic axis, so that none overlap
    edges = [RATIOS[0], *np.sqrt(RATIOS[1:] * RATIOS[:-1]), RATIOS[-1]]
    regions = []
    for winner, places in groupby(range(len(RATIOS)), key=lambda i: int(best[i])):
        inside = list(places)
        regions.append((kinds[winner], float(edges[inside[0]]), float(edges[inside[-1] + 1])))
    return regions


def _shade(axes: Axes, lines: dict[str, Array]) -> None:
    for kind, start, end in winners(lines):
        axes.axvspan(start, end, color=LOOKS[kind][0], alpha=0.10, linewidth=0)
        share = math.log(end / start) / math.log(RATIOS[-1] / RATIOS[0])
        # in a narrow region, a name would lie over its neighbours
        if share >= LEAST_SHARE:
            middle = math.sqrt(start * end)
            axes.text(
                middle,
                0.975,
                kind.upper(),
                transform=axes.get_xaxis_transform(),
                color=LOOKS[kind][0],
                ha="center",
                va="top",
                fontsize=10,
                fontweight="bold",
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 2.0},
                zorder=6,
            )


def _mark(axes: Axes, plan: SettingsPlan) -> None:
    """The R_C asked for, and the one that was chosen."""
    ratio, cost = plan.costs.ratio, plan.chosen.cost_at(plan.costs.ratio)
    axes.axvline(ratio, color="#7F7F7F", linewidth=1.0, linestyle=(0, (2, 2)))
    if plan.chosen.arrives and cost > 0:  # a cost of 0 has no place on a logarithmic axis
        label = f"proposed, at $R_C$ = {ratio:g}"
        if plan.by_time:
            label = f"proposed for the wall-clock, at $R_C$ = {ratio:g}"
        axes.plot(
            [ratio],
            [cost],
            "o",
            color="black",
            markersize=7,
            markeredgecolor="white",
            zorder=5,
            label=label,
        )
