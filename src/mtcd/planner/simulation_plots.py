"""The picture of a simulation: gap or objective against simulated time, and the busiest links."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from mtcd.planner.simulate import Simulation
from mtcd.plots.styles import COLOURS, any_script, plain

SHOWN = 12  # links


@any_script()
def plot_simulation(simulation: Simulation, file: Path) -> None:
    """Draw it into a file."""
    # no pyplot: it keeps figures, and may look for a screen
    figure = Figure(figsize=(10.5, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    history = simulation.run.history
    what, title = "gap", "relative gap (f - f*) / f*"
    if simulation.run.gap is None:
        what, title = "objective", "objective f"
    values = history[what]
    shown = np.where(values > 0, values, np.nan)  # a gap of rounding size can be below 0
    left.plot(history["seconds"], shown, color=COLOURS[0], linewidth=1.8)

    left.set_yscale("log")
    left.set_xlabel("simulated time (seconds)")
    left.set_ylabel(title)
    left.set_title(plain(simulation.run.method), fontsize=10)
    left.grid(alpha=0.25)

    links = simulation.link_rows()[:SHOWN]
    names = [plain(f"{row['from']} to {row['to']}") for row in links]
    right.barh(range(len(links)), [100 * row["busy"] for row in links], color=COLOURS[1])
    right.set_yticks(range(len(links)), names, fontsize=8)
    right.invert_yaxis()
    right.set_xlabel("busiest links: share of the time (%)")

    figure.savefig(file, dpi=150)
