"""mtcd federation demo: a whole federation on this machine, one process for each party."""

from __future__ import annotations

import time
from pathlib import Path

import typer

from mtcd.errors import MtcdError
from mtcd.extras import find
from mtcd.federation.example import write_example
from mtcd.federation.names import SERVER
from mtcd.federation.processes import Processes
from mtcd.files import check_folder


def run_demo(out: Path, parties: int, server: bool, seed: int, iterations: int) -> None:
    """Make tables and kits, start everybody, train, and compare with the optimum."""
    find("mtcd.federation.node.link")  # says what to install
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    example = write_example(out, parties, server, seed, iterations)
    find("mtcd.federation.founder").init_federation(example.file, out / "kits", 30)
    names = [*example.tables, *([SERVER] if server else [])]
    typer.echo(f"{len(names)} processes: {', '.join(names)}. Tables, kits and runs are in {out}.")
    processes = Processes(out / "kits", example.tables, typer.echo)
    began = time.monotonic()
    try:
        processes.start(*names)
        failed = [name for name, code in processes.wait().items() if code]
    finally:
        processes.end()
    if failed:
        raise MtcdError(f"{', '.join(failed)} failed: see above, and log.jsonl in {out}/kits/NAME/run.")
    typer.echo(f"Done in {time.monotonic() - began:.1f} s.")
