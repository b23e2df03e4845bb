"""Checks of claims: each reads iterations and costs to a gap off the results of a figure, and says what it saw."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mtcd.reproduce.results import Results

Verdict = Literal["yes", "no", "in part", "open"]
Measured = tuple[str, Verdict]

# a gain of less than this is none
NOTABLE = 1.1


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads iterations and costs to a gap off the results of one figure."""

    results: Results

    def to_target(self, case: str, curve: str, x: str = "iterations", ratio: float | None = None) -> float | None:
        """The mean over seeds; None where some seed did not get there."""
        found = self.results.curves[case, curve]
        spread = found.reach(self.results.experiment.target, x, self.results.ratio if ratio is None else ratio)
        return spread.mean if spread is not None and spread.everywhere else None

    def told(self, case: str, curve: str, x: str = "iterations", ratio: float | None = None) -> str:
        """The same in words: where it was not reached, how far it got."""
        value = self.to_target(case, curve, x, ratio)
        if value is not None:
            return number(value)
        trained = self.results.curves[case, curve].trained
        spent = max(float(one.along(x, self.results.ratio if ratio is None else ratio)[-1]) for one in trained)
        closest = min(float(one.columns["gap"][-1]) for one in trained)
        return f"not reached (gap {closest:.0e} at {number(spent)})"

    def unit(self, x: str) -> str:
        """What is counted, up to which gap."""
        at = f" (R_C = {self.results.ratio:g})" if x == "cost" else ""
        return f"{x} to {self.results.experiment.target:g}{at}"

    def title(self, case: str) -> str:
        """How the figure calls a case."""
        return self.results.experiment.cases[case].title

    def label(self, curve: str) -> str:
        """How the figure calls a curve."""
        return self.results.experiment.curves[curve].label

    def cheapest(self, case: str, curves: Sequence[str], ratio: float) -> str | None:
        """The curve with the least cost to the target."""
        costs = {curve: self.to_target(case, curve, "cost", ratio) for curve in curves}
        reached = {curve: cost for curve, cost in costs.items() if cost is not None}
        return min(reached, key=lambda curve: reached[curve]) if reached else None


Check = Callable[[Reader], Measured]


def cheaper(winner: str, loser: str, x: str = "cost") -> Check:
    """In every case, the winner reaches the target with less of x. One that never reaches it has lost."""

    def check(read: Reader) -> Measured:
        cases, won = read.results.case_names(), []
        for case in cases:
            won.append(_less(read.to_target(case, winner, x), read.to_target(case, loser, x)))
        pairs = [f"{case} {read.told(case, winner, x)} against {read.told(case, loser, x)}" for case in cases]
        return f"{read.unit(x)}: {'; '.join(pairs)}", verdict(won)

    return check


def not_always_faster(ours: str, theirs: str) -> Check:
    """Per iteration, ours is not ahead in all cases."""

    def check(read: Reader) -> Measured:
        measured, ahead = cheaper(ours, theirs, "iterations")(read)
        return measured, "open" if ahead == "open" else "no" if ahead == "yes" else "yes"

    return check


def slower_along(cases: Sequence[str], curve: str) -> Check:
    """The curve needs more iterations in each case than in the one before."""

    def check(read: Reader) -> Measured:
        values = [read.to_target(case, curve) for case in cases]
        told = ", ".join(f"{case} {read.told(case, curve)}" for case in cases)
        return f"{read.unit('iterations')}: {told}", verdict(_steps_up(values))

    return check


def rises_along(case: str, curves: Sequence[str], x: str) -> Check:
    """In a case, each curve needs more of x than the one before."""

    def check(read: Reader) -> Measured:
        values = [read.to_target(case, curve, x) for curve in curves]
        told = ", ".join(f"{read.label(curve)} {read.told(case, curve, x)}" for curve in curves)
        return f"{read.unit(x)}: {told}", verdict(_steps_up(values))

    return check


def slower_but_cheaper(case: str, curve: str, others: Sequence[str]) -> Check:
    """More iterations than all others, at less cost than all others."""

    def check(read: Reader) -> Measured:
        seen: list[bool | None] = []
        for other in others:
            seen.append(_less(read.to_target(case, other), read.to_target(case, curve)))
            seen.append(_less(read.to_target(case, curve, "cost"), read.to_target(case, other, "cost")))
        told = [
            f"{read.label(name)}: {read.told(case, name)} iterations, cost {read.told(case, name, 'cost')}"
            for name in (curve, *others)
        ]
        return "; ".join(told), verdict(seen)

    return check


def best_changes(case: str, curves: Sequence[str]) -> Check:
    """Over the range of R_C, more than one curve is the cheapest."""

    def check(read: Reader) -> Measured:
        best = {ratio: read.cheapest(case, curves, ratio) for ratio in read.results.experiment.ratios}
        told = [f"R_C {_span(ratios)}: {read.label(curve)}" for curve, ratios in _runs(best)]
        return f"cheapest: {'; '.join(told)}", "yes" if len(set(best.values())) > 1 else "no"

    return check


