"""docs/federation-tutorial.md: its commands run as they stand, and print what it says that they
print."""

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ports import reserved_ports
from project import ROOT
from waiting import PATIENCE, until

for package in ("cryptography", "private_set_intersection"):
    pytest.importorskip(package)

TUTORIAL = ROOT / "docs" / "federation-tutorial.md"
BLOCKS = re.compile(r"^```(sh|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORTS = re.compile(r"127\.0\.0\.1:(\d+)")


def steps() -> list[tuple[str, str]]:
    """The commands of the tutorial, each block with what it is said to print; on ports that are
    free here."""
    text = TUTORIAL.read_text(encoding="utf-8")
    ports = sorted(set(PORTS.findall(text)))
    free = dict(zip(ports, reserved_ports(len(ports)), strict=True))
    blocks = BLOCKS.findall(PORTS.sub(lambda found: f"127.0.0.1:{free[found[1]]}", text))
    kinds = [kind for kind, _ in blocks]
    assert kinds == ["sh", "text"] * (len(kinds) // 2), "every command has its output below it"
    return [(blocks[i][1], blocks[i + 1][1]) for i in range(0, len(blocks), 2)]


def lines(text: str) -> Counter[str]:
    """What was printed, without numbers, which differ from time to time, and without the frames of
    tables."""
    plain = re.sub(r"[\u2500-\u257f]", " ", re.sub(r"-?[0-9][0-9.:]*", "", text))
    return Counter(line for line in (" ".join(line.split()) for line in plain.splitlines()) if line)


def until_printed(expected: str, screen: Path, start: int) -> None:
    def missing() -> Counter[str]:
        return lines(expected) - lines(screen.read_text(encoding="utf-8")[start:])

    assert until(lambda: not missing()), (
        list(missing()),
        screen.read_text(encoding="utf-8")[start:],
    )


def run_tutorial(folder: Path) -> None:
    """All of its commands in one shell, each block when what the one before prints has appeared."""
    (folder / "bin").mkdir()
    (folder / "bin" / "mtcd").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mtcd "$@"\n')
    (folder / "bin" / "mtcd").chmod(0o755)
    (folder / "work").mkdir()
    screen = folder / "screen"
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    wide = {
        "COLUMNS": "200",
        "PYTHONUNBUFFERED": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    with screen.open("wb") as output:
        shell = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder / "work",
            env={**os.environ, **wide, "PATH": path},
            text=True,
            start_new_session=True,
        )
    try:
        for commands, expected in steps():
            start = len(screen.read_text(encoding="utf-8"))
            shell.stdin.write(commands)
            shell.stdin.flush()
            until_printed(expected, screen, start)
        shell.stdin.close()
        assert shell.wait(PATIENCE) == 0
    finally:
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.wait()
    assert "Traceback" not in screen.read_text(encoding="utf-8")
    assert "Error" not in screen.read_text(encoding="utf-8")


def test_the_tutorial_works_and_ends_at_the_optimum_of_both_tables_together(tmp_path: Path) -> None:
    run_tutorial(tmp_path)
    work = tmp_path / "work"
    joined = pl.read_csv(work / "clinic.csv").join(pl.read_csv(work / "lab.csv"), on="patient")
    new = pl.read_csv(work / "clinic_new.csv").join(pl.read_csv(work / "lab_new.csv"), on="patient")
    blocks = [
        pl.read_csv(work / "bundles" / name / "run" / "block.csv", truncate_ragged_lines=True)
        for name in ("clinic", "lab")
    ]
    block = pl.concat(blocks)
    intercept = block.filter(pl.col("column") == "(intercept)")["coefficient"].item()
    block = block.filter(pl.col("mean").is_not_null())
    theta, mean, scale = (block[name].to_numpy() for name in ("coefficient", "mean", "scale"))

    def represent(table: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        features = (table.select(block["column"].to_list()).to_numpy() - mean) / scale
        return features, features @ theta + intercept

    features, z = represent(joined)
    # of the loss: the gradient is zero at the optimum
    slope = 1 / (1 + np.exp(-z)) - joined["ill"].to_numpy()
    np.testing.assert_allclose(features.T @ slope + 1.0 * theta, 0, atol=1e-6)
    np.testing.assert_allclose(slope.sum(), 0, atol=1e-6)
    told = pl.read_csv(work / "predictions.csv").join(new, left_on="id", right_on="patient")
    assert len(told) == 20
    assert told["prediction"].to_list() == (represent(told)[1] > 0).astype(int).tolist()
