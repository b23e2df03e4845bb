"""The program as people run it: files it leaves, JSON it prints, exit codes, and every bad
input."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import mtcd
from commands import outcome, run

CONFIG = """
data: {{table: {table}, label: y, id: pid, clients: 3}}
model: {{kind: ridge, alpha: 1}}
network: {{kind: path}}
method: {{kind: mtcd, tokens: 2, hops: 8, local_updates: 5}}
stop: {{gap: 1e-3, iterations: 20000}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a table of 30 patients and a config for it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    frame = pl.DataFrame(
        {
            "pid": np.arange(100, 130),
            "y": X @ rng.standard_normal(6),
            **{f"f{j}": X[:, j] for j in range(6)},
        }
    )
    frame.write_csv(tmp_path / "patients.csv")
    frame.write_parquet(tmp_path / "patients.parquet")
    (tmp_path / "config.yaml").write_text(CONFIG.format(table="patients.csv"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("table", ["patients.csv", "patients.parquet"])
def test_train_leaves_a_whole_run_and_one_line_of_json(folder, capsys, table) -> None:
    (folder / "config.yaml").write_text(CONFIG.format(table=table))
    assert run("train", "config.yaml", "--out", "here", "--json", "--seed", "4") == 0
    said = outcome(capsys)
    assert set(said) >= {
        "status", "objective", "gap", "iterations", "hops", "syncs", "cost", "messages", "floats", "seconds", "out",
    }  # fmt: skip
    assert said["status"] == "converged"
    assert said["gap"] <= 1e-3
    assert said["iterations"] == said["syncs"] * 8
    assert said["hops"] == said["iterations"] * 2 == said["messages"]["client_client"]
    assert said["cost"] == pytest.approx(said["syncs"] * (2 * 2 + 8 * 2 / 100))
    assert said["floats"]["uplink"] == 30 * said["messages"]["uplink"]
    assert {p.name for p in Path(said["out"]).iterdir()} == {
        "checkpoint.npz", "coefficients.csv", "config.yaml", "history.csv", "history.png", "ledger.json",
        "parameters.npz", "run.json", "trace.npz",
    }  # fmt: skip
    history = pl.read_csv(folder / "here" / "history.csv")
    assert history.columns == [
        "iteration", "hops", "syncs", "objective", "gap", "cost", "messages_client_client", "messages_uplink",
        "messages_downlink", "floats_client_client", "floats_uplink", "floats_downlink", "seconds",
        "epoch", "accuracy", "test_accuracy", "train_rmse", "train_r2",
    ]  # fmt: skip
    assert history["gap"][-1] == said["gap"]
    assert (folder / "here" / "history.png").read_bytes()[:4] == b"\x89PNG"
    back = mtcd.Run.load(folder / "here")
    assert back.objective == said["objective"]
    assert back.trained().column_names == tuple(f"f{j}" for j in range(6))


def test_the_config_left_behind_repeats_the_run(folder, capsys) -> None:
    changes = (
        "--set",
        "method.hops=4",
        "--set",
        "model.kind=huber",
        "--set",
        "model.alpha=null",
        "--set",
        "model.l2=1",
    )
    run("train", "config.yaml", "--out", "one", "--json", *changes, "--seed", "9")
    one = outcome(capsys)
    run("train", "one/config.yaml", "--out", "two", "--json")
    two = outcome(capsys)
    assert {k: v for k, v in one.items() if k not in ("seconds", "out")} == {
        k: v for k, v in two.items() if k not in ("seconds", "out")
    }
    with np.load("one/parameters.npz") as a, np.load("two/parameters.npz") as b:
        assert all(np.array_equal(a[name], b[name]) for name in a)


def test_without_an_optimum_the_gap_is_null(folder, capsys) -> None:
    run("train", "config.yaml", "--json", "--set", "stop={iterations: 50}", "--quiet")
    said = outcome(capsys)
    assert said["gap"] is None
    assert said["status"] == "iterations"
    assert said["out"] == "runs/config"


def test_runs_are_not_overwritten_unless_named(folder, capsys) -> None:
    for _ in range(2):
        assert run("train", "config.yaml", "--quiet") == 0
    assert sorted(p.name for p in (folder / "runs").iterdir()) == ["config", "config-2"]
    assert capsys.readouterr().out == ""


def test_a_run_goes_into_a_folder_of_runs_and_nothing_else_is_lost(folder, capsys) -> None:
    assert run("train", "config.yaml", "--out", "mine", "--quiet") == 0
    assert (
        run(
            "train",
            "config.yaml",
            "--out",
            "mine",
            "--quiet",
            "--set",
            "method.stepsize=9",
            "--force",
        )
        == 1
    )
    assert not (folder / "mine" / "parameters.npz").exists(), "nothing of the run before is left"
    (folder / "mine" / "notes.txt").write_text("precious")
    assert run("train", "config.yaml", "--out", "mine") == 2
    assert "notes.txt" in capsys.readouterr().err
    assert (folder / "mine" / "notes.txt").read_text() == "precious"


@pytest.mark.parametrize(
    ("change", "key"),
    [
        (["--set", "method.hops=4"], "method.hops"),
        (["--seed", "7"], "seed"),
        (["--set", "data.table=patients.parquet"], "data.table"),
        (["--set", "stop.iterations=10"], "stop.iterations"),
        (
            ["--set", "data.standardise=true", "--set", "metrics=[rmse]"],
            "data.standardise, metrics",
        ),
    ],
)
def test_a_finished_run_of_another_config_is_replaced_only_by_force(
    folder, capsys, change, key
) -> None:
    assert run("train", "config.yaml", "--out", "mine", "--quiet") == 0
    before = {path.name: path.read_bytes() for path in (folder / "mine").iterdir()}

    assert run("train", "config.yaml", "--out", "mine", "--quiet", *change) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"mine holds a run of another config (it differs in {key})" in said
    assert "--force" in said
    assert {path.name: path.read_bytes() for path in (folder / "mine").iterdir()} == before

    assert run("train", "config.yaml", "--out", "mine", "--quiet", *change, "--force") == 0
    assert (folder / "mine" / "config.yaml").read_bytes() != before["config.yaml"]


def test_a_run_of_the_same_config_is_replaced_however_the_config_is_written(folder) -> None:
    assert run("train", "config.yaml", "--out", "mine", "--quiet") == 0
    assert run("train", "config.yaml", "--out", "mine", "--quiet") == 0
    assert run("train", "mine/config.yaml", "--out", "mine", "--quiet") == 0, (
        "with all defaults filled in"
    )


def test_a_run_saved_from_python_is_replaced_only_by_force(folder, capsys) -> None:
    assert run("train", "config.yaml", "--out", "first", "--quiet") == 0
    mtcd.Run.load(folder / "first").save(folder / "mine")
    assert run("train", "config.yaml", "--out", "mine", "--quiet") == 2
    assert "has no config.yaml" in " ".join(capsys.readouterr().err.split())
    assert run("train", "config.yaml", "--out", "mine", "--quiet", "--force") == 0


def test_force_and_resume_exclude_each_other(folder, capsys) -> None:
    assert run("train", "config.yaml", "--out", "mine", "--quiet") == 0
    assert run("train", "config.yaml", "--out", "mine", "--resume", "--force") == 2
    assert "give one of them" in capsys.readouterr().err


def test_the_demo_runs_twice_and_spares_other_runs(folder, capsys, monkeypatch) -> None:
    small = {"method": {"kind": "svfl", "stepsize": 1e-7}, "iterations": 3}
    monkeypatch.setattr("mtcd.cli.demo.METHODS", {"svfl": small})
    for _ in range(2):
        assert run("demo", "--out", "shown") == 0
    assert run("train", "config.yaml", "--out", "own/svfl", "--quiet") == 0
    assert run("demo", "--out", "own") == 2
    assert "own/svfl holds a run of another config" in " ".join(capsys.readouterr().err.split())
    assert mtcd.Run.load(folder / "own" / "svfl").method.startswith("MTCD")
    assert run("demo", "--out", "own", "--force") == 0


def test_a_run_may_go_into_the_current_folder_or_through_a_link(folder, monkeypatch) -> None:
    (folder / "here").mkdir()
    (folder / "link").symlink_to(folder / "here")
    assert run("train", "config.yaml", "--out", "link", "--quiet") == 0
    monkeypatch.chdir(folder / "here")
    assert run("train", "../config.yaml", "--out", ".", "--quiet") == 0
    assert mtcd.Run.load(folder / "here").status == "converged"
    assert sorted(p.name for p in folder.iterdir()) == [
        "config.yaml",
        "here",
        "link",
        "patients.csv",
        "patients.parquet",
    ]


def test_people_see_a_table_and_where_the_run_is(folder, capsys) -> None:
    run("train", "config.yaml")
    shown = capsys.readouterr()
    assert "converged" in shown.out
    assert "runs/config" in shown.out
    assert "stepsize auto" in shown.err


def test_too_large_a_step_ends_as_diverged_with_the_limit(folder, capsys) -> None:
    assert run("train", "config.yaml", "--json", "--set", "method.stepsize=5", "--out", "d") == 1
    said = json.loads((text := capsys.readouterr()).out.strip().splitlines()[-1])
    assert said["status"] == "diverged"
    assert "to work up to" in said["message"]
    assert "too large" in text.err
    assert "NaN" not in text.out
    assert "Infinity" not in text.out
    assert not (folder / "d" / "parameters.npz").exists()
    assert "nan" not in (folder / "d" / "history.csv").read_text().lower()
    with pytest.raises(mtcd.MtcdError, match="no model"):
        mtcd.Run.load(folder / "d").predict(np.zeros((1, 6)))


def test_resume_without_a_checkpoint_is_refused(folder, capsys) -> None:
    assert run("train", "config.yaml", "--out", "here", "--resume") == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "no checkpoint in here" in told
    assert "leave --resume out" in told
    assert not (folder / "here").exists()
    assert run("train", "config.yaml", "--resume") == 2
    assert "--resume needs --out" in capsys.readouterr().err


def test_several_tables_are_joined_and_ids_that_do_not_match_are_reported(folder, capsys) -> None:
    bank = pl.DataFrame(
        {"pid": [str(i) for i in range(105, 140)][::-1], "income": np.linspace(-1, 1, 35)}
    )
    bank.write_csv(folder / "bank.csv")
    (folder / "two.yaml").write_text(
        "data: {table: patients.csv, label: y, id: pid, clients: {clinic: [f0, f1], bank_b: "
        "{table: bank.csv}}}\n"
        "network: {kind: complete}\nmethod: {kind: stcd}\nstop: {iterations: 20}\n"
    )
    assert run("train", "two.yaml", "--json") == 0
    notes = " ".join(outcome(capsys)["notes"])
    assert "5 of 30 ids" in notes
    assert "10 of 35 ids" in notes
    assert "f2, f3, f4, f5" in notes


def test_inspect_says_what_would_run_without_running(folder, capsys) -> None:
    assert run("inspect", "config.yaml", "--json") == 0
    said = outcome(capsys)
    assert said["clients"] == {
        "client_0": ["f0", "f1"],
        "client_1": ["f2", "f3"],
        "client_2": ["f4", "f5"],
    }
    assert said["network"]["connected"] is True
    assert said["network"]["algebraic_connectivity"] == pytest.approx(1.0)
    assert (said["network"]["diameter"], said["network"]["degree_max"]) == (2, 2)
    assert said["token_floats"] == 30
    X = pl.read_csv("patients.csv").drop("pid", "y").to_numpy()
    L = np.linalg.norm(X, 2) ** 2 + 1
    assert said["smoothness"]["overall"] == pytest.approx(L, rel=1e-6)
    assert said["stepsize_limit"] == pytest.approx(1 / (2 * L * 8 * 5), rel=1e-6)
    assert said["cost_per_iteration"] == pytest.approx(4.16)
    assert not (folder / "runs").exists()
    assert run("inspect", "config.yaml") == 0
    assert "algebraic connectivity" in capsys.readouterr().out


def test_inspect_lists_who_leaves_and_joins(folder, capsys) -> None:
    changes = (
        "network.changes=[{iteration: 5, leave: [client_0, client_2]}, "
        "{iteration: 9, join: [client_1, client_2]}]"
    )
    assert run("inspect", "config.yaml", "--json", "--set", changes) != 0
    assert "all clients are absent" in capsys.readouterr().err
    changes = changes.replace("client_1, ", "")
    assert run("inspect", "config.yaml", "--json", "--set", changes) == 0
    said = ["at iteration 5 client_0, client_2 leave", "at iteration 9 client_2 joins"]
    assert outcome(capsys)["changes"] == said
    assert run("inspect", "config.yaml", "--set", changes, "--set", "method.kind=dcpa") != 0
    assert "dcpa needs all clients" in capsys.readouterr().err


def spoil(folder: Path, how: str) -> None:
    frame = pl.read_csv(folder / "patients.csv")
    spoiled = {
        "duplicate": frame.with_columns(
            pid=pl.when(pl.col("pid") == 107).then(103).otherwise(pl.col("pid"))
        ),
        "text": frame.with_columns(
            f3=pl.when(pl.col("pid") == 111).then(pl.lit("high")).otherwise(pl.col("f3").cast(str))
        ),
        "nan": frame.with_columns(
            f2=pl.when(pl.col("pid") == 104).then(float("nan")).otherwise(pl.col("f2"))
        ),
        "infinite": frame.with_columns(
            f2=pl.when(pl.col("pid") == 104).then(float("inf")).otherwise(pl.col("f2"))
        ),
        "empty": frame.with_columns(
            f2=pl.when(pl.col("pid") == 104).then(None).otherwise(pl.col("f2"))
        ),
        "label": frame.with_columns(
            y=pl.when(pl.col("pid") == 104).then(None).otherwise(pl.col("y"))
        ),
        "large": frame.with_columns(
            y=pl.when(pl.col("pid") == 104).then(1e200).otherwise(pl.col("y"))
        ),
        "constant": frame.with_columns(y=pl.lit(1.5)),
    }
    spoiled[how].write_csv(folder / "patients.csv")


BAD = {
    "missing file": ("data.table=nothing.csv", ["nothing.csv"]),
    "missing label": ("data.label=outcome", ["outcome", "patients.csv"]),
    "missing id": ("data.id=patient", ["patient", "pid"]),
    "missing column": ("data.clients={a: [f0, f9]}", ["f9", "'a'"]),
    "missing own table": ("data.clients={a: [f0], b: {table: gone.csv}}", ["gone.csv"]),
    "duplicate ids": ("duplicate", ["103", "4", "8"]),
    "non-numeric column": ("text", ["f3", "high", "12"]),
    "nan": ("nan", ["f2", "5"]),
    "infinite": ("infinite", ["f2", "5"]),
    "empty cell": ("empty", ["f2", "5"]),
    "empty label": ("label", ["y", "5"]),
    "constant label": ("constant", ["y", "1.5"]),
    "more clients than columns": ("data.clients=7", ["7 clients", "6 columns"]),
    "unknown client in an edge": ("network={edges: links.csv}", ["client_9", "2"]),
    "missing edge file": ("network={edges: none.csv}", ["none.csv"]),
    "disconnected with stcd": ("network={kind: empty}", ["connected", "client_1"]),
    "zero stepsize": ("method.stepsize=0", ["stepsize", "above 0"]),
    "negative stepsize": ("method.stepsize=-0.1", ["stepsize", "-0.1"]),
    "more tokens than clients": (
        "method={kind: mtcd, combine: cluster, tokens: 4, hops: 2}",
        ["4", "3 clients"],
    ),
    "batch larger than N": ("method={kind: mtcd, hops: 2, batch: 31}", ["31", "30 samples"]),
    "unknown key": ("method.hopps=3", ["hopps", "hops"]),
    "labels of logistic": ("model={kind: logistic}", ["labels", "0/1 or -1/1"]),
    "a start that reaches nobody": (
        "method={kind: mtcd, hops: 2, start: client_0}",
        ["client_2", "never be visited"],
    ),
    "a walk that is none": ("method={kind: stcd, walk: lasy}", ["lasy", "lazy"]),
    "too large a label": ("large", ["1e+200", "5"]),
    "a path that is too long": (f"data.table={'x' * 300}.csv", ["There is no file"]),
    "no config": (None, ["nowhere.yaml"]),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("command", ["train", "inspect"])
def test_bad_input_is_one_clear_paragraph_and_leaves_nothing(
    folder, capsys, name: str, command: str
) -> None:
    change, says = BAD[name]
    (folder / "links.csv").write_text("source,target\nclient_0,client_1\nclient_1,client_9\n")
    config, changes = "config.yaml", []
    if change is None:
        config = "nowhere.yaml"
    elif "=" in change:
        changes = ["--set", change]
    else:
        spoil(folder, change)
    if name.endswith("stcd"):
        changes += ["--set", "method={kind: stcd}"]
    before = sorted(folder.rglob("*"))
    assert run(command, config, *changes) == 2
    shown = capsys.readouterr()
    text = " ".join(shown.err.split())
    assert shown.out == ""
    assert "Traceback" not in text
    assert text.startswith(("Error:", "Note:"))
    for word in says:
        assert word in text, text
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize("out", ["config.yaml", "full", "/proc/nowhere/run", "x" * 300])
def test_a_folder_that_cannot_be_written_is_said_before_the_work(folder, capsys, out: str) -> None:
    (folder / "full").mkdir()
    (folder / "full" / "thesis.txt").write_text("precious")
    assert run("train", "config.yaml", "--out", out) == 2
    assert "choose" in capsys.readouterr().err


def test_wrong_usage_is_code_2(folder) -> None:
    assert run("train") == 2
    assert run("trian", "config.yaml") == 2
    assert run("train", "config.yaml", "--seed", "-3") == 2


def test_as_a_program_without_tracebacks(folder) -> None:
    program = [sys.executable, "-m", "mtcd", "train", "config.yaml"]
    good = subprocess.run([*program, "--json", "--quiet"], capture_output=True, text=True)
    assert good.returncode == 0
    assert good.stderr == ""
    assert json.loads(good.stdout)["status"] == "converged"
    bad = subprocess.run([*program, "--set", "data.label=nope"], capture_output=True, text=True)
    assert bad.returncode == 2
    assert "Traceback" not in bad.stderr
    assert bad.stdout == ""


def test_help_reads_like_a_manual_and_does_not_import_the_heavy_parts() -> None:
    script = (
        "import sys\nfrom mtcd.cli.app import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print([m for m in ('numpy', 'scipy', 'networkx', 'polars', 'matplotlib', 'pydantic') if m "
        "in sys.modules])"
    )
    environment = {**os.environ, "COLUMNS": "100"}
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert shown.strip().endswith("[]")
    for word in ("train", "inspect", "demo", "token", "Exit codes"):
        assert word in shown


def test_shells_complete_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in {
        "_MTCD_COMPLETE": "complete_bash",
        "COMP_WORDS": "mtcd tr",
        "COMP_CWORD": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert run() == 0
    assert capsys.readouterr().out.split() == ["train"]
