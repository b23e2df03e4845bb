"""The command ``mtcd simulate``: a training over links, in simulated time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mtcd.cli.show import live_progress, reading
from mtcd.cli.train import EXIT_CODES, RUNS
from mtcd.config.build import Setup, build
from mtcd.config.read import read_config
from mtcd.core.files import check_folder, whole_file, write_whole
from mtcd.core.terminal.options import ConfigOptions
from mtcd.core.terminal.screen import screen, show_notes
from mtcd.core.terminal.text import duration, escape
from mtcd.planner.interfaces import sharing_notes, with_interfaces
from mtcd.planner.links import Links, read_links
from mtcd.planner.simulate import Simulation, simulate
from mtcd.planner.simulation_plots import plot_simulation

FILES = {"history.csv", "hosts.csv", "links.csv", "simulation.json", "simulation.png"}


def simulate_config(
    options: ConfigOptions, links: Path, hosts: Path | None, visit_ms: float | None
) -> int:
    """Simulate, write and show the outcome; returns the exit code."""
    out = options.out or RUNS / f"{options.config.stem}-simulated"
    check_folder(out, FILES)
    config = read_config(options.config, options.changes, options.seed)
    with reading(config, options.quiet or options.as_json):
        setup = build(config)
    times = with_interfaces(read_links(links, setup.network), hosts, setup.network)
    if not options.quiet:
        show_notes(_notes(setup, times))

    visit_seconds = None
    if visit_ms is not None:
        visit_seconds = visit_ms / 1e3
    with live_progress(setup.method.describe(), options.quiet) as watch:
        found = simulate(setup, times, visit_seconds, watch)

    summary = found.summary(setup.stop.gap)
    _write(found, summary, out)
    if options.as_json:
        print(json.dumps(summary | {"out": str(out)}, allow_nan=False))  # noqa: T201
    elif not options.quiet:
        for line in sentences(found, setup.stop.gap):
            screen.print(escape(line), highlight=False, soft_wrap=True)
        screen.print(escape(f"Folder: {out}"), highlight=False, soft_wrap=True)
    return EXIT_CODES.get(found.run.status, 0)


def _notes(setup: Setup, times: Links) -> list[str]:
    """What the user should know before the simulation runs."""
    notes = [*setup.notes, *setup.data.notes]
    if setup.callbacks:
        # they may write files or stop the training, as in a real one
        notes.append("The callbacks of the config are called too.")
    notes += sharing_notes(times, setup.method.has_server)
    return notes


def sentences(found: Simulation, target: float | None) -> list[str]:
    """What the simulation says."""
    lines = [found.run.message, _simulated_time(found)]
    if target is not None:
        lines.append(f"Gap of {target:g}: {_when(found.seconds_to(target))}.")

    # the rows are sorted: the first is the busiest
    lines += [_busiest_link(row) for row in found.link_rows()[:1]]
    lines += [_busiest_interface(row) for row in found.interface_rows()[:1]]

    party, share = found.busiest_party
    lines.append(f"Busiest party: {party}, computing {share:.1%} of the time.")
    return lines


def _simulated_time(found: Simulation) -> str:
    pace = ""
    if found.per_iteration is not None:
        pace = f", {duration(found.per_iteration)} per iteration"
    return f"Simulated time: {duration(found.seconds)}{pace}."


def _when(reached: float | None) -> str:
    if reached is None:
        return "not reached"
    return f"after {duration(reached)}"


def _busiest_link(row: Mapping[str, Any]) -> str:
    wait = ""
    if row["queued_seconds"]:
        wait = f", with {duration(row['queued_seconds'])} of queueing"
    return f"Busiest link: {row['from']} to {row['to']}, {row['busy']:.0%} of the time{wait}."


def _busiest_interface(row: Mapping[str, Any]) -> str:
    way = {"up": "sending", "down": "receiving"}[row["direction"]]
    return f"Busiest interface: {row['host']}, {way}, {row['busy']:.0%} of the time."


def _write(found: Simulation, summary: dict[str, object], out: Path) -> None:
    write_whole(out / "history.csv", found.run.history.to_rows().to_csv())
    write_whole(out / "links.csv", found.link_rows().to_csv())
    if found.use.carrying:
        write_whole(out / "hosts.csv", found.interface_rows().to_csv())
    write_whole(out / "simulation.json", json.dumps(summary, allow_nan=False, indent=1))
    with whole_file(out / "simulation.png") as writing:
        plot_simulation(found, writing)