def middle_wins(case: str, middle: Sequence[str], ends: Sequence[str], ratios: Sequence[float]) -> Check:
    """At each ratio, the cheapest of the middle is cheaper than both ends."""

    def check(read: Reader) -> Measured:
        told, won = [], []
        for ratio in ratios:
            won.append(read.cheapest(case, (*middle, *ends), ratio) in middle)
            named = [f"{read.label(curve)} {read.told(case, curve, 'cost', ratio)}" for curve in (*middle, *ends)]
            told.append(f"R_C = {ratio:g}: {', '.join(named)}")
        return f"cost. {'; '.join(told)}", verdict(won)

    return check


def falls_along(curves: Sequence[str], x: str = "iterations", per: Sequence[float] | None = None) -> Check:
    """In every case some later curve needs notably less of x than the first; says which needs least.

    ``per`` divides the values: hops per sync turn iterations into syncs.
    """

    def check(read: Reader) -> Measured:
        told, gains = [], []
        for case in read.results.case_names():
            divisors = per or [1.0] * len(curves)
            values = [
                None if value is None else value / divisor
                for value, divisor in zip([read.to_target(case, curve, x) for curve in curves], divisors, strict=True)
            ]
            gains.append(_gain(values))
            numbers = " → ".join("not reached" if value is None else number(value) for value in values)
            told.append(f"{read.title(case)}: {numbers}{_best(read, curves, values)}")
        names = ", ".join(read.label(curve) for curve in curves)
        unit = read.unit("syncs" if per else x)
        return f"{unit} for {names}. {'; '.join(told)}", verdict(
            [None if gain is None else gain >= NOTABLE for gain in gains]
        )

    return check


def does_not_fall_along(curves: Sequence[str], x: str = "iterations") -> Check:
    """In no case a later curve needs notably less of x than the first."""

    def check(read: Reader) -> Measured:
        measured, falls = falls_along(curves, x)(read)
        opposite: dict[Verdict, Verdict] = {"yes": "no", "no": "yes", "in part": "in part", "open": "open"}
        return measured, opposite[falls]

    return check


def gets_below(curve: str, share: float) -> Check:
    """In every case the gap falls below this share of what it was at the start."""

    def check(read: Reader) -> Measured:
        told, seen = [], []
        for case in read.results.case_names():
            gaps = [one.columns["gap"] for one in read.results.curves[case, curve].trained]
            told.append(f"{case} {max(gap[0] for gap in gaps):.1e} to {max(gap[-1] for gap in gaps):.1e}")
            seen.append(all(gap[-1] <= share * gap[0] for gap in gaps))
        return f"gap from start to end: {', '.join(told)}", verdict(seen)

    return check


def verdict(seen: Sequence[bool | None]) -> Verdict:
    """Over several comparisons; None is one that could not be made."""
    if all(one is None for one in seen):
        return "open"
    return "yes" if all(seen) else "in part" if any(seen) else "no"


def number(value: float) -> str:
    """Three figures, with thousands apart."""
    if value == 0:
        return "0"
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _less(ours: float | None, theirs: float | None) -> bool | None:
    """Whether ours is less; one that was never reached is more than any number, and two such do not compare."""
    if ours is None or theirs is None:
        return None if ours is theirs else theirs is None
    return ours < theirs


def _steps_up(values: Sequence[float | None]) -> list[bool | None]:
    return [_less(before, after) for before, after in itertools.pairwise(values)]


def _gain(values: Sequence[float | None]) -> float | None:
    """The first value over the least later one; None where that cannot be told."""
    later = [value for value in values[1:] if value is not None]
    if not later:
        return None
    return math.inf if values[0] is None else values[0] / min(later)


def _best(read: Reader, curves: Sequence[str], values: Sequence[float | None]) -> str:
    gain = _gain(values)
    if gain is None or gain <= 1:
        return ""
    least = min(range(1, len(values)), key=lambda i: math.inf if values[i] is None else float(values[i] or 0))
    factor = "" if gain == math.inf else f", {gain:.2g} times less than the first"
    return f" (least: {read.label(curves[least])}{factor})"


def _runs(best: Mapping[float, str | None]) -> list[tuple[str, list[float]]]:
    """Neighbouring ratios with the same cheapest curve, together."""
    groups = itertools.groupby(best.items(), key=lambda item: item[1])
    return [(curve, [ratio for ratio, _ in items]) for curve, items in groups if curve is not None]


def _span(ratios: Sequence[float]) -> str:
    return f"{ratios[0]:g}" if len(ratios) == 1 else f"{ratios[0]:g} to {ratios[-1]:g}"
