"""mtcd party, mtcd server: one party of a federation, on its own host."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from mtcd.errors import ConfigError
from mtcd.extras import find


@dataclass(frozen=True)
class Wish:
    """What the command line asked for."""

    kit: Path
    data: Path | None = None
    id: str | None = None
    columns: str | None = None
    label: str | None = None
    out: Path | None = None
    quiet: bool = False
    code: Sequence[Path] = ()
    agreed: Sequence[str] = ()


def run_party(wish: Wish, server: bool = False) -> int:
    """Take part until the run has ended; returns the exit code."""
    signal.signal(signal.SIGTERM, interrupt)
    kit = find("mtcd.federation.kit").read_kit(wish.kit, wish.code, wish.agreed)
    config = kit.config
    if config.is_operator or config.is_server != server:
        others = "mtcd federation status" if config.is_operator else "mtcd server" if config.is_server else "mtcd party"
        raise ConfigError(f"{wish.kit} is the kit of {config.name}: use {others} with it.")
    participant = find("mtcd.federation.node.participant").make_participant(kit, _given(wish))
    out = wish.out or own_run(wish.kit)
    node = find("mtcd.federation.node.node").Node(kit, out, participant, None if wish.quiet else typer.echo)
    status: str = node.run()
    return 1 if status == "diverged" else 0


def own_run(kit: Path) -> Path:
    """The run folder in a kit. A link to elsewhere may be the administrator's: such a folder must be named."""
    run = kit / "run"
    if run.is_symlink():
        raise ConfigError(f"{run} is a symbolic link: name the folder that it stands for yourself (--out, or --run).")
    return run


def _given(wish: Wish) -> dict[str, Any]:
    """What goes before what the kit says of the table."""
    columns = None if wish.columns is None else [name.strip() for name in wish.columns.split(",")]
    return {"data": wish.data, "key": wish.id, "columns": columns, "label": wish.label}


def interrupt(*_: Any) -> None:
    """Being asked to end is like Ctrl-C."""
    raise KeyboardInterrupt
