"""mtcd plan as people run it: the files it leaves, what it says, and every bad input."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from commands import outcome, run
from mtcd.config.read import read_config
from waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("counted_time")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a config in a folder of its own, beside its network."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "edges.csv").write_text("source,target\n0,1\n1,2\n2,3\n3,0\n")
    (tmp_path / "configs" / "c.yaml").write_text(
        "data: {synthetic: ridge, samples: 40, features: 12, clients: 4}\nmodel: {kind: ridge, "
        "alpha: 1}\n"
        "network: {edges: edges.csv}\nmethod: {kind: mtcd, tokens: 2, hops: 4, local_updates: 5}\n"
    )
    (tmp_path / "links.csv").write_text(
        "from,to,latency_ms,bandwidth_mbps\n*,*,1,100\nserver,*,20,10\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_writes_a_config_that_trains_as_it_is(folder, capsys) -> None:
    assert (
        run(
            "plan",
            "configs/c.yaml",
            "--ratio",
            "7",
            "--budget",
            "1s",
            "--out",
            "new/p.yaml",
            "--json",
        )
        == 0
    )
    said = outcome(capsys)
    assert (said["out"], said["picture"], said["ratio"]) == ("new/p.yaml", "new/p.png", 7.0)
    assert said["candidates"][0] == said["chosen"]
    assert [one["own"] for one in said["candidates"]].count(True) == 1
    assert (folder / "new" / "p.png").read_bytes()[:4] == b"\x89PNG"
    assert run("train", "new/p.yaml", "--json", "--out", "done") == 0
    really = outcome(capsys)
    assert really["status"] == "converged"
    assert really["cost"] == pytest.approx(said["chosen"]["cost"])
    assert said["chosen"]["cost"] <= said["own"]["cost"]


def test_the_command_shows_a_table_and_says_what_to_use(folder, capsys) -> None:
    assert (
        run("plan", "configs/c.yaml", "--links", "links.csv", "--budget", "1s", "--set", "seed=2")
        == 0
    )
    shown = capsys.readouterr().out
    assert "wall-clock" in shown
    assert "(yours)" in shown
    assert "Use " in shown
    assert read_config(folder / "c.planned.yaml").seed == 2
    assert (folder / "c.planned.png").exists()


def test_only_an_earlier_plan_of_the_same_config_is_replaced(folder, capsys) -> None:
    plan = ("plan", "configs/c.yaml", "--budget", "1s", "--json")
    for _ in range(2):
        assert run(*plan, "--out", "p.yaml") == 0

    Path("configs/other.yaml").write_text(Path("configs/c.yaml").read_text())
    Path("mine.yaml").write_text("data: {}\n")
    Path("photo.png").write_text("a picture")
    capsys.readouterr()
    refused = [
        (
            ("plan", "configs/other.yaml", "--out", "p.yaml"),
            "p.yaml is not an earlier plan of other.yaml",
        ),
        ((*plan, "--out", "mine.yaml"), "mine.yaml is not an earlier plan of c.yaml"),
        ((*plan, "--out", "photo.yaml"), "photo.png is not an earlier plan of c.yaml"),
    ]
    for command, said in refused:
        assert run(*command) == 2
        assert said in " ".join(capsys.readouterr().err.split())
    assert Path("mine.yaml").read_text() == "data: {}\n"
    assert Path("photo.png").read_text() == "a picture"
    assert run(*plan, "--out", "mine.yaml", "--force") == 0
    assert read_config(Path("mine.yaml")).model.alpha == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--ratio", "5", "--links", "links.csv"], "--ratio and --links"),
        (["--links", "nowhere.csv"], "nowhere.csv"),
        (["--budget", "soon"], "60s, 2m or 1h"),
        (["--target", "0"], "target"),
        (["--ratio", "-1"], "ratio"),
        (["--out", "configs"], "not a file"),
        (["--out", "configs/c.yaml"], "the config itself"),
        (["--out", "p.png"], "picture"),
        (["--out", "links.csv/p.yaml"], "cannot be written"),
    ],
)
def test_bad_input_is_told_and_leaves_nothing(folder, capsys, arguments, said) -> None:
    before = sorted(folder.rglob("*"))
    assert run("plan", "configs/c.yaml", "--budget", "1s", *arguments) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert sorted(folder.rglob("*")) == before


SAYS_THAT_IT_RACES = """
import runpy
from mtcd.planner import planning

def race(*given):
    print("racing", flush=True)
    return slow(*given)

slow, planning.race = planning.race, race
runpy.run_module("mtcd", run_name="__main__")
"""


def test_an_interrupt_ends_with_130_and_leaves_nothing(folder) -> None:
    slow = [
        "--set",
        "data.samples=3000",
        "--set",
        "data.features=400",
        "--target",
        "1e-13",
        "--budget",
        "60s",
    ]
    command = [sys.executable, "-c", SAYS_THAT_IT_RACES, "plan", "configs/c.yaml", *slow]
    before = sorted(folder.rglob("*"))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ | {"COLUMNS": "80"}
    )
    assert process.stdout.readline() == b"racing\n"
    process.send_signal(signal.SIGINT)
    _, complaint = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, complaint
    assert b"Traceback" not in complaint
    assert sorted(folder.rglob("*")) == before
