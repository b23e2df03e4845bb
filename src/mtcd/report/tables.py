"""Results as a table: what each curve took to reach the target."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape
from rich.table import Table

from mtcd.report.numbers import Entry, amounts, entries
from mtcd.report.styles import scientific
from mtcd.reproduce.results import Results, Spread

WORDS = ("case", "curve")  # may wrap; the other columns are numbers, and must not


def results_table(results: Results) -> Table:
    """One row per case and curve, for the screen. A single case needs no column."""
    target = results.experiment.target
    title = f"{escape(results.name)}: iterations and cost to a gap of {target:g}, means over seeds"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, header_style="bold", pad_edge=False)
    first = 0 if len(results.case_names()) > 1 else 1
    for heading in headings(results, [target])[first:]:
        words = heading in WORDS
        table.add_column(heading, justify="left" if words else "right", no_wrap=not words, overflow="fold")
    before = None
    for entry in entries(results):
        case, *rest = cells(results, entry, [target])
        row = ["" if entry.case == before else case, *rest]
        table.add_row(*map(escape, row[first:]))
        before = entry.case
    return table


def headings(results: Results, targets: Sequence[float]) -> list[str]:
    """The titles of the columns, what it takes to reach each of these gaps among them."""
    several = len(targets) > 1
    found = [f"{name} to {target:g}" if several else name for target in targets for name in amounts(results)]
    return [*WORDS, "step size", *found, "final gap", "seconds"]


def cells(results: Results, entry: Entry, targets: Sequence[float]) -> list[str]:
    """One row, as text."""
    curve = entry.result
    found = []
    for target in targets:
        spreads = [curve.reach(target, *axis) for axis in amounts(results).values()]
        found += [_mean(spreads[0]) + _seeds(spreads[0]), *map(_mean, spreads[1:])]
    ends = (f"{curve.final_gap:.1e}", f"{curve.seconds:.1f}")
    return [entry.title, curve.label, scientific(curve.stepsize), *found, *ends]


def _mean(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"{spread.mean:,.0f}" if spread.mean >= 100 else f"{spread.mean:.3g}"


def _seeds(spread: Spread | None) -> str:
    return f" ({spread.reached} of {spread.seeds})" if spread and not spread.everywhere else ""


def span(seconds: float) -> str:
    """A time as people say it.

    >>> span(4.21), span(75), span(7500)
    ('4.2 s', '1 min 15 s', '2 h 5 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
