"""A run as HTML, for notebooks: a table without scripts or outside files, and its curve as SVG."""

from __future__ import annotations

from html import escape

import numpy as np

from mtcd.core.arrays import Array
from mtcd.training.history import History
from mtcd.training.run import Run

WIDTH, HEIGHT = 300, 90
STYLE = "text-align:left;vertical-align:top;padding:1px 12px 1px 0"


def run_html(run: Run) -> str:
    """Status, method, objective, gap, metrics, messages and cost of a run, and the curve of its gap
    or objective."""
    rows = "".join(
        f'<tr><th style="{STYLE}">{escape(name)}</th><td style="{STYLE}">{escape(value)}</td></tr>'
        for name, value in _facts(run).items()
    )
    return f"<div><table>{rows}</table>{curve_svg(run.history)}</div>"


def _facts(run: Run) -> dict[str, str]:
    last = run.final
    found = {"status": f"{run.status}: {run.message}", "method": run.method}
    if run.stepsize is not None:
        found["step size"] = f"{run.stepsize:.4g}"
    found["objective"] = f"{last.objective:.6g}"
    if last.gap is not None:
        found["gap"] = f"{last.gap:.3g}"

    metrics = dict(last.metrics)
    if last.test_accuracy is not None:
        metrics["test_accuracy"] = last.test_accuracy
    if metrics:
        shown = [f"{name.replace('_', ' ')} {value:.4g}" for name, value in metrics.items()]
        found["metrics"] = ", ".join(shown)

    found["iterations"] = f"{last.iteration:,} ({last.hops:,} hops, {last.syncs:,} syncs)"
    found["messages"] = ", ".join(
        f"{count:,} {link.replace('_', '-')}" for link, count in last.messages.items()
    )
    found["cost"] = f"{last.cost:,.1f}"
    found["seconds"] = f"{last.seconds:.3g}"
    found["model"] = repr(run.model)
    if run.notes:
        found["notes"] = " ".join(run.notes)
    return found


def curve_svg(history: History) -> str:
    """The gap, or else the objective, against iterations, both on a logarithmic scale; empty if
    there is no curve."""
    name = "gap"
    if history.rows[-1].gap is None:
        name = "objective"

    values = history[name]
    iterations = history["iteration"]
    there = np.isfinite(values) & (values > 0)
    if there.sum() < 2:
        return ""

    # iteration 0 has a place, which log10 would not give it
    x = np.log1p(iterations[there])
    y = np.log10(values[there])
    across = _spread(x, WIDTH)
    down = HEIGHT - _spread(y, HEIGHT)

    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across, down, strict=True))
    # labels at the ends of the axis, in place of ticks
    low, high = (f"{value:.3g}" for value in (values[there].min(), values[there].max()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH + 80}" height="{HEIGHT + 34}" '
        f'viewBox="-4 -12 {WIDTH + 80} {HEIGHT + 34}" font-family="sans-serif" font-size="11" '
        f'fill="currentColor">'
        f'<polyline points="{points}" fill="none" stroke="#0072b2" stroke-width="1.5"/>'
        f'<path d="M0 0V{HEIGHT}H{WIDTH}" fill="none" stroke="currentColor" stroke-opacity="0.4"/>'
        f'<text x="{WIDTH + 6}" y="8">{high}</text><text x="{WIDTH + 6}" y="{HEIGHT}">{low}</text>'
        f'<text x="0" y="{HEIGHT + 15}">{name} against iterations, to {iterations[-1]:,.0f} (log '
        f"scales)</text></svg>"
    )


def _spread(values: Array, length: int) -> Array:
    """The values spread over 0 to ``length``."""
    extent = float(values.max() - values.min())
    return np.asarray((values - values.min()) / (extent or 1.0) * length)
