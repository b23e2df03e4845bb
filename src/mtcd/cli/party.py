"""mtcd party, mtcd server: run one party of a federation, or its server, with its kit (credentials bundle)."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from mtcd.config.yaml_file import read_yaml
from mtcd.errors import ConfigError
from mtcd.extras import find
from mtcd.prepare.recipe import AUTO, read_recipe


@dataclass(frozen=True)
class PartyOptions:
    """The options of ``mtcd party`` and ``mtcd server``."""

    kit: Path
    data: Path | None = None
    id: str | None = None
    columns: str | None = None
    label: str | None = None
    out: Path | None = None
    quiet: bool = False
    code: Sequence[Path] = ()
    agreed: Sequence[str] = ()
    prepare: str | None = None
    weights: str | None = None
    metrics: str | None = None
    stay: float = 0.0


def run_party(options: PartyOptions, server: bool = False) -> int:
    """Take part until the run has ended; returns the exit code."""
    signal.signal(signal.SIGTERM, interrupt)
    kit = find("mtcd.federation.kit").read_kit(options.kit, options.code, options.agreed)
    config = kit.config
    if config.is_operator or config.is_server != server:
        command = (
            "mtcd federation status" if config.is_operator else "mtcd server" if config.is_server else "mtcd party"
        )
        raise ConfigError(f"{options.kit} is the kit of {config.name}: use {command} with it.")
    with ExitStack() as open_ones:
        monitoring = None
        if options.metrics is not None:
            monitoring = find("mtcd.federation.node.monitoring").Monitoring(options.metrics)
            open_ones.enter_context(monitoring)
        participant = find("mtcd.federation.node.participant").make_participant(kit, _given(options))
        out = options.out or own_run(options.kit)
        node = find("mtcd.federation.node.node").Node(kit, out, participant, None if options.quiet else typer.echo)
        node.stay_seconds = options.stay
        if monitoring is not None:
            monitoring.watch(node)
        status: str = node.run()
    return 1 if status == "diverged" else 0


def own_run(kit: Path) -> Path:
    """The run folder in a kit. A symbolic link, which the kit may have come with, is refused."""
    run = kit / "run"
    if run.is_symlink():
        raise ConfigError(f"{run} is a symbolic link: name the folder that it points to yourself (--out, or --run).")
    return run


def _given(options: PartyOptions) -> dict[str, Any]:
    """The options that override the ``data`` section of the kit."""
    columns = None if options.columns is None else [name.strip() for name in options.columns.split(",")]
    return {
        "data": options.data,
        "key": options.id,
        "columns": columns,
        "label": options.label,
        "prepare": _recipe(options.prepare),
        "weights": options.weights,
    }


def _recipe(given: str | None) -> Any:
    """What ``--prepare`` says: auto, or the content of a file; it is checked before the table is read."""
    if given is None or given == AUTO:
        return given
    content = read_yaml(Path(given), "recipe", "columns, default, on_unseen")
    read_recipe(content)
    return content


def interrupt(*_: Any) -> None:
    """Handle SIGTERM as Ctrl-C."""
    raise KeyboardInterrupt
