"""mtcd sweep: a grid of settings and seeds, on workers; what is finished is kept, what fails is a
row."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml

import mtcd
from mtcd.cli.app import main
from mtcd.core.errors import ConfigError
from mtcd.core.workers import Failed
from mtcd.studies.grid import grid, parse_over
from mtcd.studies.running import Finished, Running
from mtcd.studies.sweep import Sweep
from small_experiment import Inline
from waiting import PATIENCE, until

CONFIG = {
    "data": {"synthetic": "ridge", "samples": 30, "features": 12, "clients": 4, "seed": 7},
    "model": {"kind": "ridge", "alpha": 1},
    "network": {"kind": "cycle"},
    "method": {"kind": "mtcd", "tokens": 2, "hops": 4, "local_updates": 2},
    "stop": {"gap": 1e-3, "iterations": 4000},
}
OVER = {"method.tokens": [1, 2], "method.hops": [2, 8]}


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> type[Inline]:
    Inline.take_over(monkeypatch)
    monkeypatch.setattr("mtcd.studies.running.open_workers", Inline)
    return Inline


def test_every_row_is_what_train_gives_with_these_settings(
    inline: type[Inline], tmp_path: Path
) -> None:
    found = mtcd.sweep(CONFIG, OVER, seeds=2, out=tmp_path / "out")
    rows = found.rows()
    assert [(row["method.tokens"], row["method.hops"], row["seed"]) for row in rows] == [
        (tokens, hops, seed) for tokens in (1, 2) for hops in (2, 8) for seed in (0, 1)
    ]
    data = mtcd.synthetic("ridge", samples=30, features=12, clients=4, seed=7)
    method = mtcd.MTCD(2, 8, local_updates=2)
    run = mtcd.train(
        data,
        mtcd.Glm("ridge", alpha=1.0),
        "cycle",
        method,
        mtcd.Stop(gap=1e-3, iterations=4000),
        seed=1,
    )
    last = rows[-1]
    assert last["objective"] == pytest.approx(run.objective, rel=1e-12)
    assert last["cost"] == run.final.cost
    assert last["messages"] == sum(run.final.messages.values())
    assert last["bytes"] == sum(run.ledger.bytes().values())
    assert last["status"] == "converged"
    frames = [
        pl.read_csv(tmp_path / "out/sweep.csv"),
        pl.read_parquet(tmp_path / "out/sweep.parquet"),
    ]
    for frame in frames:
        assert frame["cost"].to_list() == [row["cost"] for row in rows]
    assert (tmp_path / "out/sweep.png").read_bytes()[:4] == b"\x89PNG"


def test_the_best_settings_have_the_least_mean_cost_and_train(
    inline: type[Inline], tmp_path: Path
) -> None:
    found = mtcd.sweep(CONFIG, OVER, seeds=2, out=tmp_path / "out")
    frame = (
        found.to_polars()
        .group_by("method.tokens", "method.hops")
        .agg(pl.col("cost").mean())
        .sort("cost")
    )
    assert found.by == "cost"
    assert found.best == {
        "method.tokens": frame["method.tokens"][0],
        "method.hops": frame["method.hops"][0],
    }
    with pytest.raises(SystemExit, match="0"):
        main(["train", str(tmp_path / "out/best.yaml"), "--out", str(tmp_path / "run"), "-q"])
    assert (
        mtcd.load_run(tmp_path / "run").final.cost
        == found.records[found.best_group[0]]["row"]["cost"]
    )


def test_a_second_sweep_trains_only_what_is_new(inline: type[Inline], tmp_path: Path) -> None:
    mtcd.sweep(CONFIG, {"method.hops": [2, 8]}, seeds=1, out=tmp_path)
    assert inline.trained == 2
    again = mtcd.sweep(CONFIG, {"method.hops": [2, 8, 4]}, seeds=2, out=tmp_path)
    assert inline.trained == 6
    assert again.kept == 2
    next((tmp_path / "trainings").glob("*.json")).write_text('{"row": {')  # damaged
    mtcd.sweep(CONFIG, {"method.hops": [2, 8, 4]}, seeds=2, out=tmp_path)
    assert inline.trained == 7


def test_what_fails_is_a_row_with_its_reason(inline: type[Inline], tmp_path: Path) -> None:
    over = {
        "method.stepsize": [1e9, "auto"],
        "network.kind": ["cycle", "empty"],
        "method.walk": ["tour"],
    }
    found = mtcd.sweep(CONFIG, over, out=tmp_path)
    by = {(row["method.stepsize"], row["network.kind"]): row for row in found.rows()}
    assert by["auto", "cycle"]["status"] == "converged"
    assert by["1000000000.0", "cycle"]["status"] == "diverged"
    assert by["auto", "empty"]["status"] == "failed"
    assert "add links" in by["auto", "empty"]["reason"]
    assert found.best == {"method.stepsize": "auto", "network.kind": "cycle", "method.walk": "tour"}


def test_a_diverged_training_counts_as_missed_and_not_in_the_mean() -> None:
    """Settings that diverge for some seeds are worse than those that never do, whatever the others
    reach."""
    points = grid({**CONFIG, "stop": {"iterations": 5}}, {"method.hops": [2, 8, 4]}, 2)
    ended = [("iterations", 1.0), ("diverged", 0.1), ("iterations", 5.0), ("iterations", 7.0)]
    ended += [("diverged", 0.01), ("diverged", 0.01)]
    rows = [{"status": status, "reason": "", "objective": value} for status, value in ended]
    found = Sweep(tuple(points), tuple({"row": row, "curve": None} for row in rows), "objective", 0)

    assert found.best == {"method.hops": 8}
    assert [found.rank(group) for group in found.groups] == [(0.5, 1.0), (0.0, 6.0), (1.0, np.inf)]
    assert "over 2 seed(s)" in found.best_sentence

    half = Sweep(
        tuple(points[:2]), tuple({"row": row, "curve": None} for row in rows[:2]), "objective", 0
    )
    assert "over 1 seed(s): method.hops=2 (1); 1 of 2 seeds failed" in half.best_sentence
    none = Sweep(
        tuple(points[4:]), tuple({"row": row, "curve": None} for row in rows[4:]), "objective", 0
    )
    assert none.best is None


def test_a_worker_that_dies_gets_a_second_attempt_and_then_a_row() -> None:
    points = grid(CONFIG, {"method.hops": [2]}, 1)
    running = Running(points, Finished(Path("nowhere")))
    for attempt in (1, 2):
        assert list(running._waiting) == [0]
        running._waiting.popleft()
        running._began[0], running._attempts[0] = 0.0, attempt
        running._hear(0, Failed("its process was killed by signal 9", lost=True))
    assert not running._waiting
    assert running.records[0]["row"] == {
        "status": "failed",
        "reason": "its process was killed by signal 9",
    }


@pytest.mark.parametrize(
    ("over", "says"),
    [
        (["method.tokns=1,2"], "tokns"),
        (["method.tokens"], "key.key=value"),
        (["method.tokens="], "key.key=value"),
        (["method.tokens=1,1"], "twice"),
        (["method.tokens=1", "method.tokens=2"], "twice"),
        (["seed=1,2"], "--seeds"),
        (["method.kind.x=1"], "holds a value"),
        (["method.tokens={a"], "YAML"),
        (["method.tokens=0,-1"], "method.tokens must be 1 or more"),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused_before_anything_is_trained(
    over: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    given = [part for one in over for part in ("--over", one)]
    with pytest.raises(SystemExit, match="2"):
        main(["sweep", str(tmp_path / "c.yaml"), "--out", str(tmp_path / "out"), *given])
    assert says in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_folder_with_other_files_and_an_unknown_column_are_refused(
    inline: type[Inline], tmp_path: Path
) -> None:
    (tmp_path / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match=r"mine\.txt"):
        mtcd.sweep(CONFIG, {"method.hops": [2]}, out=tmp_path)
    with pytest.raises(ConfigError, match="cost"):
        mtcd.sweep(CONFIG, {"method.hops": [2]}, by="costs")
    with pytest.raises(ConfigError, match="100,000"):
        mtcd.sweep(CONFIG, {"method.hops": list(range(1, 1000))}, seeds=1000)


def test_over_splits_at_commas_but_not_inside_brackets() -> None:
    over = parse_over(["method.start=[a, b], c", "stop.gap=1e-3", "method.clusters=[[1, 2], [3]]"])
    assert over == {
        "method.start": [["a", "b"], "c"],
        "stop.gap": [1e-3],
        "method.clusters": [[1, 2], [3]],
    }


@pytest.mark.long
def test_a_killed_sweep_goes_on_with_real_processes(tmp_path: Path) -> None:
    forever = {**CONFIG, "stop": {"gap": 1e-12, "iterations": 10**9}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    (tmp_path / "slow.yaml").write_text(yaml.safe_dump(forever))
    command = [sys.executable, "-m", "mtcd", "sweep"]
    # the first finishes at its gap, the second never does
    slow = [
        *command,
        "slow.yaml",
        "--over",
        "stop.gap=1e-2,1e-13",
        "--over",
        "method.stepsize=1e-4",
        "--out",
        "out",
    ]
    process = subprocess.Popen(
        [*slow, "--workers", "1"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert until(lambda: list((tmp_path / "out").glob("trainings/*.json")))
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, said
    assert "1 finished trainings are kept" in said
    assert "Traceback" not in said
    again = subprocess.run(
        [
            *command,
            "slow.yaml",
            "--over",
            "stop.gap=1e-2",
            "--over",
            "method.stepsize=1e-4",
            "--out",
            "out",
            "--json",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert json.loads(again.stdout)["kept"] == 1, again.stderr
