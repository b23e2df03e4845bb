"""mtcd federation demo: a whole federation on this machine, one process for each party.

Its data are synthetic: clinics with different features of partly the same people.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import typer
import yaml
from numpy.typing import NDArray

from mtcd.core.errors import MtcdError
from mtcd.core.files import check_folder
from mtcd.core.optional import find
from mtcd.core.seeding import stream
from mtcd.core.terminal.screen import screen
from mtcd.data.synthetic import synthetic
from mtcd.data.vertical import VerticalData
from mtcd.federation.names import SERVER
from mtcd.federation.participant.kinds import party_kind
from mtcd.federation.processes import Processes, free_ports

SAMPLES, FEATURES, L2 = 300, 5, 1.0
STRANGERS = 20  # rows per table that no other table has


@dataclass(frozen=True)
class Example:
    """The federation file, the tables, and the pooled data of the common people, which no clinic
    has."""

    file: Path
    tables: dict[str, Path]
    data: VerticalData
    l2: float = L2


def write_example(folder: Path, parties: int, server: bool, seed: int, iterations: int) -> Example:
    """Write the tables and the federation file into a folder."""
    data = synthetic("logistic", SAMPLES, FEATURES * parties, parties, seed=seed)
    names = []
    for k in range(parties):
        # Letters read better than numbers, as long as there are enough of them.
        letter_or_number = chr(ord("a") + k) if parties <= 26 else str(k + 1)
        names.append(f"clinic_{letter_or_number}")
    people = [f"person-{i:05d}" for i in range(SAMPLES)]
    tables = {}
    for k, name in enumerate(names):
        tables[name] = folder / f"{name}.csv"
        columns = {f"feature_{j + 1}": np.asarray(data.blocks[k])[:, j] for j in range(FEATURES)}
        # The first clinic holds the labels, in a column of its table as a real one would.
        if k == 0:
            columns["outcome"] = np.asarray(data.labels)
        _with_strangers(name, people, columns, stream(seed, "example", k)).write_csv(tables[name])
    file = folder / "federation.yaml"
    file.write_text(yaml.safe_dump(_file(names, server, seed, iterations), sort_keys=False))
    return Example(file, tables, data)


def _with_strangers(
    name: str, people: list[str], columns: dict[str, NDArray[np.float64]], draw: np.random.Generator
) -> pl.DataFrame:
    """The table of a clinic: the common people and some of its own, in random order."""
    ids = [*people, *(f"{name}-only-{i}" for i in range(STRANGERS))]
    table = {"person": ids}
    for column, values in columns.items():
        # The rows of strangers are copies of values that occur, so that they stand out nowhere.
        copied = values[draw.integers(len(people), size=STRANGERS)]
        table[column] = [*values.tolist(), *copied.tolist()]
    # Shuffled: otherwise the demo would also work if alignment did nothing.
    return pl.DataFrame(table).select(pl.all().gather(draw.permutation(len(ids)).tolist()))


def _file(names: list[str], server: bool, seed: int, iterations: int) -> dict[str, object]:
    ports = free_ports(len(names) + 1)
    method: dict[str, object] = {"kind": "stcd", "local_updates": 5}
    if server:
        # Two tokens need parties enough to be at different places.
        tokens = 2 if len(names) > 3 else 1
        method = {
            "kind": "mtcd",
            "tokens": tokens,
            "hops": 2 * len(names),
            "combine": "average",
            "local_updates": 5,
        }
    content: dict[str, object] = {
        "name": "clinics",
        "parties": {
            name: {"address": f"127.0.0.1:{port}", "data": {"id": "person"}}
            for name, port in zip(names, ports, strict=False)
        },
        "labels": {"held_by": names[0], "column": "outcome", "shared_with": "parties"},
        "alignment": "psi",
        "network": {"kind": "cycle" if len(names) > 2 else "path"},
        "model": {"kind": "logistic", "l2": L2},
        "method": method,
        "stop": {"iterations": iterations},
        "seed": seed,
    }
    if server:
        content["server"] = f"127.0.0.1:{ports[-1]}"
    return content


def run_demo(out: Path, parties: int, server: bool, seed: int, iterations: int) -> None:
    """Create tables and bundles, start all processes, train, and compare with the optimum."""
    find("mtcd.federation.node.link")  # raises with installation advice
    administrator = find("mtcd.federation.administrator")
    check_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    example = write_example(out, parties, server, seed, iterations)
    administrator.init_federation(example.file, out / "bundles", 365)
    names = list(example.tables)
    how = "one token roams, without any server"
    if server:
        names.append(SERVER)
        how = "tokens sync at a server"
    typer.echo(
        f"{parties} clinics, each a process with its own table; {how}. All files are in {out}."
    )
    processes = Processes(out / "bundles", example.tables, typer.echo)
    began = time.monotonic()
    try:
        processes.start(*names)
        failed = [name for name, code in processes.wait().items() if code]
    finally:
        # Also after Ctrl-C: processes left behind would keep the ports.
        processes.end()
    if failed:
        # The exit codes are all that this process knows of the others; the reasons are in their
        # logs.
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
