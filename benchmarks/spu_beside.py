"""Sealed tours beside SecretFlow's SPU: the same table, l2 and objective; bytes, CPU seconds, gap
to the optimum.

SPU pins NumPy and JAX, and its regressions (`sf-sml`) pin an SPU that the package index no longer
has, so both go into an environment of their own (``INSTALL``).

The table is that of ``benchmarks/sealed.py``, with an intercept, as sml always fits one. SPU shares
all columns among its computing parties, whoever owned them, and they run in one process over links
in memory that count bytes and messages. Its settings were chosen in the clear: the defaults; then
the largest step and as many epochs as it takes.

Gradient descent is the only solver of sml's `LogisticRegression`. A program for SPU may do better,
so there is one with steps of Nesterov (``spu_training.py``) on columns that each party has whitened
before it shares them, as it can without any other party. Rate and momentum were chosen in the
clear, too.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import block_diag

import mtcd
from benchmarks.sealed import from_file, stand_in
from mtcd.core.arrays import Array

INSTALL = """    python3.11 -m venv spu && spu/bin/pip install spu==0.9.5 'scikit-learn<1.6' 'pandas<3' 'numpy<2'
    spu/bin/pip install --no-deps sf-sml==0.1.0.dev20250623
    python -m benchmarks.spu_beside spu/bin/python [spambase.csv]"""
L2 = 10.0
LINK = re.compile(r"Link details: total send bytes (\d+), recv bytes \d+, send actions (\d+)")
SETTINGS: tuple[dict[str, Any], ...] = (
    {"sig_type": "sr", "batch_size": 512, "learning_rate": 0.1, "epochs": 20},  # the defaults
    {"sig_type": "sr", "batch_size": 512, "learning_rate": 1.0, "epochs": 50},
    {"sig_type": "real", "batch_size": 512, "learning_rate": 1.0, "epochs": 20},
    {"sig_type": "real", "batch_size": 10**6, "learning_rate": 2.0, "epochs": 180},
)
GAPS = (1e-1, 1e-2, 1e-3, 3.5e-4)
PARTIES = (2, 3)
WHITENED: tuple[tuple[str, int, float, tuple[int, ...]], ...] = (
    ("SEMI2K", 2, 5.6, (14, 24, 31)),
    ("ABY3", 3, 8.0, (21, 28, 32)),
)
"""By protocol: its parties, the rate, and the steps to the last three gaps."""
MOMENTUM = 0.5


@dataclass(frozen=True)
class Measured:
    """Of one training; ``sent`` and ``bytes`` are those of all parties together."""

    how: str
    parties: int
    sent: int
    bytes: float
    seconds: float
    gap: float

    def line(self) -> str:
        return (
            f"| {self.how} | {self.parties} | {self.sent:,} | {self.bytes / 1e6:.1f} | "
            f"{self.seconds:.1f} | "
            f"{self.gap:.2g} |"
        )


def problem(X: Array, y: Array, parties: int) -> tuple[Any, Any]:
    """Table and model: sml does not regularise the intercept, and neither do we."""
    return mtcd.split(X, y, clients=parties), mtcd.Glm("logistic", l2=L2, intercept=True)


def objective(X: Array, y: Array, weights: Array) -> float:
    """f of coefficients with the intercept last."""
    z = X @ weights[:-1] + weights[-1]
    return float(np.logaddexp(0, z).sum() - y @ z + L2 / 2 * weights[:-1] @ weights[:-1])


def by_sml(
    python: Path, protocol: str, given: dict[str, Any], X: Array, y: Array, optimum: float
) -> Measured:
    """Train with sml on SPU."""
    batches = -(-len(y) // given["batch_size"])
    settings = {**given, "penalty": "l2", "C": batches / L2}  # the penalty is added in every batch
    weights, spent = on_spu(python, protocol, settings, X, y, np.zeros((0, 0)))
    batch = "full batch" if batches == 1 else f"batches of {given['batch_size']}"
    how = f"sigmoid `{given['sig_type']}`, {batch}, rate {given['learning_rate']:g}, {given['epochs']} epochs"
    return Measured(f"SPU, {protocol}, {how}", *spent, objective(X, y, weights) / optimum - 1)


def by_nesterov(
    python: Path,
    protocol: str,
    parties: int,
    rate: float,
    steps: int,
    X: Array,
    y: Array,
    optimum: float,
) -> Measured:
    """Train on SPU by steps of Nesterov, on columns that each party has whitened."""
    whitened, back, penalty = whiten(X, parties)
    settings = {"rate": rate, "momentum": MOMENTUM, "steps": steps}
    weights, spent = on_spu(python, protocol, settings, whitened, y, penalty)
    how = f"whitened columns, Nesterov, rate {rate:g}, {steps} steps"
    return Measured(
        f"SPU, {protocol}, {how}", *spent, objective(X, y, back @ weights) / optimum - 1
    )


def whiten(X: Array, parties: int) -> tuple[Array, Array, Array]:
    """The columns, each party's multiplied by a matrix of its own, after which a bound of f over
    them is round.

    The last party also has the column of the intercept. Returns the columns, the matrices of all
    parties, which map coefficients of the new columns to those of the given ones, and that of the
    penalty of the new coefficients.
    """
    samples, columns = X.shape
    found, back, penalties = [], [], []
    for part in np.array_split(np.arange(columns), parties):
        block, ridge = X[:, part], np.full(len(part), L2)
        if columns - 1 in part:
            block, ridge = np.column_stack([block, np.ones(samples)]), np.append(ridge, 0.0)
        curvatures, axes = np.linalg.eigh(block.T @ block / 4 + np.diag(ridge))
        matrix = (axes / np.sqrt(curvatures)) @ axes.T * math.sqrt(samples / 4)
        found.append(block @ matrix)
        back.append(matrix)
        penalties.append(matrix.T @ np.diag(ridge) @ matrix / samples)
    return np.hstack(found), block_diag(*back), block_diag(*penalties)


def on_spu(
    python: Path, protocol: str, settings: dict[str, Any], X: Array, y: Array, penalty: Array
) -> tuple[Array, tuple[int, int, int, float]]:
    """Train on SPU: the coefficients, and its number of parties, messages, bytes and CPU
    seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.npz"
        np.savez(path, X=X, y=y, penalty=penalty)
        script = Path(__file__).with_name("spu_training.py")
        done = subprocess.run(
            [python, script, path, protocol, json.dumps(settings)],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"SPU failed with {settings}:\n{done.stderr[-2000:]}")
    links = [tuple(map(int, one)) for one in LINK.findall(done.stdout + done.stderr)]
    found = json.loads(done.stdout.splitlines()[-1])
    messages, sent = sum(count for _, count in links), sum(size for size, _ in links)
    return np.array(found["weights"]), (len(links), messages, sent, found["seconds"])


