"""Split networks from the command line: configs, somebody's own modules, run folders, and bad
input."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import load_file

import mtcd
from commands import outcome, run
from mtcd.config.build import build
from mtcd.config.read import read_config
from split_problems import same_weights

CONFIG = """
data: {table: people.csv, label: kind, id: pid, clients: {left: [f0, f1], right: [f2, f3, f4]}, test_samples: 10}
model: {kind: split, client: mlp, client_settings: {hidden: [6], width: 3, dropout: 0.2}, optimiser: {kind: Adam}}
network: {kind: complete}
method: {kind: mtcd, tokens: 2, hops: 2, local_updates: 2, stepsize: 0.02, batch: 10, combine: cluster,
         schedule: {every: 1}}
stop: {epochs: 3}
compute: {device: cpu}
"""
NETS = """
from torch import nn

def make_client(shape, client, hidden=5):
    return nn.Sequential(nn.Linear(shape[0], hidden), nn.Tanh(), nn.Linear(hidden, 3))

class make_fusion(nn.Linear):
    def __init__(self, width, outputs):
        super().__init__(width, outputs)

def raises(shape):
    raise RuntimeError("no more memory")

def no_module(shape):
    return "a net"

def make_lazy(shape):
    return nn.LazyLinear(3)

number = 3
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A working folder with a table, a config for it and a module of somebody's own."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5))
    kinds = np.array(["cat", "dog", "owl"])[
        np.argsort(np.argsort(np.sin(2 * X.sum(axis=1)))) * 3 // 40
    ]
    columns = {f"f{j}": X[:, j] for j in range(5)}
    pl.DataFrame({"pid": np.arange(40), "kind": kinds, **columns}).write_csv(
        tmp_path / "people.csv"
    )
    (tmp_path / "config.yaml").write_text(CONFIG)
    (tmp_path / "mynets.py").write_text(NETS)
    monkeypatch.chdir(tmp_path)
    sys.modules.pop("mynets", None)
    yield tmp_path
    sys.modules.pop("mynets", None)


def test_train_leaves_a_whole_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("train", "config.yaml", "--out", "here", "--json") == 0
    said = outcome(capsys)
    assert said["status"] == "epochs"
    assert said["epoch"] == 3
    assert 0 <= said["test_accuracy"] <= 1
    assert said["iterations"] == 3 * 3 * 2  # epochs, batches, hops
    names = {path.name for path in (folder / "here").iterdir()} - {"checkpoint.safetensors"}
    assert names == {
        "config.yaml",
        "history.csv",
        "history.png",
        "ledger.json",
        "model.safetensors",
        "run.json",
        "trace.npz",
    }
    weights = load_file(folder / "here" / "model.safetensors")
    assert weights["client/left/1.weight"].shape == (6, 2)
    assert weights["fusion/0.weight"].shape == (3, 6)
    history = pl.read_csv(folder / "here" / "history.csv")
    assert history["epoch"].to_list() == [0, 1, 2, 3]
    assert history["test_accuracy"][-1] == said["test_accuracy"]


@pytest.mark.parametrize("own", [True, False])
def test_the_config_left_behind_repeats_the_run_wherever_it_is_started(
    folder: Path, monkeypatch: pytest.MonkeyPatch, own: bool
) -> None:
    changes = (
        ["--set", "model.client=mynets:make_client", "--set", "model.fusion=mynets:make_fusion"]
        if own
        else []
    )
    changes += ["--set", "model.client_settings={hidden: 4}"] if own else []
    away = folder / "elsewhere"
    away.mkdir()
    monkeypatch.chdir(away)
    for arguments in (
        ["../config.yaml", *changes, "--out", "../first"],
        ["../first/config.yaml", "--out", "again"],
    ):
        sys.modules.pop("mynets", None)
        assert run("train", *arguments, "--quiet") == 0
    first, again = (
        load_file(place / "model.safetensors") for place in (folder / "first", away / "again")
    )
    assert same_weights(first, again)
    assert (folder / "first" / "ledger.json").read_text() == (
        away / "again" / "ledger.json"
    ).read_text()
    if own:
        assert first["client/left/0.weight"].shape == (4, 2)


