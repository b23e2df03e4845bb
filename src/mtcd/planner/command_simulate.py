"""The command ``mtcd simulate``: a training over links, in simulated time."""

from __future__ import annotations

import json
from pathlib import Path

from mtcd.cli.show import live_progress, reading
from mtcd.cli.train import EXIT_CODES, RUNS
from mtcd.config.build import build
from mtcd.config.read import read_config
from mtcd.core.files import check_folder, whole_file, write_whole
from mtcd.core.terminal.options import ConfigOptions
from mtcd.core.terminal.screen import screen, show_notes
from mtcd.core.terminal.text import escape
from mtcd.planner.interfaces import sharing_notes, with_interfaces
from mtcd.planner.links import read_links
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
        unused = ["The callbacks of the config are called too."] if setup.callbacks else []
        sharing = sharing_notes(times, setup.method.has_server)
        show_notes((*setup.notes, *setup.data.notes, *unused, *sharing))
    with live_progress(setup.method.describe(), options.quiet) as watch:
        found = simulate(setup, times, None if visit_ms is None else visit_ms / 1e3, watch)
    summary = found.summary(setup.stop.gap)
    _write(found, summary, out)
    if options.as_json:
        print(json.dumps(summary | {"out": str(out)}, allow_nan=False))  # noqa: T201
    elif not options.quiet:
        for line in sentences(found, setup.stop.gap):
            screen.print(escape(line), highlight=False, soft_wrap=True)
        screen.print(escape(f"Folder: {out}"), highlight=False, soft_wrap=True)
    return EXIT_CODES.get(found.run.status, 0)


def sentences(found: Simulation, target: float | None) -> list[str]:
    """What the simulation says."""
    lines = [found.run.message]
    per = found.per_iteration
    pace = "" if per is None else f", {_time(per)} per iteration"
    lines.append(f"Simulated time: {_time(found.seconds)}{pace}.")
    if target is not None:
        reached = found.seconds_to(target)
        lines.append(
            f"Gap of {target:g}: "
            + ("not reached." if reached is None else f"after {_time(reached)}.")
        )
    links = found.link_rows()
    if links:
        first = links[0]
        wait = (
            f", with {_time(first['queued_seconds'])} of queueing"
            if first["queued_seconds"]
            else ""
        )
        lines.append(
            f"Busiest link: {first['from']} to {first['to']}, {first['busy']:.0%} of the "
            f"time{wait}."
        )
    interfaces = found.interface_rows()
    if interfaces:
        first = interfaces[0]
        way = "sending" if first["direction"] == "up" else "receiving"
        lines.append(f"Busiest interface: {first['host']}, {way}, {first['busy']:.0%} of the time.")
    party, share = found.busiest_party
    lines.append(f"Busiest party: {party}, computing {share:.1%} of the time.")
    return lines


def _time(seconds: float) -> str:
    return f"{seconds:,.3g} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def _write(found: Simulation, summary: dict[str, object], out: Path) -> None:
    write_whole(out / "history.csv", found.run.history.to_rows().to_csv())
    write_whole(out / "links.csv", found.link_rows().to_csv())
    if found.use.carrying:
        write_whole(out / "hosts.csv", found.interface_rows().to_csv())
    write_whole(out / "simulation.json", json.dumps(summary, allow_nan=False, indent=1))
    with whole_file(out / "simulation.png") as writing:
        plot_simulation(found, writing)
