"""The command that runs experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtcd.core.errors import ConfigError
from mtcd.core.own_code import running_code
from mtcd.core.terminal.options import (
    RayOption,
    StyleOption,
    WorkersOption,
)

app = typer.Typer()


@app.command(
    help=(
        "Run an experiment: train every curve over several seeds, draw the figure, write its "
        "numbers as CSV.\n\n"
        "Finished trainings are cached in DIR/curves: an interrupted command resumes where it "
        "stopped, and a changed "
        "setting retrains only the curves that depend on it."
    )
)
def reproduce(
    figure: Annotated[
        str | None,
        typer.Argument(
            metavar="FIGURE",
            help="A name (see --list), a file of yours, or all: those of the paper.",
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The same figures at a smaller size.")
    ] = False,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="Seeds per curve. Default: 5, or what the file says."
        ),
    ] = None,
    workers: WorkersOption = None,
    ray: RayOption = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for figures and trainings.")
    ] = Path("results"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Ignore the cache, and train all curves again.")
    ] = False,
    show: Annotated[
        bool, typer.Option("--list", help="Show the built-in experiments, and exit.")
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The page about the figures. Default: DIR/reproduction.md for all."
        ),
    ] = None,
    style: StyleOption = None,
) -> None:
    """Run an experiment, or all."""
    from mtcd.core.workers import Backend
    from mtcd_experiments.command import ReproduceOptions, list_experiments, run_experiments

    if show:
        list_experiments()
    elif figure is None:
        raise ConfigError(
            "Which figure? Give a name that `mtcd reproduce --list` shows, a file of yours, or all."
        )
    else:
        with running_code():
            options = ReproduceOptions(
                figure, quick, seeds, Backend(workers, ray), out, fresh, page, style
            )
            raise typer.Exit(run_experiments(options))