def by_tours(X: Array, y: Array, parties: int, gap: float, server: bool) -> Measured:
    """Train by sealed tours, with a server that has the key, or without: then the label holder has
    it."""
    data, model = problem(X, y, parties)
    stop, privacy = mtcd.Stop(gap=gap, iterations=200), mtcd.Privacy(mode="sealed")
    start = time.process_time()
    method = mtcd.MTCD(walk="tour") if server else mtcd.STCD(walk="tour")
    run = mtcd.train(data, model, "complete", method, stop, privacy=privacy, metrics=())
    seconds = time.process_time() - start
    sent, total = run.ledger.messages("sent"), run.ledger.bytes("sent")
    key = "with a server" if server else "without a server"
    how = f"sealed tours {key}, to a gap of {gap:g}: {run.final.iteration} tours"
    return Measured(
        how, parties, sum(sent.values()), sum(total.values()), seconds, run.final.gap or 0.0
    )


def optimum_of(X: Array, y: Array) -> float:
    """f at the optimum; it is kept, so that later trainings on the same table do not compute it
    again."""
    for parties in PARTIES:
        data, model = problem(X, y, parties)
        run = mtcd.train(data, model, "complete", mtcd.STCD(), mtcd.Stop(gap=1e9), metrics=())
    return float(run.final.objective / (1 + (run.final.gap or 0.0)))


def study(python: Path, X: Array, y: Array) -> Iterator[Measured]:
    """All trainings, ours first."""
    optimum = optimum_of(X, y)
    for parties in PARTIES:
        for server in (True, False):
            for gap in GAPS:
                yield by_tours(X, y, parties, gap, server)
    for protocol in ("SEMI2K", "ABY3"):
        for settings in SETTINGS:
            yield by_sml(python, protocol, settings, X, y, optimum)
    for protocol, parties, rate, counts in WHITENED:
        for steps in counts:
            yield by_nesterov(python, protocol, parties, rate, steps, X, y, optimum)


def cannot_run(python: Path) -> str | None:
    """Why this interpreter cannot train on SPU, if it cannot."""
    check = "import sml.linear_model.logistic, spu.utils.simulation"
    try:
        done = subprocess.run([python, "-c", check], capture_output=True, text=True, check=False)
    except OSError as error:
        return str(error)
    return done.stderr.strip().splitlines()[-1] if done.returncode else None


def main() -> None:
    """Print the table of docs/sealing.md."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "python", type=Path, help="the interpreter of an environment that has spu and sf-sml"
    )
    parser.add_argument(
        "table", type=Path, nargs="?", help="numbers, label last; otherwise a stand-in is made up"
    )
    given = parser.parse_args()
    if (missing := cannot_run(given.python)) is not None:
        parser.exit(
            1, f"{given.python} has no spu and sml: {missing}. How to install them:\n{INSTALL}\n"
        )
    X, y = from_file(given.table) if given.table else stand_in()
    print(f"N = {len(y)}, d = {X.shape[1]} and an intercept, l2 = {L2:g}")
    print("| trained | parties | messages | MB | CPU s | gap |\n|---|---|---|---|---|---|")
    for one in study(given.python, X, y):
        print(one.line(), flush=True)


if __name__ == "__main__":
    main()
