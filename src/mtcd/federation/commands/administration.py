"""mtcd federation: the administrator's commands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from mtcd.core import features
from mtcd.core.errors import MtcdError
from mtcd.core.optional import find
from mtcd.federation.commands.exit_codes import described

federation = typer.Typer(
    help=(
        "Set up and operate a federation: parties on their own hosts that train together.\n\n"
        "From one file that lists the parties, [bold]init[/bold] creates a certificate authority "
        "and a credentials bundle for each party. The folder authority stays with the "
        "administrator; each bundle is sent to its party only."
    ),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Bundles = Annotated[Path, typer.Argument(metavar="BUNDLES", help="The folder that init created.")]
PartyName = Annotated[
    str, typer.Argument(metavar="NAME", help="A party of the federation, server or operator.")
]
Days = Annotated[int, typer.Option(metavar="N", help="Days for which certificates are valid.")]


@federation.command(epilog=described("federation init"))
def init(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FEDERATION.yaml", help="The parties, their addresses, and the training."
        ),
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="A new or empty folder for the bundles.")
    ] = Path("bundles"),
    days: Days = 365,
) -> None:
    """Create the authority, and one bundle for each party."""
    administrator = find("mtcd.federation.administrator")
    authority, notes = administrator.init_federation(file, out, days)
    # Imported here: the help of the command line must not wait for it.
    from mtcd.core.terminal.screen import screen, show_notes

    show_notes(notes)
    names = authority.federation.members
    screen.print(
        f"{len(names)} bundles are in {out}: {', '.join(names)}.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    screen.print(
        "Send each bundle to its party over a secure channel, then delete it here. Keep "
        f"{out / 'authority'} private: anyone who has it can join. The README.txt of each bundle "
        "lists the next steps.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@federation.command(epilog=described("federation renew"))
def renew(bundles: Bundles, name: PartyName, days: Days = 365) -> None:
    """Give a party a new key and certificate: before the old one expires, or after it was
    revoked."""
    standing = find("mtcd.federation.administrator").renew(bundles, name, days)
    from mtcd.core.terminal.screen import screen

    screen.print(
        f"{bundles / name} has a new key and certificate, valid until {standing.until:%Y-%m-%d}. "
        f"Send it to {name}. If the last certificate was revoked, send the new party.yaml to the "
        "others too.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@federation.command(epilog=described("federation revoke"))
def revoke(bundles: Bundles, name: PartyName) -> None:
    """Revoke the certificates of a party, after its key was compromised or the party has left."""
    new = find("mtcd.federation.administrator").revoke(bundles, name)
    from mtcd.core.terminal.screen import screen

    outcome = "is revoked" if new else "was revoked before; the bundles are up to date"
    screen.print(
        f"{name} {outcome}. Send party.yaml and revoked.pem to all others: they refuse {name} from "
        f"their next start. To readmit {name}: mtcd federation renew {bundles} {name}",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@federation.command(epilog=described("federation move"))
def move(
    bundles: Bundles,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A party of the federation, or server.")
    ],
    address: Annotated[
        str, typer.Argument(metavar="HOST:PORT", help="The new address of the party.")
    ],
    listen: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="The new listening address, if it differs."),
    ] = None,
    days: Days = 365,
) -> None:
    """Change the address of a party; a party on another host gets a new key and certificate."""
    place, new_key = find("mtcd.federation.administrator").move(
        bundles, name, address, listen, days
    )
    from mtcd.core.terminal.screen import screen

    own = "Its certificate stays."
    if new_key:
        own = f"Send {bundles / name} to {name}: it has a new key and certificate."
    screen.print(
        f"{name} is now at {place.address} and listens at {place.listen or place.address}. {own} "
        "Send the new party.yaml to all parties; it takes effect at their next start.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )


@federation.command("list", epilog=described("federation list"))
def show(
    bundles: Bundles,
    as_json: Annotated[bool, typer.Option("--json", help="As one line of JSON.")] = False,
) -> None:
    """List all members: address, expiry date and state of the certificate."""
    standings = find("mtcd.federation.administrator").standings(bundles)
    if as_json:
        import json

        # One object per line, with ISO times: for scripts, which must not depend on widths of
        # columns.
        rows = [
            {"name": s.name, "address": s.address, "until": s.until.isoformat(), "state": s.state}
            for s in standings
        ]
        typer.echo(json.dumps(rows))
        return
    from mtcd.core.terminal.screen import screen
    from mtcd.core.terminal.table import ScreenTable

    rows_shown = [
        [s.name, s.address or "", f"{s.until:%Y-%m-%d}", str(s.days_left), s.state]
        for s in standings
    ]
    titles = ["name", "address", "until", "days left", "certificate"]
    screen.print(ScreenTable(titles, rows_shown, words=["name", "address", "until", "certificate"]))


BackupFile = Annotated[Path, typer.Argument(metavar="FILE", help="The backup, a tar file.")]


@federation.command(epilog=described("federation backup"))
def backup(
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="The bundle of a party that is stopped.")
    ],
    file: BackupFile,
    run: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Its run folder. Default: BUNDLE/run.")
    ] = None,
) -> None:
    """Back up a stopped party: its bundle and its run folder, with journal and model. It contains
    private keys."""
    has_run = find("mtcd.federation.backup").back_up(bundle, file, run)
    runs = "and its run folder" if has_run else "(there is no run folder)"
    typer.echo(
        f"{file} contains {bundle} {runs}, but not its table. Keep it private: it contains the "
        "key. Once this party runs again, its journal is out of date."
    )


@federation.command(epilog=described("federation restore"))
def restore(
    file: BackupFile,
    bundle: Annotated[
        Path, typer.Argument(metavar="BUNDLE", help="A new or empty folder for the bundle.")
    ],
) -> None:
    """Restore a party from its backup: the bundle, and its run folder as BUNDLE/run."""
    has_run = find("mtcd.federation.backup").restore(file, bundle)
    with_run, note = "", ""
    if has_run:
        # The others know how far this party had come, and refuse one that has forgotten a part.
        with_run = ", with its run folder"
        note = " If the party has run since the backup was made, the others refuse it with this folder."
    typer.echo(f"{bundle} is restored{with_run}.{note}")


OperatorBundle = Annotated[
    Path,
    typer.Argument(
        metavar="BUNDLES", help="The operator's bundle, or the folder of bundles that it is in."
    ),
]
Timeout = Annotated[
    float,
    typer.Option(
        metavar="SECONDS",
        min=0.1,
        help="Wait so long for a connection to a party; one that is connected has at least 5 "
        "seconds to answer.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON, one line each.")]


@federation.command(epilog=described("federation status"))
def status(
    bundles: OperatorBundle = Path("bundles"),
    as_json: Json = False,
    every: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0.1, help="Refresh at this interval, until all have ended."
        ),
    ] = None,
    timeout: Timeout = 2.0,
) -> None:
    """Show which parties are up, the locations of the tokens, hops, objective, gap and cost."""
    from mtcd.federation.commands.operator import show_status

    raise typer.Exit(show_status(bundles, as_json, every, timeout))


@federation.command(epilog=described("federation stop"))
def stop(bundles: OperatorBundle = Path("bundles"), timeout: Timeout = 5.0) -> None:
    """Ask all parties to stop; the run ends with the model that they hold. Says what each party
    does."""
    from mtcd.federation.commands.operator import stop_all

    raise typer.Exit(stop_all(bundles, timeout))


@federation.command(epilog=described("federation logs"))
def logs(
    bundles: OperatorBundle = Path("bundles"), as_json: Json = False, timeout: Timeout = 5.0
) -> None:
    """Show the logs of all parties, merged by time."""
    from mtcd.federation.commands.operator import show_logs

    raise typer.Exit(show_logs(bundles, as_json, timeout))


@federation.command(epilog=described("federation dashboard"))
def dashboard(
    bundles: OperatorBundle = Path("bundles"),
    address: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where to serve the page. Port 0: a free one.")
    ] = "127.0.0.1:0",
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    every: Annotated[
        float, typer.Option(metavar="SECONDS", min=0.1, help="Ask all parties at this interval.")
    ] = 1.0,
    timeout: Timeout = 2.0,
) -> None:
    """Serve a web page of the whole federation: parties, tokens, curves and costs, until Ctrl-C."""
    # The dashboard is a feature of its own (reporting), which registers itself here.
    pages = features.parts("mtcd.federation_pages")
    if "dashboard" not in pages:
        raise MtcdError("This mtcd has no dashboard. To see the parties: mtcd federation status")

    show: Any = features.load(pages["dashboard"])
    show(bundles, address, open_, every, timeout)


@federation.command(epilog=described("federation demo"))
def demo(
    out: Annotated[
        Path,
        typer.Option(metavar="DIR", help="A new or empty folder for tables, bundles and runs."),
    ] = Path("runs/federation"),
    parties: Annotated[int, typer.Option(metavar="K", min=2, max=64, help="How many clinics.")] = 4,
    server: Annotated[
        bool, typer.Option(help="With a server (mtcd), or without any (stcd).")
    ] = True,
    iterations: Annotated[int, typer.Option(metavar="N", min=1, help="Hops per token.")] = 2000,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of data and walks.")] = 0,
) -> None:
    """Start a whole federation on this machine, one process for each party, and train."""
    from mtcd.federation.commands.demo import run_demo

    run_demo(out, parties, server, seed, iterations)
