"""mtcd federation: the administrator's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mtcd.extras import find

federation = typer.Typer(
    help=(
        "Found a federation: parties on their own hosts that train together.\n\n"
        "From one file that names the parties, [bold]init[/bold] makes a certificate authority and a kit for each of "
        "them. The folder authority stays with the administrator; each kit goes to its party, and to nobody else."
    ),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Kits = Annotated[Path, typer.Argument(metavar="KITS", help="The folder that init made.")]
PartyName = Annotated[str, typer.Argument(metavar="NAME", help="A party of the federation, server or operator.")]
Days = Annotated[int, typer.Option(metavar="N", help="How long certificates last.")]


@federation.command()
def init(
    file: Annotated[
        Path, typer.Argument(metavar="FEDERATION.yaml", help="Who takes part, where, and what is trained.")
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new or empty folder for the kits.")] = Path("kits"),
    days: Days = 365,
) -> None:
    """Make the authority, and one kit for each party."""
    administrator = find("mtcd.federation.administrator")
    authority, notes = administrator.init_federation(file, out, days)
    from mtcd.cli.show import screen, show_notes

    show_notes(notes)
    names = authority.federation.members
    screen.print(f"{len(names)} kits are in {out}: {', '.join(names)}.", highlight=False, markup=False, soft_wrap=True)
    screen.print(
        f"Give each to its party over a safe way, then delete it here. Keep {out / 'authority'} to yourself: whoever "
        "has it can join. Each README.txt says what to do.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@federation.command()
def renew(kits: Kits, name: PartyName, days: Days = 365) -> None:
    """Give a party a new key and certificate: before the old one expires, or after it was revoked."""
    standing = find("mtcd.federation.administrator").renew(kits, name, days)
    from mtcd.cli.show import screen

    screen.print(
        f"{kits / name} has a new key and certificate, until {standing.until:%Y-%m-%d}. Give it to {name}. If the last "
        "certificate was revoked, give the new party.yaml to the others too.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@federation.command()
def revoke(kits: Kits, name: PartyName) -> None:
    """Let the certificates of a party count no more, when its key was seen by others or it has left."""
    new = find("mtcd.federation.administrator").revoke(kits, name)
    from mtcd.cli.show import screen

    told = "is revoked" if new else "was revoked before; the kits are up to date"
    screen.print(
        f"{name} {told}. Give party.yaml and revoked.pem to all others: from their next start they refuse it. "
        f"To let {name} in again: mtcd federation renew {kits} {name}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@federation.command()
def move(
    kits: Kits,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A party of the federation, or server.")],
    address: Annotated[str, typer.Argument(metavar="HOST:PORT", help="Where others find it from now on.")],
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Where it listens from now on, if that is not the same.")
    ] = None,
    days: Days = 365,
) -> None:
    """Let a party be found at another address; on another host it gets a new key and certificate."""
    place, new_key = find("mtcd.federation.administrator").move(kits, name, address, listen, days)
    from mtcd.cli.show import screen

    own = f"Give {kits / name} to {name}: it has a new key and certificate." if new_key else "Its certificate stays."
    screen.print(
        f"{name} is now at {place.address} and listens at {place.listen or place.address}. {own} Give the new "
        "party.yaml to everybody; it counts from their next start.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@federation.command("list")
def show(kits: Kits, as_json: Annotated[bool, typer.Option("--json", help="As one line of JSON.")] = False) -> None:
    """Show everybody: address, until when the certificate counts, whether it was revoked."""
    standings = find("mtcd.federation.administrator").standings(kits)
    if as_json:
        import json

        rows = [
            {"name": s.name, "address": s.address, "until": s.until.isoformat(), "state": s.state} for s in standings
        ]
        typer.echo(json.dumps(rows))
        return
    from mtcd.cli.show import screen
    from mtcd.report.screen_table import ScreenTable

    rows_shown = [[s.name, s.address or "", f"{s.until:%Y-%m-%d}", str(s.days_left), s.state] for s in standings]
    titles = ["name", "address", "until", "days left", "certificate"]
    screen.print(ScreenTable(titles, rows_shown, words=["name", "address", "until", "certificate"]))


OperatorKit = Annotated[
    Path, typer.Argument(metavar="KITS", help="The operator's kit, or the folder of kits that it is in.")
]
Json = Annotated[bool, typer.Option("--json", help="As JSON, one line each.")]


@federation.command()
def status(
    kits: OperatorKit = Path("kits"),
    as_json: Json = False,
    every: Annotated[
        float | None, typer.Option(metavar="SECONDS", min=0.1, help="Again and again, until all have ended.")
    ] = None,
) -> None:
    """Show who is up, where the tokens are, hops, objective, gap and cost."""
    from mtcd.cli.federation_watch import show_status

    raise typer.Exit(show_status(kits, as_json, every))


@federation.command()
def stop(kits: OperatorKit = Path("kits")) -> None:
    """Ask everybody to stop; the run ends with the model that the parties hold."""
    from mtcd.cli.federation_watch import stop_all

    stop_all(kits)


@federation.command()
def logs(kits: OperatorKit = Path("kits"), as_json: Json = False) -> None:
    """Show what everybody logged, in one place and in the order of time."""
    from mtcd.cli.federation_watch import show_logs

    show_logs(kits, as_json)


@federation.command()
def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new or empty folder for tables, kits and runs.")] = Path(
        "runs/federation"
    ),
    parties: Annotated[int, typer.Option(metavar="K", min=2, max=64, help="How many clinics.")] = 4,
    server: Annotated[bool, typer.Option(help="With a server (mtcd), or without any (stcd).")] = True,
    iterations: Annotated[int, typer.Option(metavar="N", min=1, help="Hops per token.")] = 2000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of data and walks.")] = 0,
) -> None:
    """Start a whole federation on this machine, one process for each party, and train."""
    from mtcd.cli.federation_demo import run_demo

    run_demo(out, parties, server, seed, iterations)
