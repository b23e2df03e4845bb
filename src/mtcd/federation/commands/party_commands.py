"""The commands that take part in a federation: a party, and the server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtcd.core.terminal.options import AgreeCode, Code, Quiet
from mtcd.federation.commands.exit_codes import described

parties = typer.Typer()

Stay = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0,
        help="After the end, stay for so long to answer 'mtcd federation status', also on behalf of "
        "those who left.",
    ),
]
Check = Annotated[
    bool,
    typer.Option(
        "--check",
        help="Only check what the run needs here: packages, certificate, table, columns, labels, "
        "addresses, clock.",
    ),
]
Metrics = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Serve /metrics for Prometheus and /healthz at this address; a port alone is one of "
        "127.0.0.1.",
    ),
]
RunDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Folder for journal, log and result. Default: BUNDLE/run."),
]


@parties.command(
    help=(
        "Take part in a federation with the bundle of a party: wait for the other parties, align "
        "samples, train, and save this party's block of the model.\n\n"
        "A party that crashes resumes from its journal when it is restarted. Ctrl-C leaves the "
        "run; the other parties continue."
    ),
    epilog=described("party"),
)
def party(
    bundle: Annotated[
        Path,
        typer.Argument(
            metavar="BUNDLE", help="The folder that the administrator gave to this party."
        ),
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="TABLE", help="This party's own table, instead of the one the bundle names."
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="The column with the ids.")
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(metavar="A,B,...", help="The columns to train on. Default: all others."),
    ] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column with the labels, for the party that holds them."
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", help="The column with the weights of samples, at the same party."
        ),
    ] = None,
    prepare: Annotated[
        str | None,
        typer.Option(
            metavar="auto|FILE",
            help="Prepare texts, dates and missing values: automatically, or by the recipe in a "
            "YAML file.",
        ),
    ] = None,
    code: Code = None,
    agree_code: AgreeCode = None,
    out: RunDir = None,
    metrics: Metrics = None,
    stay: Stay = 0,
    check: Check = False,
    quiet: Quiet = False,
) -> None:
    """Take part in a federation."""
    from mtcd.federation.commands.party import PartyOptions, check_party, run_party

    codes = code or (), agree_code or ()
    options = PartyOptions(
        bundle, data, key, columns, label, out, quiet, *codes, prepare, weights, metrics, stay
    )
    raise typer.Exit((check_party if check else run_party)(options))


@parties.command(epilog=described("server"))
def server(
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="The folder bundles/server.")],
    code: Code = None,
    agree_code: AgreeCode = None,
    out: RunDir = None,
    metrics: Metrics = None,
    stay: Stay = 0,
    check: Check = False,
    quiet: Quiet = False,
) -> None:
    """Run the server of a federation, at which tokens sync. The server sees neither data nor
    hops."""
    from mtcd.federation.commands.party import PartyOptions, check_party, run_party

    options = PartyOptions(
        bundle,
        out=out,
        quiet=quiet,
        code=code or (),
        agreed=agree_code or (),
        metrics=metrics,
        stay=stay,
    )
    raise typer.Exit((check_party if check else run_party)(options, server=True))
