"""The options that several commands have."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, cast, get_type_hints

import typer

from mtcd.core import features

ConfigFile = Annotated[
    Path,
    typer.Argument(metavar="CONFIG.yaml", help="The data, the model, the network and the method."),
]
Changes = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Change one key of the config, such as method.hops=16. Repeatable.",
    ),
]
Seed = Annotated[
    int | None, typer.Option(metavar="N", min=0, help="Use this seed instead of the config's.")
]
AsJson = Annotated[
    bool, typer.Option("--json", help="End with one line of JSON on standard output.")
]
StyleOption = Annotated[
    str | None,
    typer.Option(
        metavar="STYLE",
        help="paper, or paper:INCHES,POINTS: pictures of that width and size of text, without a title, as PDF for "
        "LaTeX. paper is a column of 3.5 inches with 8 points.",
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace earlier results at --out, also those of another config."),
]
NoTable = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar, no table.")]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        "--jobs",
        metavar="N",
        min=1,
        help="Trainings at the same time. Default: one for each CPU, of the cluster with --ray.",
    ),
]
RayOption = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Train on the Ray cluster at this address; 'auto': the one of RAY_ADDRESS or of 'ray start' on this "
        "machine, if there is one. Without an address, start Ray on this machine.",
    ),
]
RunCode = Annotated[
    bool,
    typer.Option(
        "--run-code", help="Use networks and parts that are not built in, which runs their code."
    ),
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print nothing; the log records all events.")
]
Code = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE.py",
        help="A file with your own networks, if the federation file names some. Repeatable.",
    ),
]
AgreeCode = Annotated[
    list[str] | None,
    typer.Option(
        metavar="SHA256",
        help="Run the file with this sha256 in the folder 'code' of the bundle. Read it first. Repeatable.",
    ),
]


@dataclass(frozen=True)
class ConfigOptions:
    """The options of every command that trains what a config describes."""

    config: Path
    out: Path | None
    changes: list[str]
    seed: int | None
    as_json: bool
    quiet: bool


def with_ray_address(arguments: list[str]) -> list[str]:
    """The command line with an address after each ``--ray`` that has none, which Typer cannot
    express.

    >>> with_ray_address(["sweep", "config.yaml", "--ray", "--seeds", "2"])
    ['sweep', 'config.yaml', '--ray', 'local', '--seeds', '2']
    """
    given: list[str] = []
    # Behind the last argument, a further option stands for the end.
    for argument, following in zip(arguments, [*arguments[1:], "-"], strict=False):
        given.append(argument)
        if argument == "--ray" and following.startswith("-"):
            given.append("local")
    return given


def with_options_of(group: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Have a command take the options that features add, after its own.

    Parameters
    ----------
    group
        The group of ``Feature.parts`` in which features name their dataclasses. The fields of each
        are options of Typer with defaults.

    Returns
    -------
    callable
        A decorator. The command is called with its own options, and in ``more`` with an instance of
        each dataclass.
    """
    kinds = [cast(type[Any], features.load(home)) for home in features.parts(group).values()]

    def extended(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def call(**given: Any) -> None:
            more = []
            for kind in kinds:
                # Taken out, so that the command itself sees no name that it does not know.
                own = {option.name: given.pop(option.name) for option in fields(kind)}
                more.append(kind(**own))

            command(**given, more=more)

        # Typer reads the options from the signature
        signature = inspect.signature(command, eval_str=True)
        parameters = [one for name, one in signature.parameters.items() if name != "more"]
        for kind in kinds:
            parameters += _parameters(kind)

        setattr(call, "__signature__", signature.replace(parameters=parameters))  # noqa: B010
        return call

    return extended


def _parameters(kind: type[Any]) -> list[inspect.Parameter]:
    """The fields of a dataclass as parameters of a function."""
    hints = get_type_hints(kind, include_extras=True)
    found = []
    for option in fields(kind):
        found.append(
            inspect.Parameter(
                option.name,
                inspect.Parameter.POSITIONAL_OR_KEYWORD,
                default=option.default,
                annotation=hints[option.name],
            )
        )
    return found
