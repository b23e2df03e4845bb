"""Trainings on Ray as commands."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from waiting import until

CONFIG: dict[str, Any] = {
    "data": {"synthetic": "logistic", "samples": 60, "features": 24, "clients": 8},
    "model": {"kind": "logistic", "l2": 0.1},
    "network": {"kind": "cycle"},
    "method": {"kind": "mtcd", "tokens": 2, "hops": 4, "local_updates": 2, "combine": "cluster"},
}


def train(config: Path, out: Path, *more: str, **given: Any) -> subprocess.Popen[str]:
    """mtcd train, in a process group of its own, as in a terminal."""
    command = [
        sys.executable,
        "-m",
        "mtcd",
        "train",
        str(config),
        "--out",
        str(out),
        "--json",
        *more,
    ]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        **given,
    )


def checkpointed(out: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the training has written a checkpoint."""
    assert until(lambda: any(out.glob("*checkpoint*")) or process.poll() is not None)
    assert process.poll() is None, process.communicate()


def summary_without_ray(config: Path, out: Path) -> dict[str, Any]:
    process = train(config, out, "--set", "engine=null")
    stdout, stderr = process.communicate()
    assert process.returncode == 0, stderr
    found: dict[str, Any] = json.loads(stdout)
    return found


def same(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    return all(
        found[key] == expected[key]
        for key in ("status", "iterations", "hops", "syncs", "messages", "floats")
    )