def test_somebodys_own_networks_start_from_the_seed(folder: Path) -> None:
    own = [
        "--set",
        "model.client=mynets:make_client",
        "--set",
        "model.client_settings={}",
        "--set",
        "stop.epochs=1",
    ]
    for seed, out in (("1", "a"), ("1", "b"), ("2", "c")):
        torch.manual_seed(ord(out))
        assert run("train", "config.yaml", *own, "--seed", seed, "--out", out, "--quiet") == 0
    a, b, c = (load_file(folder / out / "model.safetensors") for out in "abc")
    assert same_weights(a, b)
    assert not same_weights(a, c)


def test_lazy_layers_start_from_the_seed_too(folder: Path) -> None:
    for out in ("a", "b"):
        torch.manual_seed(ord(out))
        assert run("train", "config.yaml", "--out", out, "--quiet", "--set", "model.client=mynets:make_lazy",
                   "--set", "model.client_settings={}") == 0  # fmt: skip
    assert same_weights(*(load_file(folder / out / "model.safetensors") for out in ("a", "b")))


def test_networks_scale_by_the_training_samples_and_so_do_runs_that_are_read_back(
    folder: Path,
) -> None:
    changes = ["data.standardise=true"]
    setup = build(read_config(folder / "config.yaml", changes))
    assert run("train", "config.yaml", "--out", "here", "--quiet", "--set", *changes) == 0
    back = mtcd.load_run(folder / "here")
    for name, x in setup.data.features.items():
        for modules in (setup.model.representations, back.modules):
            scaled = modules[name][0](torch.as_tensor(x))
            assert np.allclose(scaled.mean(axis=0), 0, atol=1e-5)
            assert np.allclose(scaled.std(axis=0, correction=0), 1, atol=1e-5)
    right = back.predict(setup.data.test) == setup.data.test.labels
    assert right.mean() == pytest.approx(back.final.test_accuracy)


def test_a_training_that_began_over_a_finished_one_is_not_written_over(folder: Path) -> None:
    assert run("train", "config.yaml", "--out", "here", "--quiet") == 0
    assert run("train", "config.yaml", "--out", "here", "--quiet") == 0
    kept = folder / "here" / "checkpoint.safetensors"
    # as if another had begun, and died
    os.utime(kept, (kept.stat().st_atime + 100, kept.stat().st_mtime + 100))
    assert run("train", "config.yaml", "--out", "here", "--quiet") == 2


