"""Parts of the user's own, named 'module:Class' in a config: the same checks as built-in ones, and
no code unasked."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import mtcd
from commands import outcome, run
from federations import written
from mtcd.config.read import read_config
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.core.own_code import running_code
from mtcd.federation.file import read_federation
from mtcd.methods.method import METHODS
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.tours.acceleration import ACCELERATIONS
from mtcd.models.losses import LOSSES
from mtcd.network.walks import WALKS
from project import SUPPORT

OUTSIDE = SUPPORT / "plugins_from_outside.py"
CONFIG: dict[str, Any] = {
    "data": {"synthetic": "ridge", "samples": 40, "features": 12, "clients": 4},
    "model": {"kind": "ridge", "l2": 1.0},
    "network": {"kind": "cycle"},
    "method": {"kind": "mtcd", "tokens": 2, "hops": 4, "local_updates": 2},
    "stop": {"iterations": 20},
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a module of the user's own, apart from the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "myparts.py").write_text(OUTSIDE.read_text() + "\nopen('proof', 'a').close()\n")
    yield folder
    for module in ("myparts", "broken"):
        sys.modules.pop(module, None)
    for registry in (WALKS, LOSSES, RULES, METHODS, ACCELERATIONS):
        registry._own.clear()  # what was loaded stays known in a process


def config(place: Path, **changes: Any) -> str:
    content = {key: dict(value) for key, value in CONFIG.items()}
    for key, value in changes.items():
        section, _, name = key.partition("__")
        content[section] = {**content[section], name: value} if name else value
    (place / "config.yaml").write_text(yaml.safe_dump(content))
    return str(place / "config.yaml")


def test_a_part_that_fails_is_named_with_its_line(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "from mtcd.network.walks import Walk\nclass W(Walk):\n    def next(self, *where):\n        return 1 / 0\n"
    (place / "broken.py").write_text(text)
    assert run("train", config(place, method__walk="broken:W"), "--out", "first", "--quiet") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert (
        "broken.py, line 4, in next: ZeroDivisionError: division by zero. This is code that the "
        "config names" in said
    )
    assert "Traceback" not in said
    assert not (place.parent / "first" / "run.json").exists()


@pytest.mark.parametrize("to", ["2", "99", "-1", "'a'", "None"])
def test_a_walk_that_leaves_the_links_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str], to: str
) -> None:
    text = f"from mtcd.network.walks import Walk\nclass W(Walk):\n    def next(self, *where):\n        return {to}\n"
    (place / "broken.py").write_text(text)
    start = {"start": "client_0", "walk": "broken:W"}
    assert (
        run(
            "train",
            config(place, method={**CONFIG["method"], **start}),
            "--out",
            "first",
            "--quiet",
        )
        == 2
    )
    said = " ".join(capsys.readouterr().err.split())
    assert (
        f"The walk W goes from client 0 to {to}, which is neither a neighbour (1, 3) nor client 0"
        in said
    )


def test_a_loss_whose_gradient_is_wrong_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "import numpy as np\nimport myparts\nclass L(myparts.LogCosh):\n    def gradient(self, z, y):\n"
    (place / "broken.py").write_text(f"{text}        return 0.5 * np.tanh(z - y)\n")
    assert run("train", config(place, model__kind="broken:L"), "--out", "first", "--quiet") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "The gradient of the loss L is not the derivative of its value" in said
    assert not (place.parent / "first" / "run.json").exists()


PARTS: dict[str, dict[str, Any]] = {
    "walk": {"method__walk": "myparts:SleepyWalk"},
    "loss": {"model__kind": "myparts:LogCosh"},
    "rule": {"method__combine": "myparts:Bolder"},
    "method": {"method": {"kind": "myparts:Decaying", "decay": 0.9}},
    "acceleration": {
        "method": {"kind": "stcd", "walk": "tour", "acceleration": "myparts:HeavyBall"}
    },
}


@pytest.mark.long
@pytest.mark.parametrize("changes", PARTS.values(), ids=PARTS.keys())
def test_a_part_by_name_trains_and_its_run_repeats(
    place: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any]
) -> None:
    assert run("train", config(place, **changes), "--out", "first", "--json") == 0
    first = outcome(capsys)
    kept = yaml.safe_load(Path("first/config.yaml").read_text())
    assert kept["code"] == str(place)
    assert run("train", "first/config.yaml", "--out", "again", "--json") == 0
    assert outcome(capsys)["objective"] == first["objective"]
    assert mtcd.load_run("first", run_code=True).coefficients.shape == (12,)


def test_the_same_as_the_registered_class(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from plugins_from_outside import SleepyWalk

    assert (
        run("train", config(place, method__walk="myparts:SleepyWalk"), "--out", "first", "--json")
        == 0
    )
    WALKS.register("sleepy-here", SleepyWalk)
    try:
        assert (
            run("train", config(place, method__walk="sleepy-here"), "--out", "second", "--json")
            == 0
        )
    finally:
        del WALKS._classes["sleepy-here"]
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("{")]
    first, second = (yaml.safe_load(line)["objective"] for line in lines)
    assert first == second


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"method__walk": "subprocess:Popen"},
            "must be a subclass of mtcd.network.walks.walk.Walk",
        ),
        ({"method__walk": "os:system"}, "must be a class"),
        ({"method__transport": "os:system"}, "must be a class"),
        ({"method": {"kind": "os:system"}}, "must be a class"),
        (
            {"method": {"kind": "subprocess:Popen"}},
            "must be a subclass of mtcd.methods.method.Method",
        ),
        ({"model__kind": "builtins:eval"}, "must be a class"),
        ({"method__walk": "myparts:LogCosh"}, "must be a subclass of"),
        ({"method__walk": "myparts:NoSuchWalk"}, "cannot be imported .AttributeError"),
        ({"method__walk": "nowhere:Walk"}, "cannot be imported .ModuleNotFoundError"),
        ({"method__walk": "broken:Walk"}, "cannot be imported .ZeroDivisionError"),
        ({"method__walk": "leaving:Walk"}, "cannot be imported .SystemExit"),
        ({"method__walk": "mtcd.network.walks:Walk"}, "does not define next"),
        ({"method__walk": ":"}, "cannot be imported"),
        ({"method__walk": "../evil:Walk"}, "cannot be imported"),
    ],
)
def test_what_is_no_such_part_is_refused(
    place: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, Any], words: str
) -> None:
    (place / "broken.py").write_text("1 / 0")
    (place / "leaving.py").write_text("raise SystemExit(0)")
    assert run("train", config(place, **changes), "--out", "out") == 2
    told = " ".join(capsys.readouterr().err.split())
    assert words.replace(" .", " (") in told
    assert "Traceback" not in told
    assert not Path("out").exists()


@pytest.mark.parametrize("command", ["inspect", "plan"])
@pytest.mark.parametrize("part", ["walk", "loss", "method"])
def test_no_code_runs_unasked(
    place: Path, capsys: pytest.CaptureFixture[str], command: str, part: str
) -> None:
    file = config(place, **PARTS[part])
    assert run(command, file) == 2
    assert "--run-code" in capsys.readouterr().err
    assert not Path("proof").exists()
    with pytest.raises(ConfigError, match="does not run here"):
        mtcd.MTCD(walk="myparts:NeverLoaded", tokens=1).plan(
            1, 1, mtcd.make_network("path", ["a"]), 0
        )
    if command == "inspect":
        assert run(command, file, "--run-code") == 0
        assert Path("proof").exists()


def test_a_run_folder_of_a_stranger_runs_no_code(place: Path) -> None:
    assert (
        run("train", config(place, model__kind="myparts:LogCosh"), "--out", "out", "--quiet") == 0
    )
    (place / "other.py").write_text((place / "myparts.py").read_text())
    for file in (Path("out/run.json"), Path("out/config.yaml")):
        file.write_text(file.read_text().replace("myparts:LogCosh", "other:LogCosh"))
    Path("proof").unlink()
    with pytest.raises(MtcdError, match="run_code=True"):
        mtcd.load_run("out")
    assert not Path("proof").exists()


@pytest.mark.parametrize(
    "changes",
    [
        {"method": {"kind": "os:system"}},
        {"method": {"kind": "mtcd", "tokens": 1, "walk": "myparts:SleepyWalk"}},
        {"method": {"kind": "mtcd", "tokens": 1, "transport": "myparts:SleepyWalk"}},
        {"model": {"kind": "myparts:LogCosh"}},
    ],
)
def test_a_federation_loads_no_such_name(place: Path, changes: dict[str, Any]) -> None:
    (Path.cwd() / "myparts.py").write_text((place / "myparts.py").read_text())
    with pytest.raises(
        MtcdError, match="code of somebody's own, which does not run here.*every party installs"
    ):
        read_federation(written(place, **changes))
    assert not Path("proof").exists()


def test_experiments_use_parts_beside_their_file(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = {
        "title": "Mine",
        "about": "A walk of mine.",
        "problem": {**CONFIG, "stop": {"gap": 1e-2, "iterations": 20000}},
        "cases": {"cycle": {"title": "Cycle"}},
        "curves": {"mine": {"label": "mine", "method": {"walk": "myparts:SleepyWalk"}}},
        "panels": [{"x": "iterations"}],
        "seeds": 1,
        "quick": {"changes": {}},
    }
    (place / "mine.yaml").write_text(yaml.safe_dump(experiment))
    assert run("reproduce", str(place / "mine.yaml"), "--out", "res", "--jobs", "1") == 0, (
        capsys.readouterr().err
    )
    assert list(Path("res").glob("mine*.png"))


def test_code_is_looked_for_where_the_config_says(place: Path) -> None:
    elsewhere = place.parent / "elsewhere"
    elsewhere.mkdir()
    content = {
        **CONFIG,
        "method": {**CONFIG["method"], "walk": "myparts:SleepyWalk"},
        "code": "../mine",
    }
    (elsewhere / "config.yaml").write_text(yaml.safe_dump(content))
    with running_code():
        assert read_config(elsewhere / "config.yaml").code == elsewhere / "../mine"
        assert run("train", str(elsewhere / "config.yaml"), "--out", "out", "--quiet") == 0
