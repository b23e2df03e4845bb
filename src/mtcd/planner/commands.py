"""The commands that plan and simulate a training."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mtcd.core.own_code import running_code
from mtcd.core.terminal.options import (
    AsJson,
    Changes,
    ConfigFile,
    ConfigOptions,
    Force,
    NoTable,
    RayOption,
    RunCode,
    Seed,
)

app = typer.Typer()

HostsOption = Annotated[
    Path | None,
    typer.Option(
        metavar="CSV",
        help="What each host's network interface carries over all its links together: columns "
        "host,mbps_up,mbps_down; * is any client, server the server.",
    ),
]


@app.command(
    help=(
        "Propose a method and settings for the data, the network and the link costs of "
        "CONFIG.yaml.\n\n"
        "Screens the candidates, runs short pilots of them with successive halving, and searches "
        "around the best. "
        "Shows the predicted cost of each and its confidence; writes a config that is ready to "
        "train, and a plot "
        "of the cost against R_C. The optimum is computed first, outside the budget."
    )
)
def plan(
    config: ConfigFile,
    ratio: Annotated[
        float | None,
        typer.Option(
            metavar="R",
            help="R_C: the price of a client-server message in hops. Default: costs.ratio.",
        ),
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Minimise wall-clock time, not cost: columns from,to,latency_ms,bandwidth_mbps; * is any client.",
        ),
    ] = None,
    hosts: HostsOption = None,
    target: Annotated[
        float | None,
        typer.Option(metavar="GAP", help="Relative gap to reach. Default: stop.gap, or 1e-4."),
    ] = None,
    budget: Annotated[
        str, typer.Option(metavar="TIME", help="CPU time for the pilots: 60s, 2m, 1h.")
    ] = "60s",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The config to write; its plot is written beside it. Default: ./CONFIG.planned.yaml.",
        ),
    ] = None,
    machines: Annotated[
        int | None,
        typer.Option(
            metavar="M",
            min=1,
            help="Choose for the least time on so many machines, and show what 1, 10, 100 and 1,000 would do.",
        ),
    ] = None,
    machine: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="What a machine of --machines is like: latency_ms, bandwidth_mbps, server_mbps, cores, memory_gb, "
            "process_mb. Repeatable.",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            help="Pilots at the same time, on workers. Default: one, in this process.",
        ),
    ] = None,
    ray: RayOption = None,
    changes: Changes = None,
    force: Force = False,
    seed: Seed = None,
    as_json: AsJson = False,
    run_code: RunCode = False,
) -> None:
    """Propose a method and settings."""
    # inside: 'mtcd --help' imports this file, and must not wait for numpy
    from mtcd.core.workers import Backend
    from mtcd.planner.command import PlanOptions, plan_config

    backend = None
    if workers is not None or ray is not None:
        backend = Backend(workers, ray)
    options = PlanOptions(
        config,
        ratio,
        links,
        target,
        budget,
        out,
        changes or [],
        seed,
        as_json,
        hosts=hosts,
        machines=machines,
        machine=tuple(machine or ()),
        backend=backend,
        force=force,
    )
    with ExitStack() as contexts:
        if run_code:
            contexts.enter_context(running_code())
        plan_config(options)


@app.command(
    name="simulate",
    help=(
        "Train CONFIG.yaml over links with given latencies and bandwidths, in simulated time.\n\n"
        "The iterates are those of mtcd train. Prints the time per iteration and to the gap of the "
        "config, and writes "
        "history.csv with simulated seconds, links.csv (how busy each link was), simulation.json "
        "and simulation.png. "
        "(Faults of parties and links are simulated by python -m mtcd.testing.simulator.)"
    ),
)
def simulate_command(
    config: ConfigFile,
    links: Annotated[
        Path,
        typer.Option(
            metavar="CSV",
            help="Columns from,to,latency_ms,bandwidth_mbps; * is any client, server the server.",
        ),
    ],
    hosts: HostsOption = None,
    visit_ms: Annotated[
        float | None,
        typer.Option(
            metavar="MS", min=0, help="Computing per message. Default: as measured on this machine."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Default: runs/CONFIG-simulated.")
    ] = None,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: NoTable = False,
) -> None:
    """Train a config over links, in simulated time, and show what took how long."""
    from mtcd.planner.command_simulate import simulate_config

    options = ConfigOptions(config, out, changes or [], seed, as_json, quiet)
    with running_code():
        raise typer.Exit(simulate_config(options, links, hosts, visit_ms))