def test_an_interrupted_run_is_not_written_over(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("train", "config.yaml", "--out", "here", "--quiet") == 0
    told = json.loads((folder / "here" / "run.json").read_text())
    (folder / "here" / "run.json").write_text(json.dumps({**told, "status": "interrupted"}))
    assert run("train", "config.yaml", "--out", "here", "--quiet") == 2
    assert "--resume" in capsys.readouterr().err
    assert run("train", "config.yaml", "--out", "here", "--quiet", "--resume") == 0


def test_inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("inspect", "config.yaml", "--json") == 0
    said = outcome(capsys)
    assert said["samples"] == 30
    assert said["test_samples"] == 10
    assert said["classes"] == ["cat", "dog", "owl"]
    left, right = said["clients"]["left"], said["clients"]["right"]
    assert (left["shape"], left["width"], left["parameters"]) == ([2], 3, 2 * 6 + 6 + 6 * 3 + 3)
    assert right["parameters"] == 3 * 6 + 6 + 6 * 3 + 3
    theta_0 = 6 * 3 + 3
    assert said["fusion_parameters"] == theta_0
    assert said["uplink_floats"] == [10 * 3, 10 * 3]
    assert said["downlink_floats"] == said["hop_floats"] == 10 * 6 + theta_0
    assert said["iterations_per_epoch"] == 3
    assert said["cost_per_iteration"] == pytest.approx(2 + 2 + 2 * 2 / 100)
    assert said["iteration_cost_per"]["float"] == pytest.approx(2 * 30 + 2 * 81 + 2 * 2 * 81 / 100)
    assert run("inspect", "config.yaml", "--json", "--set", "costs.per=float") == 0
    assert outcome(capsys)["cost_per_iteration"] == said["iteration_cost_per"]["float"]
    assert run("inspect", "config.yaml") == 0
    shown = capsys.readouterr().out
    assert "81 floats, 324 bytes" in shown
    assert "30 samples, 10 for the test, 3 classes" in shown


@pytest.mark.parametrize("aggregation", ["sum", "mean", "concat"])
@pytest.mark.parametrize(
    "method", ["{kind: svfl, stepsize: 0.1, batch: 8}", "{kind: stcd, stepsize: 0.1}"]
)
def test_synthetic_data_and_other_methods(folder: Path, aggregation: str, method: str) -> None:
    (folder / "made.yaml").write_text(
        "data: {synthetic: multinomial, samples: 32, features: 6, clients: 3, test_samples: 8}\n"
        f"model: {{kind: split, client: mlp, fusion: mlp, aggregation: {aggregation}}}\n"
        f"method: {method}\nnetwork: {{kind: path}}\nstop: {{iterations: 8}}\ncompute: {{device: "
        f"cpu}}\n"
    )
    assert run("train", "made.yaml", "--out", "here", "--quiet") == 0
    said = json.loads((folder / "here" / "run.json").read_text())
    assert said["iterations"] == 8
    assert said["split"]["aggregation"] == aggregation


BAD = {
    "model.client=mynets:nothing": ("mynets:nothing", "cannot be imported"),
    "model.client=nonets:make": ("nonets:make", "No module named"),
    "model.client=mynets:raises": ("no more memory",),
    "model.client=mynets:no_module": ("str", "torch.nn.Module"),
    "model.client=mynets:number": ("mynets:number", "no function"),
    "model.kind=spilt": ("model.kind", "'split'"),
    "model.client=mpl": ("'mpl'", "mlp", "package.module:function"),
    "model.client_settings={widht: 4}": ("widht", "width"),
    "model.client_settings={width: 0}": ("width",),
    "model.fusion=tree": ("model.fusion", "tree"),
    "model.fusion_settings={depth: 4}": ("model.fusion", "depth"),
    "model.aggregation=add": ("model.aggregation", "add"),
    "model.loss=hinge": ("model.loss", "hinge"),
    "model.optimiser.kind=Adma": ("Adma", "Adam"),
    "model.optimiser.lr=0.1": ("leave lr out", "method.stepsize"),
    "model.optimiser.speed=0.1": ("speed",),
    "model.optimizer.kind=Adam": ("optimizer",),
    "compute.device=tpu": ("compute.device", "tpu"),
    "compute.graphs=true": ("compute.graphs", "GPU"),
    "method.stepsize=auto": ("auto", "number"),
    "method.batch=31": ("method.batch", "30"),
    "method.combine=optimal": ("optimal",),
    "data.test_samples=40": ("test_samples", "40"),
    "stop={gap: 0.1}": ("stop.gap",),
}


@pytest.mark.parametrize("change", BAD)
@pytest.mark.parametrize("command", ["train", "inspect"])
def test_bad_input_is_told_in_words(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str, change: str
) -> None:
    clean = ["--set", "model.client_settings={}"] if "model.client=" in change else []
    out = ["--out", "here"] if command == "train" else ["--run-code"]
    assert run(command, "config.yaml", *out, *clean, "--set", change) == 2
    said = capsys.readouterr().err.replace("\n", " ")
    for word in BAD[change]:
        assert word in said
    assert "Traceback" not in said
    assert not (folder / "here").exists()
