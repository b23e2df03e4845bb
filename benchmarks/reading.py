"""Time and peak memory of reading a table, against polars alone: ``python -m benchmarks.reading
[--rows N]``."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.memory import peak

ROWS, COLUMNS, CLIENTS = 1_000_000, 200, 20


def make(folder: Path, rows: int) -> list[Path]:
    """A table of random numbers and 0/1 labels, as CSV and as Parquet."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.standard_normal(rows).round(6) for j in range(COLUMNS)}
    frame = pl.DataFrame({**columns, "y": rng.integers(0, 2, rows)})
    frame.write_csv(folder / "table.csv")
    frame.write_parquet(folder / "table.parquet")
    return [folder / "table.csv", folder / "table.parquet"]


def measure(reader: str, path: Path) -> None:
    """Read the table once, and print seconds and MB as JSON."""
    import polars as pl

    import mtcd

    before, start = peak(), perf_counter()
    if reader == "polars":
        kept: object = pl.read_csv(path) if path.suffix == ".csv" else pl.read_parquet(path)
    else:
        kept = mtcd.read_tables(path, "y", CLIENTS)
    assert kept is not None
    print(json.dumps({"seconds": perf_counter() - start, "mb": peak() - before}))


def _alone(reader: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.reading", "--one", reader, str(path)]
    return dict(
        json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    )


def main(rows: int = ROWS, rounds: int = 3) -> None:
    """A line per format: both readers in processes of their own, taking turns, the best of each."""
    size = rows * COLUMNS * 8 / 2**20
    with tempfile.TemporaryDirectory() as folder:
        for path in make(Path(folder), rows):
            found = [(_alone("mtcd", path), _alone("polars", path)) for _ in range(rounds)]
            ours, floor = (
                {key: min(pair[i][key] for pair in found) for key in ("seconds", "mb")}
                for i in (0, 1)
            )
            print(
                f"{path.suffix[1:]:8} {rows:,} x {COLUMNS}, X {size:,.0f} MB:   "
                f"{ours['seconds']:6.2f} s   "
                f"polars {floor['seconds']:6.2f} s   ratio "
                f"{ours['seconds'] / floor['seconds']:5.2f}   "
                f"peak {ours['mb'] / size:5.2f} X   polars {floor['mb'] / size:5.2f} X"
            )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--one", nargs=2, metavar=("READER", "FILE"))
    given = options.parse_args()
    measure(given.one[0], Path(given.one[1])) if given.one else main(given.rows, given.rounds)
