"""The commands that train many times: simulations, paths, cross-validation, sweeps, and the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtcd.cli.options import (
    AsJson,
    Changes,
    ConfigFile,
    ConfigOptions,
    NoTable,
    RayOption,
    Seed,
    StyleOption,
    WorkersOption,
)
from mtcd.errors import ConfigError
from mtcd.own_code import running_code

studies = typer.Typer()


@studies.command(
    name="simulate",
    help=(
        "Train CONFIG.yaml over links with given latencies and bandwidths, in simulated time.\n\n"
        "The iterates are those of mtcd train. Prints the time per iteration and to the gap of the config, and writes "
        "history.csv with simulated seconds, links.csv (how busy each link was), simulation.json and simulation.png. "
        "(Faults of parties and links are simulated by python -m mtcd.federation.simulate.)"
    ),
)
def simulate_command(
    config: ConfigFile,
    links: Annotated[
        Path,
        typer.Option(
            metavar="CSV", help="Columns from,to,latency_ms,bandwidth_mbps; * is any client, server the server."
        ),
    ],
    visit_ms: Annotated[
        float | None,
        typer.Option(metavar="MS", min=0, help="Computing per message. Default: as measured on this machine."),
    ] = None,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: runs/CONFIG-simulated.")] = None,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: NoTable = False,
) -> None:
    """Simulate over links."""
    from mtcd.cli.simulate import simulate_config

    options = ConfigOptions(config, out, changes or [], seed, as_json, quiet)
    with running_code():
        raise typer.Exit(simulate_config(options, links, visit_ms))


@studies.command(
    name="path",
    help=(
        "Train CONFIG.yaml along a penalty, from strong to weak, each run from the end of the one before.\n\n"
        "Prints a row for every value, and writes path.csv, coefficients.csv and path.png. With a test set "
        "(data.holdout) the best run is written too, into DIR/best."
    ),
)
def path_command(
    config: ConfigFile,
    over: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUES", help="model.l1=0.1,1,10, or 'model.l2=20 points', evenly spaced in the log."
        ),
    ],
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: runs/CONFIG-path.")] = None,
    metric: Annotated[
        str | None, typer.Option(metavar="NAME", help="Decides which run is best. Default: the first one computed.")
    ] = None,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: NoTable = False,
) -> None:
    """Train along a penalty."""
    from mtcd.cli.select import path_config

    with running_code():
        raise typer.Exit(path_config(ConfigOptions(config, out, changes or [], seed, as_json, quiet), over, metric))


@studies.command(
    help=(
        "Cross-validate CONFIG.yaml: train once for every fold on the others, and test on it.\n\n"
        "The samples are split once for all clients, from the seed, with about the same share of every class in each "
        "fold; preparation and scaling are fitted on the training samples of each fold. Prints the metrics of every "
        "fold, their mean and standard deviation, and writes a CSV file."
    )
)
def cv(
    config: ConfigFile,
    folds: Annotated[int, typer.Option(metavar="K", min=2, help="The number of folds.")] = 5,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Default: runs/CONFIG-cv.csv.")] = None,
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    quiet: NoTable = False,
) -> None:
    """Cross-validate."""
    from mtcd.cli.select import cv_config

    with running_code():
        raise typer.Exit(cv_config(ConfigOptions(config, out, changes or [], seed, as_json, quiet), folds))


@studies.command(
    name="sweep",
    help=(
        "Train CONFIG.yaml over a grid of settings and seeds, several trainings at a time.\n\n"
        "Writes sweep.csv and sweep.parquet (a row for each training), sweep.png, and best.yaml: the config with the "
        "best settings. Finished trainings are kept in DIR/trainings: an interrupted sweep continues, and a larger "
        "grid trains only what is new. A training that fails is a row with its reason."
    ),
)
def sweep_command(
    config: ConfigFile,
    over: Annotated[
        list[str],
        typer.Option(metavar="KEY=VALUES", help="A key of the config and its values: method.tokens=1,2,4. Repeatable."),
    ],
    seeds: Annotated[int, typer.Option(metavar="N", min=1, help="Seeds per setting, counted from the config's.")] = 1,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Default: runs/CONFIG-sweep.")] = None,
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
    from mtcd.cli.sweep import sweep_config
    from mtcd.workers import Backend

    options = ConfigOptions(config, out, changes or [], seed, as_json, quiet)
    with running_code():
        raise typer.Exit(sweep_config(options, over, seeds, by, Backend(workers, ray)))


@studies.command(
    help=(
        "Run an experiment: train every curve over several seeds, draw the figure, write its numbers as CSV.\n\n"
        "Finished trainings are cached in DIR/curves: an interrupted command resumes where it stopped, and a changed "
        "setting retrains only the curves that depend on it."
    )
)
def reproduce(
    figure: Annotated[
        str | None,
        typer.Argument(metavar="FIGURE", help="A name (see --list), a file of yours, or all: those of the paper."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="The same figures at a smaller size.")] = False,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Seeds per curve. Default: 5, or what the file says.")
    ] = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for figures and trainings.")] = Path("results"),
    fresh: Annotated[bool, typer.Option("--fresh", help="Ignore the cache, and train all curves again.")] = False,
    show: Annotated[bool, typer.Option("--list", help="Show the built-in experiments, and exit.")] = False,
    page: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The page about the figures. Default: DIR/reproduction.md for all."),
    ] = None,
    style: StyleOption = None,
) -> None:
    """Run an experiment, or all."""
    from mtcd.cli.reproduce import ReproduceOptions, list_experiments, run_experiments
    from mtcd.workers import Backend

    if show:
        list_experiments()
    elif figure is None:
        raise ConfigError("Which figure? Give a name that `mtcd reproduce --list` shows, a file of yours, or all.")
    else:
        with running_code():
            options = ReproduceOptions(figure, quick, seeds, Backend(workers, ray), out, fresh, page, style)
            raise typer.Exit(run_experiments(options))
