"""mtcd federation demo: a whole federation on this machine, one process for each party."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import typer

from mtcd.core.errors import MtcdError
from mtcd.core.files import check_folder
from mtcd.core.optional import find
from mtcd.core.terminal.screen import screen
from mtcd.federation.commands.example import Example, write_example
from mtcd.federation.names import SERVER
from mtcd.federation.processes import Processes
from mtcd.models.glm.model import Glm
from mtcd.models.glm.training import best_objective


def run_demo(out: Path, parties: int, server: bool, seed: int, iterations: int) -> None:
    """Create tables and kits, start all processes, train, and compare with
    the optimum."""
    find("mtcd.federation.node.link")  # raises with installation advice
    administrator, own = find("mtcd.federation.administrator"), find("mtcd.models.glm.party.block")
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    example = write_example(out, parties, server, seed, iterations)
    administrator.init_federation(example.file, out / "kits", 365)
    names = [*example.tables, *([SERVER] if server else [])]
    how = "tokens sync at a server" if server else "one token roams, without any server"
    typer.echo(
        f"{parties} clinics, each a process with its own table; {how}. All files are in {out}."
    )
    processes = Processes(out / "kits", example.tables, typer.echo)
    began = time.monotonic()
    try:
        processes.start(*names)
        failed = [name for name, code in processes.wait().items() if code]
    finally:
        processes.end()
    if failed:
        raise MtcdError(
            f"{', '.join(failed)} failed: see the output above, and log.jsonl in "
            f"{out}/kits/NAME/run."
        )
    seconds = time.monotonic() - began
    blocks = {name: own.read_block(out / "kits" / name / "run") for name in example.tables}
    gap = _gap(example, blocks)
    screen.print(
        f"Trained in {seconds:.0f} s. Together, the blocks of the clinics are within {gap:.1e} of "
        f"the optimum on the "
        "pooled data, which no clinic has. Each clinic keeps its own block in "
        "kits/NAME/run/block.csv.",
        highlight=False,
        soft_wrap=True,
    )


def _gap(example: Example, blocks: dict[str, Any]) -> float:
    """(f - f*)/f* of the model that the blocks form together; only the demo has access to all of
    them."""
    model = Glm("logistic", l2=example.l2)
    problem = model.problem(example.data)
    best = best_objective(example.data, model, problem)
    held = problem.evaluate([np.asarray(block.theta) for block in blocks.values()])
    return abs(held - best) / best
