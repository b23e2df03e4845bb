"""mtcd demo: the paper's ridge regression on a path of 40 clients, its methods side by side, and
accelerated rounds of SVFL."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mtcd.cli.replacing import check_same_run
from mtcd.cli.show import live_progress, runs_table
from mtcd.cli.train import draw_runs, write_run
from mtcd.config.build import build
from mtcd.config.read import check_config
from mtcd.config.schema import Config
from mtcd.core.files import check_folder
from mtcd.core.terminal.screen import screen
from mtcd.core.terminal.text import escape

PROBLEM = {
    "data": {"synthetic": "ridge", "samples": 1000, "features": 2000, "clients": 40},
    "model": {"kind": "ridge", "alpha": 10},
    "network": {"kind": "path"},
    "costs": {"ratio": 100},
}
METHODS: dict[str, dict[str, Any]] = {
    "svfl": {
        "method": {"kind": "svfl", "local_updates": 20, "stepsize": 5e-7},
        "iterations": 5_000,
    },
    "svfl-conjugate": {
        "method": {"kind": "svfl", "acceleration": "conjugate"},
        "iterations": 5_000,
    },
    "stcd": {
        "method": {"kind": "stcd", "local_updates": 20, "stepsize": 1e-5},
        "iterations": 200_000,
    },
    "mtcd": {
        "method": {"kind": "mtcd", "tokens": 2, "hops": 64, "local_updates": 20, "stepsize": 1e-5},
        "iterations": 200_000,
    },
}


def run_demo(out: Path, seed: int, force: bool = False) -> None:
    """Train with each method until a gap of 1e-4 or its limit, print the table, draw the
    picture."""
    # all folders before the first training: a refusal must not come after minutes
    configs = {name: _config(settings, seed) for name, settings in METHODS.items()}
    for name, config in configs.items():
        check_folder(out / name)
        check_same_run(out / name, config, force)

    screen.print("Ridge regression: 1000 samples, 2000 features over 40 clients in a row.")
    runs = {}
    for name, config in configs.items():
        setup = build(config)
        with live_progress(f"{config.method.kind.upper():5}") as watch:
            run = setup.train(watch)
        write_run(run, setup, out / name)
        runs[run.method] = run

    draw_runs(runs, out / "comparison.png", "Ridge regression on a path of 40 clients")

    screen.print(runs_table(list(runs.values())))
    screen.print(
        "Cost: 1 for a message between client and server, 1/100 for one between neighbours. "
        "SVFL needs few rounds, but every message goes to or from the server; with acceleration, "
        "which is ours, it needs a hundredth of them. STCD needs no server; MTCD lies between "
        "them, and the ratio of the two prices decides which method is cheapest."
    )
    screen.print(
        f"Picture: {escape(str(out / 'comparison.png'))}; runs: {escape(str(out))}/...",
        highlight=False,
    )


def _config(settings: dict[str, Any], seed: int) -> Config:
    stop = {"gap": 1e-4, "iterations": settings["iterations"]}
    return check_config({**PROBLEM, "method": settings["method"], "stop": stop, "seed": seed})
