"""The commands that train, and plan a training."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from mtcd.cli.options import (
    AsJson,
    Changes,
    ConfigFile,
    NoTable,
    RayOption,
    RunCode,
    Seed,
    StyleOption,
)
from mtcd.errors import ConfigError
from mtcd.own_code import running_code

training = typer.Typer()


@training.command(
    help=(
        "Train the model that CONFIG.yaml describes.\n\n"
        "Shows the gap (or the objective), hops and cost while it runs. The run folder then holds config.yaml (with "
        "all defaults filled in), history.csv, ledger.json, trace.npz, parameters.npz and coefficients.csv (of a split "
        "network model.safetensors), run.json and history.png, and the checkpoint from which --resume continues an "
        "interrupted training."
    )
)
def train(
    config: ConfigFile,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Folder for the run. Default: a new one, runs/CONFIG.")
    ] = None,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: NoTable = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the training whose checkpoint is in --out.")
    ] = False,
    style: StyleOption = None,
    live: Annotated[
        bool, typer.Option("--live", help="Serve a page on which the tokens and curves are seen while it trains.")
    ] = False,
    live_address: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            help="Where --live serves. Default: 127.0.0.1:0, this machine alone, a free port. Elsewhere the address "
            "holds a secret.",
        ),
    ] = None,
    opens: Annotated[bool, typer.Option("--open", help="With --live: open the page in a browser.")] = False,
    stay: Annotated[
        bool, typer.Option("--stay", help="With --live: serve the page after the training too, until Ctrl-C.")
    ] = False,
) -> None:
    """Train the model that CONFIG.yaml describes."""
    from mtcd.cli.live import LiveOptions
    from mtcd.cli.train import TrainOptions, train_config
    from mtcd.report.serve import LOCAL

    if not live and (live_address is not None or opens or stay):
        raise ConfigError("--live-address, --open and --stay are about the page of --live: give --live too.")
    page = LiveOptions(LOCAL if live_address is None else live_address, opens, stay) if live else None
    options = TrainOptions(config, out, changes or [], seed, as_json, quiet, resume, style, page)
    with running_code():
        raise typer.Exit(train_config(options))


@training.command(
    help=(
        "Show the training that CONFIG.yaml describes, without running it.\n\n"
        "Prints the columns of each client, properties of the network, the size of the token, smoothness and the "
        "step-size limit of the theorems, and the communication cost of an iteration."
    )
)
def inspect(
    config: ConfigFile,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    run_code: RunCode = False,
) -> None:
    """Show the training that CONFIG.yaml describes, without running it."""
    from mtcd.cli.inspect import inspect_config

    with running_code() if run_code else nullcontext():
        inspect_config(config, changes or [], seed, as_json, run_code)


@training.command(
    help=(
        "Propose a method and settings for the data, the network and the link costs of CONFIG.yaml.\n\n"
        "Screens the candidates, runs short pilots of them with successive halving, and searches around the best. "
        "Shows the predicted cost of each and its confidence; writes a config that is ready to train, and a plot "
        "of the cost against R_C. The optimum is computed first, outside the budget."
    )
)
def plan(
    config: ConfigFile,
    ratio: Annotated[
        float | None,
        typer.Option(metavar="R", help="R_C: the price of a client-server message in hops. Default: costs.ratio."),
    ] = None,
    links: Annotated[
        Path | None,
        typer.Option(
            metavar="CSV",
            help="Minimise wall-clock time, not cost: columns from,to,latency_ms,bandwidth_mbps; * is any client.",
        ),
    ] = None,
    target: Annotated[
        float | None, typer.Option(metavar="GAP", help="Relative gap to reach. Default: stop.gap, or 1e-4.")
    ] = None,
    budget: Annotated[str, typer.Option(metavar="TIME", help="Time for the pilots: 60s, 2m, 1h.")] = "60s",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The config to write; its plot is written beside it. Default: ./CONFIG.planned.yaml."
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
            "--workers", metavar="N", min=1, help="Pilots at the same time, on workers. Default: one, in this process."
        ),
    ] = None,
    ray: RayOption = None,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    run_code: RunCode = False,
) -> None:
    """Propose a method and settings."""
    from mtcd.cli.plan import PlanOptions, plan_config
    from mtcd.workers import Backend

    with running_code() if run_code else nullcontext():
        own = PlanOptions(config, ratio, links, target, budget, out, changes or [], seed, as_json)
        backend = None if workers is None and ray is None else Backend(workers, ray)
        plan_config(replace(own, machines=machines, machine=tuple(machine or ()), backend=backend))


@training.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the runs and the picture.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of data and walks.")] = 0,
) -> None:
    """Ridge regression on a path of 40 clients: SVFL, STCD and MTCD side by side, in less than a minute."""
    from mtcd.cli.demo import run_demo

    run_demo(out, seed)
