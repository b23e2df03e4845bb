"""The command line: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer

from mtcd.cli.federation import federation
from mtcd.errors import ConfigError, MtcdError
from mtcd.own_code import running_code

app = typer.Typer(
    help=(
        "Vertical federated learning over any network.\n\n"
        "Parties hold different features of the same samples. A token, the aggregate of the representations of all "
        "parties, roams from neighbour to neighbour; each party it visits updates its own block of the model. "
        "Several tokens can roam in parallel and sync at a server (mtcd), one can roam without a "
        "server (stcd), the server can poll all parties in every round (svfl), all neighbours can exchange messages in "
        "every iteration (dcpa), or sums can go up and down a spanning tree (tree-cg).\n\n"
        "Start with: [bold]mtcd demo[/bold], then write a config and [bold]mtcd train[/bold] it."
    ),
    epilog="Exit codes: 0 success, 1 the training diverged, 2 the input is invalid, 130 interrupted.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(federation, name="federation")

ConfigFile = Annotated[
    Path, typer.Argument(metavar="CONFIG.yaml", help="The data, the model, the network and the method.")
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Change one key of the config, such as method.hops=16. Repeatable."
    ),
]
Seed = Annotated[int | None, typer.Option(metavar="N", min=0, help="Use this seed instead of the config's.")]
AsJson = Annotated[bool, typer.Option("--json", help="End with one line of JSON on standard output.")]
StyleOption = Annotated[
    str | None,
    typer.Option(
        metavar="STYLE",
        help="paper, or paper:INCHES,POINTS: pictures of that width and size of text, without a title, as PDF for "
        "LaTeX. paper is a column of 3.5 inches with 8 points.",
    ),
]
NoTable = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")]
RunCode = Annotated[
    bool, typer.Option("--run-code", help="Use networks and parts that are not built in, which runs their code.")
]


def _version(asked: bool) -> None:
    if asked:
        from mtcd import __version__

        typer.echo(f"mtcd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options of the program itself."""


@app.command(
    help=(
        "Train the model that CONFIG.yaml describes.\n\n"
        "Shows the gap (or the objective), hops and cost while it runs. The run folder then holds config.yaml (with "
        "all defaults filled in), history.csv, ledger.json, parameters.npz and coefficients.csv (of a split network "
        "model.safetensors), run.json and history.png, and the checkpoint from which --resume continues an interrupted "
        "training."
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
) -> None:
    """Train the model that CONFIG.yaml describes."""
    from mtcd.cli.train import TrainOptions, train_config

    with running_code():
        raise typer.Exit(train_config(TrainOptions(config, out, changes or [], seed, as_json, quiet, resume, style)))


@app.command(
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


@app.command(
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
    changes: Changes = None,
    seed: Seed = None,
    as_json: AsJson = False,
    run_code: RunCode = False,
) -> None:
    """Propose a method and settings."""
    from mtcd.cli.plan import PlanOptions, plan_config

    with running_code() if run_code else nullcontext():
        plan_config(PlanOptions(config, ratio, links, target, budget, out, changes or [], seed, as_json))


@app.command(
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
    from mtcd.cli.select import SelectOptions, path_config

    with running_code():
        raise typer.Exit(path_config(SelectOptions(config, out, changes or [], seed, as_json, quiet), over, metric))


@app.command(
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
    from mtcd.cli.select import SelectOptions, cv_config

    with running_code():
        raise typer.Exit(cv_config(SelectOptions(config, out, changes or [], seed, as_json, quiet), folds))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the runs and the picture.")] = Path("runs/demo"),
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of data and walks.")] = 0,
) -> None:
    """Ridge regression on a path of 40 clients: SVFL, STCD and MTCD side by side, in less than a minute."""
    from mtcd.cli.demo import run_demo

    run_demo(out, seed)


@app.command(
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
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Processes that train at the same time.")] = 2,
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

    if show:
        list_experiments()
    elif figure is None:
        raise ConfigError("Which figure? Give a name that `mtcd reproduce --list` shows, a file of yours, or all.")
    else:
        with running_code():
            raise typer.Exit(run_experiments(ReproduceOptions(figure, quick, seeds, jobs, out, fresh, page, style)))


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing; the log records all events.")]
Code = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.py", help="A file with your own networks, if the federation file names some. Repeatable."
    ),
]
AgreeCode = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SHA256",
        help="Run the file with this sha256 in the folder 'code' of the kit. Read it first. Repeatable.",
    ),
]
RunDir = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Folder for journal, log and result. Default: KIT/run.")
]


