"""The commands that train."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from mtcd.core.own_code import running_code
from mtcd.core.terminal.options import (
    AsJson,
    Changes,
    ConfigFile,
    Force,
    NoTable,
    RunCode,
    Seed,
    StyleOption,
    with_options_of,
)

training = typer.Typer()


@training.command(
    help=(
        "Train the model that CONFIG.yaml describes.\n\n"
        "Shows the gap (or the objective), hops and cost while it runs. The run folder then holds "
        "config.yaml (with "
        "all defaults filled in), history.csv, ledger.json, trace.npz, parameters.npz and "
        "coefficients.csv (of a split "
        "network model.safetensors), run.json and history.png, and the checkpoint from which "
        "--resume continues an "
        "interrupted training."
    )
)
@with_options_of("mtcd.cli.train")
def train(
    config: ConfigFile,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for the run. Default: a new one, runs/CONFIG."),
    ] = None,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: NoTable = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue the training whose checkpoint is in --out.")
    ] = False,
    force: Force = False,
    style: StyleOption = None,
    more: Sequence[Any] = (),
) -> None:
    """Train the model that CONFIG.yaml describes."""
    # inside: 'mtcd --help' imports this file, and must not wait for numpy
    from mtcd.cli.train import TrainOptions, train_config

    options = TrainOptions(
        config, out, changes or [], seed, as_json, quiet, resume, style, more, force
    )
    with running_code():
        raise typer.Exit(train_config(options))


@training.command(
    help=(
        "Show the training that CONFIG.yaml describes, without running it.\n\n"
        "Prints the columns of each client, properties of the network, the size of the token, "
        "smoothness and the "
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

    with ExitStack() as contexts:
        if run_code:
            contexts.enter_context(running_code())
        inspect_config(config, changes or [], seed, as_json, run_code)


@training.command()
def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the runs and the picture.")
    ] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of data and walks.")] = 0,
    force: Force = False,
) -> None:
    """Ridge regression on a path of 40 clients: SVFL, STCD and MTCD side by side, in less than a
    minute."""
    from mtcd.cli.demo import run_demo

    run_demo(out, seed, force)
