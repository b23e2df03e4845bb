"""Checks of claims about accuracy: per epoch, and per communication cost."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd_experiments.accuracy import (
    accuracy_after,
    accuracy_at_end,
    best_of_all,
    cost_per_epoch,
    quarters,
)
from mtcd_experiments.checks import Check
from mtcd_experiments.reading import (
    NOTABLE,
    FigureReader,
    NotThereError,
    Outcome,
    Verdict,
    less,
    number,
    percent,
    verdict,
)
from mtcd_experiments.results import COST_AXES, CurveResult

CLOSE = 0.02  # accuracies that differ by less are about the same
LEARNT = 0.05  # a curve that has not risen by this much has shown nothing yet


def as_accurate_per_epoch(ours: Sequence[str], theirs: str) -> Check:
    """At each quarter of the epochs, each of ours is at most a little less accurate than theirs."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, outcomes = [], []
        for case in read.cases(theirs, *ours):
            other = read.curve(case, theirs)
            for name in ours:
                mine = read.curve(case, name)
                findings.append(
                    f"{read.label(name)} {_way(read, mine)} against {_way(read, other)}"
                )
                pairs = list(zip(_accuracies(read, mine), _accuracies(read, other), strict=True))
                if _has_learnt(other):
                    outcomes += [_close(a, b) for a, b in pairs]
                else:  # a curve that has learnt nothing is no measure of another
                    outcomes += [None] * len(pairs)
        epochs = ", ".join(map(str, quarters(read.results)))
        return (
            f"test accuracy after {epochs} epochs and at the end: {'; and '.join(findings)}",
            verdict(outcomes),
        )

    return check


def cheaper_per_epoch(ours: Sequence[str], theirs: str) -> Check:
    """An epoch of each of ours costs less communication than one of theirs, per message and per
    float."""

    def check(read: FigureReader) -> tuple[str, Verdict]:
        findings, outcomes = [], []
        for per, axis in COST_AXES.items():
            parts = []
            for case in read.cases(theirs, *ours):
                other = cost_per_epoch(read.curve(case, theirs), read.results.ratio, axis)
                for name in ours:
                    mine = cost_per_epoch(read.curve(case, name), read.results.ratio, axis)
                    if mine is None or not other:
                        raise NotThereError(f"{case}, {name}")
                    share = f"{percent(mine / other)} of it"
                    parts.append(
                        f"{read.label(name)} {number(mine)} against {number(other)}, {share}"
                    )
                    outcomes.append(mine * NOTABLE <= other)
            findings.append(f"per {per}: {'; '.join(parts)}")
        return f"cost per epoch (R_C = {read.results.ratio:g}), {'; and '.join(findings)}", verdict(
            outcomes
        )

    return check


def cheaper_to_accuracy(ours: Sequence[str], theirs: str) -> Check:
    """Each of ours reaches an accuracy at less cost, per message and per float: the figure's
    target, or else the most that all curves reached.
    """

    def check(read: FigureReader) -> tuple[str, Verdict]:
        level = read.results.experiment.target_accuracy or best_of_all(read.results)
        findings = []
        outcomes: list[Outcome] = []
        for per, axis in COST_AXES.items():
            parts = []
            for case in read.cases(theirs, *ours):
                other = read.amount(case, theirs, axis, target=level)
                for name in ours:
                    mine = read.amount(case, name, axis, target=level)
                    parts.append(f"{read.label(name)} {mine} against {other}")
                    outcome: Outcome = None
                    if _has_learnt(read.curve(case, theirs)):
                        outcome = less(mine, other)
                    outcomes.append(outcome)
            findings.append(f"per {per}: {'; '.join(parts)}")
        chosen = ""
        if not read.results.experiment.target_accuracy:
            chosen = ", the most that all reached"
        to = f"cost to {percent(level)}{chosen} (R_C = {read.results.ratio:g})"
        return f"{to}, {'; and '.join(findings)}", verdict(outcomes)

    return check


def _accuracies(read: FigureReader, curve: CurveResult) -> list[float | None]:
    """At each quarter, as far as it came, and at the end."""
    accuracies: list[float | None] = []
    for epoch in quarters(read.results):
        found, mean = accuracy_after(curve, epoch), None
        if found and found.everywhere:
            mean = found.mean
        accuracies.append(mean)

    return [*accuracies, accuracy_at_end(curve).mean]


def _way(read: FigureReader, curve: CurveResult) -> str:
    """The accuracies on the way, as text."""
    said = []
    for one in _accuracies(read, curve):
        if one is None:
            said.append("not there")
        else:
            said.append(percent(one))
    return " → ".join(said)


def _close(ours: float | None, theirs: float | None) -> Outcome:
    """Whether ours is at most a little behind; one that never came so far is, if the other did."""
    if theirs is None:
        return None
    return ours is not None and ours >= theirs - CLOSE


def _has_learnt(curve: CurveResult) -> bool:
    first = sum(float(one.columns["test_accuracy"][0]) for one in curve.trained) / len(
        curve.trained
    )
    return accuracy_at_end(curve).mean >= first + LEARNT
