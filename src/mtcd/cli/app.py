"""The command line: parse, call, print. Heavy imports wait until a command needs them."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import Annotated, Any, cast

import typer

from mtcd.cli.model_commands import models
from mtcd.cli.training_commands import training
from mtcd.core import features
from mtcd.core.errors import MtcdError
from mtcd.core.terminal.options import with_ray_address

app = typer.Typer(
    help=(
        "Vertical federated learning over any network.\n\n"
        "Parties hold different features of the same samples. A token, the aggregate of the "
        "representations of all parties, roams from neighbour to neighbour; each party it visits "
        "updates its own block of the model. "
        "Several tokens can roam in parallel and sync at a server (mtcd), one can roam without a "
        "server (stcd), the server can poll all parties in every round (svfl), all neighbours can "
        "exchange messages in every iteration (dcpa), or sums can go up and down a spanning tree "
        "(tree-cg).\n\n"
        "Start with: [bold]mtcd demo[/bold], then write a config and [bold]mtcd train[/bold] it."
    ),
    epilog="Exit codes: 0 success, 1 the training diverged, 2 the input is invalid, 130 interrupted.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for commands in (training, models):
    app.add_typer(commands)
# features bring their own commands: one that is not installed has none
for feature in features.every():
    for name, home in feature.commands.items():
        app.add_typer(cast(typer.Typer, features.load(home)), name=name or None)


def _version(asked: bool) -> None:
    if asked:
        from mtcd import __version__

        typer.echo(f"mtcd {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of the program itself."""


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line. Invalid input prints one paragraph on standard error and exits with
    code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # a terminal that cannot show a Greek letter gets a '?'
            stream.reconfigure(errors="replace")
    if arguments is None:
        arguments = sys.argv[1:]

    try:
        app(with_ray_address(arguments), prog_name="mtcd")
    except MtcdError as error:
        # imported here: every command would wait for it otherwise, also 'mtcd --version'
        from rich.console import Console

        from mtcd.core.terminal.text import escape

        Console(stderr=True).print(
            f"[bold red]Error:[/] {escape(str(error))}", highlight=False, soft_wrap=True
        )
        sys.exit(2)
    except MemoryError:
        # plain text, for which there is memory
        typer.echo("Error: out of memory. Use fewer samples, features or tokens.", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT, as shells have it
