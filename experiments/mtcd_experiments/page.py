"""The page of all figures: claims of the paper and measured numbers, then figure by figure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from mtcd.core.files import write_whole
from mtcd.core.terminal.text import span
from mtcd.plots.styles import scientific
from mtcd_experiments.claims import Claim
from mtcd_experiments.numbers import entries, grid
from mtcd_experiments.read import ALL, FIGURES
from mtcd_experiments.results import Results
from mtcd_experiments.tables import caption, cells, headings

QUICK = "**Quick version: smaller than the paper's.**"


def write_page(
    results: Mapping[str, Results],
    claims: Sequence[Claim],
    page: Path,
    figures: Path,
    missing: Mapping[str, str],
) -> None:
    """Write the page as Markdown. ``figures`` is the folder of the pictures; ``missing``: those not
    made, and why."""
    folder = Path(os.path.relpath(figures.resolve(), page.resolve().parent)).as_posix()
    paper = set(results) <= set(FIGURES)
    heading = "Experiments of our own"
    if paper:
        heading = "The paper's figures, made again"
    parts = [
        f"# {heading}",
        _introduction(results, missing, paper),
        *_claims(claims, results, paper),
    ]
    for result in results.values():
        parts += _figure(result, quote(folder))
    if missing:
        parts += [
            "## Not made",
            "\n".join(f"- {name}: {_flat(why)}" for name, why in missing.items()),
        ]
    write_whole(page, "\n\n".join(part for part in parts if part) + "\n")


def _introduction(results: Mapping[str, Results], missing: Mapping[str, str], paper: bool) -> str:
    quick = any(result.quick for result in results.values())
    seeds = sorted({result.seeds for result in results.values()})
    usual = quick or all(result.seeds == result.experiment.seeds for result in results.values())
    figures = ALL
    if len(results) + len(missing) == 1:
        figures = next(iter(results), ALL)
    command = f"mtcd reproduce {figures}"
    if quick:
        command += " --quick"
    if not usual:
        command += f" --seeds {seeds[0]}"

    counted = ""
    if seeds == [1]:
        counted = " over 1 seed"
    elif seeds:
        counted = f" over {' or '.join(map(str, seeds))} seeds"

    training, trials = 0.0, 0.0
    for result in results.values():
        for entry in entries(result):
            training += entry.result.seconds
            trials += entry.result.trial_seconds
    trying = ""
    if trials:
        trying = f" and trying out step sizes {span(trials)} of processor time"

    what = "Run"
    if paper:
        what = (
            "The experiments of [the paper](https://arxiv.org/abs/2309.09977), run with this "
            "library"
        )
    if quick:
        what = f"{QUICK} {what}"

    return (
        f"{what}{counted}. `{command}` makes this page again, with all its pictures and numbers. "
        f"Training took {span(training)}{trying}, all curves and seeds added up."
    )


def _claims(claims: Sequence[Claim], results: Mapping[str, Results], paper: bool) -> list[str]:
    if not claims:
        return []

    rows = []
    for claim in claims:
        section = _to_section(claim.figure, results)
        rows.append((claim.says, claim.measured, claim.holds, section))

    says = "## In short"
    if paper:
        says = "## What the paper says, and what was measured"
    return [says, _table(["claim", "measured", "holds?", "figure"], rows)]


def _to_section(name: str, results: Mapping[str, Results]) -> str:
    """The name of a figure, as a link where the page has it."""
    if name not in results:
        return name
    return f"[{name}](#{name})"


def _figure(result: Results, folder: str) -> list[str]:
    """The section of one figure."""
    experiment = result.experiment
    place = f"{folder}/{quote(result.name)}"
    files = {"SVG": ".svg", "PDF": ".pdf"}
    if experiment.layout == "lines":
        files["lines (CSV)"] = ".csv"
    files["table (CSV)"] = "-table.csv"

    quick = ""
    if result.quick:
        quick = QUICK
    step_sizes = []
    tuned = _tuned(result)
    if tuned:
        step_sizes = ["Step sizes that were chosen from a grid:", tuned]
    return [
        f'<a id="{result.name}"></a>\n\n## {_flat(experiment.title)}',
        quick,
        f"![{_flat(experiment.title)}]({place}.png)",
        " · ".join(f"[{what}]({place}{ending})" for what, ending in files.items()),
        experiment.about.strip(),
        "\n".join(f"- {_flat(note)}" for note in dict.fromkeys(result.notes)),
        caption(result),
        _table(headings(result), [cells(result, entry) for entry in entries(result)]),
        *step_sizes,
    ]


def _tuned(result: Results) -> str:
    """The table of step sizes; empty if all were given."""
    rows = []
    for entry in entries(result):
        curve = entry.result
        if not curve.tuned:
            continue
        chosen = scientific(curve.stepsize)
        if curve.at_edge:  # a larger or smaller one might have been better
            chosen += " (edge of the grid)"
        rows.append((entry.title, curve.label, chosen, grid(curve)))

    if not rows:
        return ""
    return _table(["case", "curve", "chosen", "what each led to"], rows)


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(
        "| " + " | ".join(_flat(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def _flat(text: str) -> str:
    """One line, as headings and cells need it."""
    return " ".join(text.split())
