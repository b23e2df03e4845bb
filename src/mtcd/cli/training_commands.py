"""The commands that train, plan a training, and repeat experiments."""

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
    ConfigOptions,
    NoTable,
    RayOption,
    RunCode,
    Seed,
    StyleOption,
    WorkersOption,
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
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    run_code: RunCode = False,
) -> None:
    """Propose a method and settings."""
    from mtcd.cli.plan import PlanOptions, plan_config

    with running_code() if run_code else nullcontext():
        own = PlanOptions(config, ratio, links, target, budget, out, changes or [], seed, as_json)
        plan_config(replace(own, machines=machines, machine=tuple(machine or ())))


@training.command(
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


@training.command(
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


@training.command(
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


@training.command(
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


@training.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the runs and the picture.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of data and walks.")] = 0,
) -> None:
    """Ridge regression on a path of 40 clients: SVFL, STCD and MTCD side by side, in less than a minute."""
    from mtcd.cli.demo import run_demo

    run_demo(out, seed)


@training.command(
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
