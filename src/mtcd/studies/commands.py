"""The commands that train many times: paths, cross-validation and sweeps."""

from __future__ import annotations

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
    Seed,
    WorkersOption,
)

app = typer.Typer()


@app.command(
    name="path",
    help=(
        "Train CONFIG.yaml along a penalty, from strong to weak, each run from the end of the one "
        "before.\n\n"
        "Prints a row for every value, and writes path.csv, coefficients.csv and path.png. With a "
        "test set "
        "(data.holdout) the best run is written too, into DIR/best."
    ),
)
def path_command(
    config: ConfigFile,
    over: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUES",
            help="model.l1=0.1,1,10, or 'model.l2=20 points', evenly spaced in the log.",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Default: runs/CONFIG-path.")
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Decides which run is best. Default: the first one computed."
        ),
    ] = None,
    changes: Changes = None,
    seed: Seed = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: NoTable = False,
) -> None:
    """Train along a penalty."""
    from mtcd.studies.command_select import path_config

    with running_code():
        options = ConfigOptions(config, out, changes or [], seed, as_json, quiet)
        raise typer.Exit(path_config(options, over, metric, force))


@app.command(
    help=(
        "Cross-validate CONFIG.yaml: train once for every fold on the others, and test on it.\n\n"
        "The samples are split once for all clients, from the seed, with about the same share of "
        "every class in each "
        "fold; preparation and scaling are fitted on the training samples of each fold. Prints the "
        "metrics of every "
        "fold, their mean and standard deviation, and writes a CSV file."
    )
)
def cv(
    config: ConfigFile,
    folds: Annotated[int, typer.Option(metavar="K", min=2, help="The number of folds.")] = 5,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Default: runs/CONFIG-cv.csv.")
    ] = None,
    changes: Changes = None,
    seed: Seed = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: NoTable = False,
) -> None:
    """Train a config once for every fold, test it on that fold, and show the metrics."""
    from mtcd.studies.command_select import cv_config

    with running_code():
        options = ConfigOptions(config, out, changes or [], seed, as_json, quiet)
        raise typer.Exit(cv_config(options, folds, force))


@app.command(
    name="sweep",
    help=(
        "Train CONFIG.yaml over a grid of settings and seeds, several trainings at a time.\n\n"
        "Writes sweep.csv and sweep.parquet (a row for each training), sweep.png, and best.yaml: "
        "the config with the "
        "best settings. Finished trainings are kept in DIR/trainings: an interrupted sweep "
        "continues, and a larger "
        "grid trains only what is new. A training that fails is a row with its reason."
    ),
)
def sweep_command(
    config: ConfigFile,
    over: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUES",
            help="A key of the config and its values: method.tokens=1,2,4. Repeatable.",
        ),
    ],
    seeds: Annotated[
        int, typer.Option(metavar="N", min=1, help="Seeds per setting, counted from the config's.")
    ] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Default: runs/CONFIG-sweep.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Decides which settings are best, on average over the seeds. Default: cost with stop.gap, else the "
            "first metric of the test set, else objective.",
        ),
    ] = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: NoTable = False,
) -> None:
    """Train over a grid."""
    from mtcd.core.workers import Backend

    # inside: 'mtcd --help' imports this file, and must not wait for numpy
    from mtcd.studies.command_sweep import sweep_config

    options = ConfigOptions(config, out, changes or [], seed, as_json, quiet)
    with running_code():
        raise typer.Exit(sweep_config(options, over, seeds, by, Backend(workers, ray)))
