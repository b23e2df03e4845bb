"""mtcd federation demo: a whole federation on this machine, one process for each party."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from mtcd.core.errors import MtcdError
from mtcd.core.files import check_folder
from mtcd.core.optional import find
from mtcd.core.terminal.screen import screen
from mtcd.federation.commands.example import Example, write_example
from mtcd.federation.names import SERVER
from mtcd.federation.participant.kinds import party_kind
from mtcd.federation.processes import Processes


def run_demo(out: Path, parties: int, server: bool, seed: int, iterations: int) -> None:
    """Create tables and bundles, start all processes, train, and compare with the optimum."""
    find("mtcd.federation.node.link")  # raises with installation advice
    administrator = find("mtcd.federation.administrator")
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    example = write_example(out, parties, server, seed, iterations)
    administrator.init_federation(example.file, out / "bundles", 365)
    names = [*example.tables, *([SERVER] if server else [])]
    how = "tokens sync at a server" if server else "one token roams, without any server"
    typer.echo(
        f"{parties} clinics, each a process with its own table; {how}. All files are in {out}."
    )
    processes = Processes(out / "bundles", example.tables, typer.echo)
    began = time.monotonic()
    try:
        processes.start(*names)
        failed = [name for name, code in processes.wait().items() if code]
    finally:
        processes.end()
    if failed:
        raise MtcdError(
            f"{', '.join(failed)} failed: see the output above, and log.jsonl in "
            f"{out}/bundles/NAME/run."
        )
    seconds = time.monotonic() - began
    gap = _gap(example, out / "bundles")
    screen.print(
        f"Trained in {seconds:.0f} s. Together, the blocks of the clinics are within {gap:.1e} of "
        "the optimum on the pooled data, which no clinic has. Each clinic keeps its own block in "
        "bundles/NAME/run/block.csv.",
        highlight=False,
        soft_wrap=True,
    )


def _gap(example: Example, bundles: Path) -> float:
    """(f - f*)/f* of the model that the blocks form together; only the demo has access to all of
    them."""
    read = find("mtcd.federation.credentials.bundle").read_bundle
    model = read(bundles / next(iter(example.tables))).config.model
    kind = party_kind(model)
    blocks = {
        name: kind.block(read(bundles / name), bundles / name / "run") for name in example.tables
    }
    return kind.gap(model, example.data, blocks)