@app.command(
    help=(
        "Take part in a federation with the kit (credentials bundle) of a party: wait for the other parties, align "
        "samples, train, and save this party's block of the model.\n\n"
        "A party that crashes resumes from its journal when it is restarted. Ctrl-C leaves the run; the other parties "
        "continue."
    )
)
def party(
    kit: Annotated[Path, typer.Argument(metavar="KIT", help="The folder that the administrator gave to this party.")],
    data: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="This party's own table, instead of the one the kit names.")
    ] = None,
    key: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="The column with the ids.")] = None,
    columns: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="The columns to train on. Default: all others.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The column with the labels, for the party that holds them.")
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="auto|FILE",
            help="Prepare texts, dates and missing values: automatically, or by the recipe in a YAML file.",
        ),
    ] = None,
    code: Code = None,
    agree_code: AgreeCode = None,
    out: RunDir = None,
    quiet: Quiet = False,
) -> None:
    """Take part in a federation."""
    from mtcd.cli.party import PartyOptions, run_party

    options = PartyOptions(kit, data, key, columns, label, out, quiet, code or (), agree_code or (), prepare)
    raise typer.Exit(run_party(options))


@app.command()
def server(
    kit: Annotated[Path, typer.Argument(metavar="KIT", help="The folder kits/server.")],
    code: Code = None,
    agree_code: AgreeCode = None,
    out: RunDir = None,
    quiet: Quiet = False,
) -> None:
    """Run the server of a federation, at which tokens sync. The server sees neither data nor hops."""
    from mtcd.cli.party import PartyOptions, run_party

    options = PartyOptions(kit, out=out, quiet=quiet, code=code or (), agreed=agree_code or ())
    raise typer.Exit(run_party(options, server=True))


@app.command(
    help=(
        "Predict new samples.\n\n"
        "[bold]mtcd predict RUN TABLE[/bold]: with a run that mtcd train wrote. The columns of TABLE are found by "
        "name. The predictions have the ids, if the run's config names some, and the probabilities of the classes.\n\n"
        "[bold]mtcd predict KIT --data TABLE[/bold]: with a trained federation; every party runs this with its own "
        "columns of the samples. Samples are aligned on ids as before training. The parties add up the outputs of "
        "their blocks, from party to party, under a mask; only the party that the federation file names "
        "(predictions.seen_by, by default "
        "the label holder) learns the predictions."
    )
)
def predict(
    folder: Annotated[Path, typer.Argument(metavar="RUN|KIT", help="The run folder, or the party's kit.")],
    table: Annotated[
        Path | None, typer.Argument(metavar="[TABLE]", show_default=False, help="The new samples, for a run.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="The new samples, in this party's columns.")
    ] = None,
    key: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="The column with the ids.")] = None,
    run: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder of the run. Default: KIT/run.")] = None,
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The file for the predictions, at the party that learns them.")
    ] = Path("predictions.csv"),
    code: Code = None,
    agree_code: AgreeCode = None,
    run_code: RunCode = False,
    quiet: Quiet = False,
) -> None:
    """Predict new samples, with a run or together with other parties."""
    from mtcd.cli.run_folder import OnTable, is_run, predict_table

    if is_run(folder):
        new = table or data
        if new is None:
            raise ConfigError(f"Which new samples? Give a table: mtcd predict {folder} table.csv")
        predict_table(OnTable(folder, new, run_code), out, quiet)
        return
    from mtcd.cli.predict import PredictOptions
    from mtcd.cli.predict import predict as take_part

    take_part(PredictOptions(folder, data or table, key, run, out, quiet, code or (), agree_code or ()))


@app.command()
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that mtcd train wrote.")],
    table: Annotated[Path, typer.Argument(metavar="TABLE", help="Samples with labels: CSV, Parquet or svmlight.")],
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The label column. Default: that of the run's config."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Draw ROC, precision-recall, calibration and lift curves there.")
    ] = None,
    as_json: AsJson = False,
    run_code: RunCode = False,
) -> None:
    """Compute the metrics of a trained run on a table with labels: AUC, log loss, RMSE and others."""
    from mtcd.cli.run_folder import OnTable, evaluate_table

    evaluate_table(OnTable(run, table, run_code), label, as_json, plot)


@app.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that mtcd train wrote.")],
    onnx: Annotated[
        Path, typer.Option(metavar="FILE", help="The file; of a split network, the folder for one file per client.")
    ],
    after_preparation: Annotated[
        bool,
        typer.Option(
            "--after-preparation", help="Export what comes after the preparation of columns, if there is one."
        ),
    ] = False,
    run_code: RunCode = False,
) -> None:
    """Write the model of a trained run for ONNX runtimes (pip install '.[onnx]')."""
    from mtcd.cli.run_folder import export_run

    export_run(run, onnx, run_code, after_preparation)


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line. Invalid input prints one paragraph on standard error and exits with code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that cannot show a Greek letter gets a '?'
    try:
        app(arguments, prog_name="mtcd")
    except MtcdError as error:
        from rich.console import Console

        from mtcd.report.plain_text import escape

        Console(stderr=True).print(f"[bold red]Error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(2)
    except MemoryError:
        typer.echo("Error: out of memory. Use fewer samples, features or tokens.", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
