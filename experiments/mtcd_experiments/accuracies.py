"""Tables of accuracy: after each quarter of the epochs and at the end, with the cost."""

from __future__ import annotations

from typing import Any

from mtcd.plots.styles import scientific
from mtcd_experiments.accuracy import (
    accuracy_after,
    accuracy_at_end,
    cost_at_end,
    quarters,
    share_of_baseline,
)
from mtcd_experiments.numbers import (
    CurveEntry,
    column_name,
    mean_cost,
    shown_costs,
    some_seeds,
    spread_columns,
)
from mtcd_experiments.reading import percent
from mtcd_experiments.results import Results, Spread

CAPTION = (
    "Test accuracy on the way and at the end, and communication cost, as means over the seeds:"
)


def accuracy_headings(results: Results, brief: bool = False) -> list[str]:
    """The titles of the columns, in few letters for the screen."""
    way = [f"{epoch}" if brief else f"after {epoch} epochs" for epoch in quarters(results)]
    titles = ["step size", *way, "end" if brief else "at the end"]
    for name, (axis, _) in shown_costs(results).items():
        titles += [name, "of SVFL's" if brief else f"{axis.replace('-', ' ')} per epoch, of SVFL's"]
        if target := results.experiment.target_accuracy:
            titles.append(f"to {target:.3g}" if brief else f"{name} to an accuracy of {target:.3g}")
    return [*titles, "seconds"]


def accuracy_cells(results: Results, entry: CurveEntry) -> list[str]:
    """One row, as text."""
    curve = entry.result
    way = [accuracy_after(curve, epoch) for epoch in quarters(results)]
    row = [scientific(curve.stepsize), *map(_accuracy, [*way, accuracy_at_end(curve)])]
    for axis, ratio in shown_costs(results).values():
        share = share_of_baseline(results, entry.case, entry.curve, ratio, axis)
        row.append(mean_cost(cost_at_end(curve, ratio, axis)))
        row.append("-" if share is None else percent(share))
        if target := results.experiment.target_accuracy:
            there = curve.reach(target, axis, ratio)
            row.append(mean_cost(there) + some_seeds(there))
    return [*row, f"{curve.seconds:.1f}"]


def accuracy_summary(results: Results, entry: CurveEntry) -> dict[str, Any]:
    """One row of the CSV."""
    curve, target = entry.result, results.experiment.target_accuracy
    row = {
        "case": entry.case,
        "curve": entry.curve,
        "label": curve.label,
        "stepsize": curve.stepsize,
        "seeds": len(curve.trained),
        "epochs": min(float(one.columns["epoch"][-1]) for one in curve.trained),
    }
    for epoch in quarters(results):
        row |= spread_columns(f"accuracy_after_{epoch}", accuracy_after(curve, epoch))
    row |= spread_columns("accuracy", accuracy_at_end(curve))
    for name, (axis, ratio) in shown_costs(results).items():
        row |= spread_columns(column_name(name), cost_at_end(curve, ratio, axis))
        share = share_of_baseline(results, entry.case, entry.curve, ratio, axis)
        per = "" if axis == "cost" else "float_"
        row[f"{per}share_of_svfl_R{ratio:g}"] = "" if share is None else share
        if target:
            there = curve.reach(target, axis, ratio)
            row[f"reached_{target:g}"] = there.reached if there else 0
            row |= spread_columns(f"{column_name(name)}_to_{target:g}", there)
    return row | {"status": curve.status, "seconds": round(curve.seconds, 3)}


def _accuracy(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return percent(spread.mean) + some_seeds(spread)
