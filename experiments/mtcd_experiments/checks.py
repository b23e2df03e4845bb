"""Checks of claims: each compares curves of a figure, and returns the measured numbers and a
verdict."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence

from mtcd_experiments.reading import (
    Amount,
    FigureReader,
    Outcome,
    Verdict,
    gain,
    helps,
    less,
    opposite,
    verdict,
)

Check = Callable[[FigureReader], tuple[str, Verdict]]


def cheaper(winner: str, loser: str) -> Check:
    """In every case, the winner reaches the target at less cost."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, outcomes = _pairs(read, winner, loser, "cost")
        return findings + _exceptions(read.cases(), outcomes), verdict(outcomes)

    return check


def times_less(ours: str, theirs: Sequence[str], least: Mapping[str, float], x: str) -> Check:
    """In each case, ours needs so many times less of x than each of theirs, at least."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, names = [], []
        outcomes: list[Outcome] = []
        for case, factor in least.items():
            mine = read.amount(case, ours, x)
            for other in theirs:
                amount = read.amount(case, other, x)
                times = amount.value / mine.value
                more = ""
                if not amount.exact:
                    more = "more than "
                findings.append(
                    f"{read.title(case)}: {mine} against {amount}, {more}{times:.3g} times"
                )
                names.append(f"{read.title(case)}, {read.label(other)}")
                outcomes.append(_at_least(factor, mine, amount))

        said = f"{read.unit(x)}. {'; '.join(findings)}{_exceptions(names, outcomes)}"
        return said, verdict(outcomes)

    return check


def _at_least(factor: float, mine: Amount, other: Amount) -> Outcome:
    """Whether the other is so many times mine; None where a curve that did not get there leaves it
    open."""
    if mine.exact and other.value / mine.value >= factor:
        return True
    if mine.exact and other.exact:
        return False
    return None


def not_always_faster(ours: str, theirs: str) -> Check:
    """Per iteration, ours is behind in at least one case."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, outcomes = _pairs(read, ours, theirs, "iterations")
        behind = opposite(outcomes)
        if any(behind):  # one case is enough
            return findings, "yes"
        return findings, verdict(behind)

    return check


def _pairs(read: FigureReader, ours: str, theirs: str, x: str) -> tuple[str, list[Outcome]]:
    findings, outcomes = [], []
    for case in read.cases(ours, theirs):
        mine, other = read.amount(case, ours, x), read.amount(case, theirs, x)
        findings.append(f"{case} {mine} against {other}")
        outcomes.append(less(mine, other))
    return f"{read.unit(x)}: {'; '.join(findings)}", outcomes


def slower_along(cases: Sequence[str], curve: str) -> Check:
    """The curve needs more iterations in each case than in the one before."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        return _rises(read.unit("iterations"), {case: read.amount(case, curve) for case in cases})

    return check


def rises_along(case: str, curves: Sequence[str], x: str) -> Check:
    """In a case, each curve needs more of x than the one before."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        return _rises(
            read.unit(x), {read.label(curve): read.amount(case, curve, x) for curve in curves}
        )

    return check


def _rises(unit: str, amounts: Mapping[str, Amount]) -> tuple[str, Verdict]:
    outcomes = [less(before, after) for before, after in itertools.pairwise(amounts.values())]
    steps = [f"{before} → {after}" for before, after in itertools.pairwise(amounts)]
    return f"{unit}: {_listed(amounts)}{_exceptions(steps, outcomes)}", verdict(outcomes)


def slower_but_cheaper(case: str, curve: str, others: Sequence[str]) -> Check:
    """More iterations than all others, at less cost than all others."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        outcomes: list[Outcome] = []
        for other in others:
            outcomes.append(less(read.amount(case, other), read.amount(case, curve)))
            mine, theirs = read.amount(case, curve, "cost"), read.amount(case, other, "cost")
            outcomes.append(less(mine, theirs))

        findings = []
        for name in (curve, *others):
            iterations, cost = read.amount(case, name), read.amount(case, name, "cost")
            findings.append(f"{read.label(name)}: {iterations} iterations, cost {cost}")

        to = f"to {read.results.experiment.target:g} (R_C = {read.results.ratio:g})"
        return f"{to}: {'; '.join(findings)}", verdict(outcomes)

    return check


def best_changes(case: str, curves: Sequence[str]) -> Check:
    """Over the range of R_C, more than one curve is the cheapest."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        best = {}
        for ratio in read.results.experiment.ratios:
            best[ratio] = _cheapest(read, case, curves, ratio)

        findings = []
        for name, items in itertools.groupby(best.items(), lambda item: item[1]):
            if name is not None:
                ratios = [ratio for ratio, _ in items]
                findings.append(f"R_C {_span(ratios)}: {read.label(name)}")

        winners = {name for name in best.values() if name is not None}
        holds: Verdict = "open"
        if len(winners) == 1:
            holds = "no"
        elif winners:
            holds = "yes"

        return f"cheapest: {'; '.join(findings) or 'none gets there'}", holds

    return check


