"""The amounts (iterations, cost) to reach the target, from the results of a figure, and their
comparisons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mtcd_experiments.results import COST_AXES, CurveResult, Results
from mtcd_experiments.schema import Measure

Verdict = Literal["yes", "no", "in part", "open"]
Outcome = bool | None
"""The outcome of a comparison; None where it could not be decided."""

# closer than this is about the same
NOTABLE = 1.05


class NotThereError(Exception):
    """The results have no such case or curve."""


@dataclass(frozen=True)
class Amount:
    """Iterations, cost or syncs to the target, on average over seeds.

    Where some seed did not get there, all that is known is that it takes more than ``value``: what
    was spent.
    """

    value: float
    reached: int
    seeds: int
    end: float
    """The largest gap at the end, over seeds; or the least accuracy."""
    measure: Measure = "gap"

    @property
    def exact(self) -> bool:
        """Whether every seed got there."""
        return self.reached == self.seeds

    def per(self, divisor: float) -> Amount:
        """The amount in other units."""
        return replace(self, value=self.value / divisor)

    def __str__(self) -> str:
        if self.exact:
            return number(self.value)
        few, end = "", f"gap {self.end:.0e}"
        if self.reached:
            few = f", {self.reached} of {self.seeds} seeds"
        if self.measure == "accuracy":
            end = percent(self.end)
        return f"more than {number(self.value)} ({end} there{few})"


def less(ours: Amount, theirs: Amount) -> Outcome:
    """Whether ours is notably less. One that did not get there can only be known to be more."""
    if ours.exact and ours.value * NOTABLE <= theirs.value:
        return True
    if theirs.exact and theirs.value * NOTABLE <= ours.value:
        return False
    return None


def gain(amounts: Sequence[Amount]) -> tuple[float, int] | None:
    """By which factor the least of the later ones is below the first, at least, and which that
    is."""
    later = {i: amount for i, amount in enumerate(amounts) if i and amount.exact}
    if not later:
        return None
    least = min(later, key=lambda i: later[i].value)
    return amounts[0].value / later[least].value, least


def helps(amounts: Sequence[Amount]) -> Outcome:
    """Whether some later one is notably less than the first."""
    outcomes = [less(later, amounts[0]) for later in amounts[1:]]
    if any(outcomes):
        return True
    if not amounts[0].exact:
        return None
    for one, later in zip(outcomes, amounts[1:], strict=True):
        if one is None and not later.exact:  # none is less, but this one might be
            return None
    return False


def verdict(outcomes: Sequence[Outcome]) -> Verdict:
    """Over several comparisons: 'yes' and 'no' only where all say so."""
    decided = {one for one in outcomes if one is not None}
    if not decided:
        return "open"
    if decided == {True} and None not in outcomes:
        return "yes"
    if decided == {False} and None not in outcomes:
        return "no"
    return "in part"


def opposite(outcomes: Sequence[Outcome]) -> list[Outcome]:
    """The negated outcomes; undecided ones stay undecided."""
    negated: dict[Outcome, Outcome] = {True: False, False: True, None: None}
    return [negated[one] for one in outcomes]


def number(value: float) -> str:
    """Three figures, with thousands apart."""
    if abs(value) < 100:
        return f"{value:.3g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    return f"{round(value, digits):,.0f}"


def percent(share: float) -> str:
    """An accuracy, or another share of a whole.

    >>> percent(0.8125), percent(1)
    ('81.2%', '100.0%')
    """
    return f"{share:.1%}"


@dataclass(frozen=True, eq=False)
class FigureReader:
    """Reads the results of one figure, and compares its curves."""

    results: Results

    def curve(self, case: str, curve: str) -> CurveResult:
        """All seeds of a curve in a case."""
        if (case, curve) not in self.results.curves:
            raise NotThereError(f"{case}, {curve}")
        return self.results.curves[case, curve]

    def cases(self, *curves: str) -> list[str]:
        """The cases that were run, all of which must show these curves."""
        names = self.results.case_names()
        for case in names:
            for curve in curves:
                self.curve(case, curve)
        return names

    def amount(
        self,
        case: str,
        curve: str,
        x: str = "iterations",
        ratio: float | None = None,
        target: float | None = None,
    ) -> Amount:
        """What the curve took to reach the target, the experiment's unless given."""
        made = self.curve(case, curve)
        trained, x = made.trained, self.results.axis(x)
        target = target or self.results.experiment.target
        if ratio is None:
            ratio = self.results.ratio

        reached, values = 0, []
        for one in trained:
            there = one.reach(target, x, ratio)
            if there is None:  # it takes more than was spent
                values.append(float(one.along(x, ratio)[-1]))
            else:
                values.append(there)
                reached += 1
        if made.measure == "gap":
            end = max(float(one.columns["gap"][-1]) for one in trained)
        else:
            end = min(float(one.columns["test_accuracy"][-1]) for one in trained)
        return Amount(sum(values) / len(values), reached, len(trained), end, made.measure)

    def unit(self, x: str) -> str:
        """The counted quantity and the target gap."""
        x = self.results.axis(x)
        at = ""
        if x in COST_AXES.values():
            at = f" (R_C = {self.results.ratio:g})"
        words = {
            "messages": "messages between clients",
            "floats": "numbers sent",
            "float-cost": "cost per float",
        }
        what = words.get(x, x)
        return f"{what} to {self.results.experiment.target:g}{at}"

    def title(self, case: str) -> str:
        """How the figure calls a case."""
        return self.results.experiment.cases[case].title

    def label(self, curve: str) -> str:
        """How the figure calls a curve."""
        if curve not in self.results.experiment.curves:
            raise NotThereError(curve)
        return self.results.experiment.curves[curve].label
