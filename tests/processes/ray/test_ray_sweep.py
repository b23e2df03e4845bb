"""Sweeps on workers of Ray: a worker that is killed, an interrupt, and the same sweep again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import ray

import mtcd
from mtcd.config.build import build
from mtcd.config.read import read_config
from mtcd.core.workers import Backend, QueueStatus, open_workers
from small_experiment import Inline

CONFIG: dict[str, Any] = {
    "data": {"synthetic": "ridge", "samples": 60, "features": 16, "clients": 8, "seed": 3},
    "model": {"kind": "ridge", "alpha": 1},
    "network": {"kind": "cycle"},
    "method": {"kind": "mtcd", "tokens": 2, "local_updates": 3},
    "stop": {"gap": 1e-4, "iterations": 20000},
}
OVER = {"method.hops": [2, 8, 16]}


def outcomes(found: mtcd.Sweep) -> list[dict[str, Any]]:
    """The table, without what differs from time to time."""
    return [
        {name: value for name, value in row.items() if name != "seconds"} for row in found.rows()
    ]


def test_a_sweep_goes_on_after_a_killed_worker_and_an_interrupt(
    one_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def remember(backend: Backend) -> Any:
        opened.append(open_workers(backend))
        return opened[-1]

    def disturb(status: QueueStatus) -> None:
        [workers] = opened
        if status.running and len(killed) < 1:
            killed.append(next(iter(workers._busy)))
            ray.kill(workers._actors[killed[0]])
        if status.done == 3:
            raise KeyboardInterrupt

    killed: list[int] = []
    monkeypatch.setattr("mtcd.studies.running.open_workers", remember)
    with pytest.raises(KeyboardInterrupt):
        mtcd.sweep(
            CONFIG, OVER, seeds=2, out=tmp_path / "sweep", workers=2, ray="auto", progress=disturb
        )
    assert killed
    found = mtcd.sweep(CONFIG, OVER, seeds=2, out=tmp_path / "sweep", workers=2, ray="auto")
    assert found.kept == 3
    assert {path.name for path in (tmp_path / "sweep").iterdir()} >= {
        "sweep.csv",
        "sweep.parquet",
        "sweep.png",
    }

    monkeypatch.setattr("mtcd.studies.running.open_workers", Inline)
    here = mtcd.sweep(CONFIG, OVER, seeds=2, out=tmp_path / "here")
    assert outcomes(found) == outcomes(here)
    assert found.best == here.best
    setup = build(read_config(tmp_path / "sweep" / "best.yaml"))
    best = next(row for row in found.rows() if row["method.hops"] == found.best["method.hops"])
    assert setup.train().final.cost == best["cost"]