def middle_wins(
    case: str, middle: Sequence[str], ends: Sequence[str], ratios: Sequence[float]
) -> Check:
    """At each ratio, the cheapest of the middle is cheaper than all ends."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, won = [], []
        for ratio in ratios:
            amounts = {name: read.amount(case, name, "cost", ratio) for name in (*middle, *ends)}
            best = min(
                (amounts[name] for name in middle),
                key=lambda amount: (not amount.exact, amount.value),
            )
            won.append(_all([less(best, amounts[name]) for name in ends]))
            findings.append(
                f"R_C = {ratio:g}: "
                f"{_listed({read.label(name): found for name, found in amounts.items()})}"
            )
        cheapest = [_cheapest(read, case, (*middle, *ends), ratio) for ratio in ratios]
        names = ", ".join(dict.fromkeys(read.label(name) for name in cheapest if name))
        return (
            f"cost to {read.results.experiment.target:g}. {'; '.join(findings)}. **Cheapest: "
            f"{names or 'none'}**",
            verdict(won),
        )

    return check


def falls_along(
    curves: Sequence[str], x: str = "iterations", per: Sequence[float] | None = None
) -> Check:
    """In every case some later curve needs notably less of x than the first; says which needs
    least.

    ``per`` divides the amounts: hops per sync turn iterations into syncs.
    """

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, outcomes = _falls(read, curves, x, per)
        return findings, verdict(outcomes)

    return check


def does_not_fall_along(curves: Sequence[str], x: str = "iterations") -> Check:
    """In no case a later curve needs notably less of x than the first."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, outcomes = _falls(read, curves, x, None)
        return findings, verdict(opposite(outcomes))

    return check


def _falls(
    read: FigureReader, curves: Sequence[str], x: str, per: Sequence[float] | None
) -> tuple[str, list[Outcome]]:
    findings, outcomes = [], []
    for case in read.cases(*curves):
        amounts = []
        for curve, unit in zip(curves, per or [1.0] * len(curves), strict=True):
            amounts.append(read.amount(case, curve, x).per(unit))

        findings.append(
            f"{read.title(case)}: {' → '.join(map(str, amounts))}{_best(read, curves, amounts)}"
        )
        outcomes.append(helps(amounts))
    names = ", ".join(read.label(curve) for curve in curves)
    if per:
        x = "syncs"
    return f"{read.unit(x)} for {names}. {'; '.join(findings)}", outcomes


def gets_below(curve: str, share: float) -> Check:
    """In every case the gap falls below this share of what it was at the start."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, outcomes = [], []
        for case in read.cases(curve):
            gaps = [one.columns["gap"] for one in read.curve(case, curve).trained]
            first, last = max(gap[0] for gap in gaps), max(gap[-1] for gap in gaps)
            findings.append(f"{case} {first:.1e} to {last:.1e}")
            outcomes.append(all(gap[-1] <= share * gap[0] for gap in gaps))
        return f"gap from start to end: {', '.join(findings)}", verdict(outcomes)

    return check


def _cheapest(read: FigureReader, case: str, curves: Sequence[str], ratio: float) -> str | None:
    """The curve with the least cost to the target, of those that get there."""
    costs = {curve: read.amount(case, curve, "cost", ratio) for curve in curves}
    there = [curve for curve in curves if costs[curve].exact]
    return min(there, key=lambda curve: costs[curve].value, default=None)


def _all(outcomes: Sequence[Outcome]) -> Outcome:
    """Whether all hold: no, if one does not; open, if one is."""
    if False in outcomes:
        return False
    if None in outcomes:
        return None
    return True


def _exceptions(names: Sequence[str], outcomes: Sequence[Outcome]) -> str:
    """The cases in which the claim fails or is undecided, if it holds in some."""
    wrong = [name for name, one in zip(names, outcomes, strict=True) if one is False]
    open_ = [name for name, one in zip(names, outcomes, strict=True) if one is None]

    parts = []
    if wrong:
        parts.append(f"not so: {', '.join(wrong)}")
    if open_:
        parts.append(f"about the same or not decided: {', '.join(open_)}")

    if not parts or not any(outcomes):
        return ""
    return f". **{'; '.join(parts)}**"


def _best(read: FigureReader, curves: Sequence[str], amounts: Sequence[Amount]) -> str:
    found = gain(amounts)
    if found is None or found[0] <= 1:
        return ""
    factor, least = found
    more = ""
    if not amounts[0].exact:
        more = "more than "
    return f" (least: {read.label(curves[least])}, by {more}{factor:.2g} times)"


def _listed(amounts: Mapping[str, Amount]) -> str:
    return ", ".join(f"{name} {amount}" for name, amount in amounts.items())


def _span(ratios: Sequence[float]) -> str:
    if len(ratios) == 1:
        return f"{ratios[0]:g}"
    return f"{ratios[0]:g} to {ratios[-1]:g}"
