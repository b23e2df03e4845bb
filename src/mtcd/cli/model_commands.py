"""The commands that use a trained model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, cast

import typer

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.core.terminal.options import AgreeCode, AsJson, Code, Quiet, RunCode

models = typer.Typer()


@models.command(
    help=(
        "Predict new samples.\n\n"
        "[bold]mtcd predict RUN TABLE[/bold]: with a run that mtcd train wrote. The columns of "
        "TABLE are found by "
        "name. The predictions have the ids, if the run's config names some, and the probabilities "
        "of the classes.\n\n"
        "[bold]mtcd predict BUNDLE --data TABLE[/bold]: with a trained federation; every party runs "
        "this with its own "
        "columns of the samples. Samples are aligned on ids as before training. The parties add up "
        "the outputs of "
        "their blocks, from party to party, under a mask; only the party that the federation file "
        "names "
        "(predictions.seen_by, by default "
        "the label holder) learns the predictions."
    )
)
def predict(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN|BUNDLE", help="The run folder, or the party's bundle.")
    ],
    table: Annotated[
        Path | None,
        typer.Argument(metavar="[TABLE]", show_default=False, help="The new samples, for a run."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="The new samples, in this party's columns.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column with the ids.")
    ] = None,
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder of the run. Default: BUNDLE/run.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The file for the predictions, at the party that learns them."
        ),
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

    for marker, home in features.parts("mtcd.cli.predict").items():
        if (folder / marker).is_file():
            take_part = cast(Callable[..., None], features.load(home))
            take_part(folder, data or table, key, run, out, quiet, code or (), agree_code or ())
            return

    raise ConfigError(
        f"{folder} is neither a run folder, with run.json, nor a bundle, with party.yaml: give one "
        f"that mtcd train or "
        "mtcd federation init wrote."
    )


@models.command()
def evaluate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that mtcd train wrote.")],
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="Samples with labels: CSV, Parquet or svmlight.")
    ],
    label: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The label column. Default: that of the run's config."),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Draw ROC, precision-recall, calibration and lift curves there."
        ),
    ] = None,
    as_json: AsJson = False,
    run_code: RunCode = False,
) -> None:
    """Compute the metrics of a trained run on a table with labels: AUC, log loss, RMSE and
    others."""
    from mtcd.cli.run_folder import OnTable, evaluate_table

    evaluate_table(OnTable(run, table, run_code), label, as_json, plot)


@models.command()
def export(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder that mtcd train wrote.")],
    onnx: Annotated[
        Path,
        typer.Option(
            metavar="FILE", help="The file; of a split network, the folder for one file per client."
        ),
    ],
    after_preparation: Annotated[
        bool,
        typer.Option(
            "--after-preparation",
            help="Export what comes after the preparation of columns, if there is one.",
        ),
    ] = False,
    run_code: RunCode = False,
) -> None:
    r"""Write the model of a trained run for ONNX runtimes (pip install '.\[onnx]')."""
    from mtcd.cli.run_folder import export_run

    export_run(run, onnx, run_code, after_preparation)
