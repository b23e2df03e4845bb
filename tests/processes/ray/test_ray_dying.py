"""Real actors, nodes and drivers that die; Ctrl-C. ``tests/unit/ray/test_ray_faults.py`` has more cases,
without Ray."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import ray
import yaml

from contract_cases import BY_NAME, assert_close, reference
from mtcd.ray.cluster import RayActors
from mtcd.ray.settings import Ray
from ray_trainings import CONFIG, checkpointed, same, summary_without_ray, train
from waiting import PATIENCE


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(
        yaml.safe_dump(
            CONFIG | {"stop": {"iterations": 1500}, "engine": {"kind": "ray", "actors": 2}}
        )
    )
    return path


@pytest.mark.parametrize("name", ["stcd", "mtcd in clusters"])
def test_an_actor_that_is_killed_is_replaced(name: str, one_ray: None) -> None:
    case, expected = BY_NAME[name], reference(name)
    cluster = RayActors(Ray(actors=2, cpus=0.5))
    engine = case.hosted(cluster)
    observer = case.observer(engine)

    def watch(row: Any, fraction: float) -> None:
        if row.iteration in (5, 20) and engine.restarts < 2:
            ray.kill(cluster.handles[row.iteration % 2])

    with engine:
        assert (
            observer.advance(case.settings[1], watch, until=time.perf_counter() + PATIENCE)
            == expected.status
        )
        assert engine.restarts >= 1
        assert engine.ledger == expected.ledger
        assert_close(name, engine.parameters(), expected.parameters)


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGINT])
def test_a_driver_that_ends_leaves_a_training_to_resume(
    blow: signal.Signals, config: Path, tmp_path: Path
) -> None:
    """Killed, or interrupted as by Ctrl-C in a terminal; resumed on Ray, or without it."""
    out = tmp_path / "run"
    process = train(config, out)
    checkpointed(out, process)
    os.killpg(process.pid, blow) if blow == signal.SIGINT else process.kill()
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert "Traceback" not in stderr, stderr
    if blow == signal.SIGINT:
        assert process.returncode == 130, stderr
        assert json.loads(stdout)["status"] == "interrupted"
    engine = ["--set", "engine=null"] if blow == signal.SIGKILL else []
    again = train(config, out, "--resume", *engine)
    stdout, stderr = again.communicate(timeout=PATIENCE)
    assert again.returncode == 0, stderr
    expected = summary_without_ray(config, tmp_path / "plain")
    found = json.loads(stdout)
    assert same(found, expected), (found, expected)
    assert found["objective"] == pytest.approx(expected["objective"], rel=1e-12)
