"""A loss that is a plug-in is checked in federations too: where it is used, before anything is
trained."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from federations import written
from live import make_bundles
from mtcd.federation.administrator import init_federation
from mtcd.federation.preflight import FAILED, WRONG_LOSS, preflight
from mtcd.models.losses import LOSSES, Loss
from ports import reserved_ports
from waiting import PATIENCE

PARTIES = ("a", "b", "c")
PLUGIN = '''
import numpy as np
from mtcd.models.losses import LOSSES, Loss


class Halves(Loss):
    """l = (z - y)^2 / 2, with FACTOR times its derivative."""

    curvature = 1.0

    def value(self, z, y):
        return float(0.5 * ((z - y) ** 2).sum())

    def gradient(self, z, y):
        return FACTOR * (z - y)

    def hessian_product(self, z, y, v):
        return FACTOR * v


LOSSES.register("halves", Halves)
from mtcd.cli.app import main

main()
'''


class Halves(Loss):
    """The same loss in this process, where bundles are made: the administrator has the right one."""

    curvature = 1.0
    factor = 1.0

    def value(self, z: Any, y: Any) -> float:
        return float(0.5 * ((z - y) ** 2).sum())

    def gradient(self, z: Any, y: Any) -> Any:
        return self.factor * (z - y)

    def hessian_product(self, z: Any, y: Any, v: Any) -> Any:
        return self.factor * v


@pytest.fixture
def named() -> Iterator[None]:
    LOSSES.register("halves", Halves)
    yield
    del LOSSES._classes["halves"]


def tables(folder: Path) -> dict[str, Path]:
    """A table for each party; the first holds the labels."""
    some = np.random.default_rng(5)
    made = {}
    for name in PARTIES:
        lines = ["id,x,y,outcome" if name == "a" else "id,x,y"]
        for i, (x, y) in enumerate(some.normal(size=(30, 2))):
            label = f",{x - y + 0.25 * (i % 3):.4f}" if name == "a" else ""
            lines.append(f"s{i},{x:.6f},{y:.6f}{label}")
        made[name] = folder / f"{name}.csv"
        made[name].write_text("\n".join(lines) + "\n")
    return made


@pytest.mark.parametrize(
    "model", [{"kind": "halves", "l2": 0.1}, {"kind": "trees", "loss": "halves"}], ids=str
)
def test_the_label_holder_finds_it_alone(
    model: dict[str, Any], tmp_path: Path, named: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles, made = (
        make_bundles(tmp_path, PARTIES, alignment="hashed", model=model),
        tables(tmp_path),
    )
    given = {"data": made["a"], "key": "id"}
    assert not [one for one in preflight(bundles["a"].folder, given) if one.level == FAILED]

    monkeypatch.setattr(Halves, "factor", 0.5)
    (failed,) = [one for one in preflight(bundles["a"].folder, given) if one.level == FAILED]
    assert failed.requirement == "settings"
    assert "gradient of the loss Halves is not the derivative of its value" in failed.sentence
    # numbers that depend on labels stay here
    assert failed.told.startswith(WRONG_LOSS)
    assert not any(mark.isdigit() for mark in failed.told)


@pytest.mark.parametrize("wrong", ["a", "c"])
def test_nobody_trains_with_it_and_all_are_told_where_it_is(
    wrong: str, tmp_path: Path, named: None
) -> None:
    """At the label holder it is found alone; at another party when labels arrive, on a path, so
    that the refusal passes through others."""
    ports = reserved_ports(4)
    places = {name: f"127.0.0.1:{port}" for name, port in zip(PARTIES, ports, strict=False)}
    file = written(
        tmp_path,
        parties=places,
        server=f"127.0.0.1:{ports[-1]}",
        alignment="hashed",
        network={"kind": "path"},
        model={"kind": "halves", "l2": 0.1},
        labels__held_by="a",
    )
    init_federation(file, tmp_path / "bundles", 90)

    made, running = tables(tmp_path), {}
    for name in (*PARTIES, "server"):
        code = PLUGIN.replace("FACTOR", "0.5" if name == wrong else "1.0")
        words = ["server"]
        if name != "server":
            words = ["party", "--data", str(made[name]), "--id", "id"]
        running[name] = subprocess.Popen(
            [sys.executable, "-c", code, *words, str(tmp_path / "bundles" / name)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        )
    said = {name: process.communicate(timeout=PATIENCE)[0] for name, process in running.items()}

    codes = {name: process.returncode for name, process in running.items()}
    assert codes == dict.fromkeys(running, 2), said
    assert "gradient of the loss Halves is not the derivative of its value" in said[wrong]
    for name in running.keys() - {wrong}:
        assert f"because {wrong} cannot take part" in said[name], said
        assert WRONG_LOSS in said[name]
