"""Metrics on true labels in one process: beside the run, in a file of its own, and nowhere else."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import yaml
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

import mtcd
from commands import run as run_command
from mtcd.core.errors import MtcdError
from mtcd.privacy.labels.own_metrics import OwnMetrics

SEEDED = mtcd.LabelDP(epsilon=1.0, insecure_seeded_draws=True)
LOGISTIC = mtcd.Glm("logistic", l2=1.0)


def data(samples: int = 300, seed: int = 3) -> mtcd.VerticalData:
    return mtcd.synthetic("logistic", samples=samples, features=9, clients=3, seed=seed)


def train(given: Any, model: Any = LOGISTIC, labels: Any = SEEDED, **more: Any) -> mtcd.Run:
    return mtcd.train(
        given,
        model,
        "complete",
        stop=more.pop("stop", mtcd.Stop(iterations=40)),
        privacy=mtcd.Privacy(labels=labels, **more.pop("privacy", {})),
        **more,
    )


def network() -> mtcd.SplitModel:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    modules = {f"client_{k}": torch.nn.Linear(3, 4) for k in range(3)}
    return mtcd.SplitModel(modules, torch.nn.Linear(12, 2))


@pytest.mark.parametrize("kind", ["linear", "trees", "network"])
def test_they_are_those_of_the_true_labels_and_what_is_shown_is_not(kind: str) -> None:
    given, more = data().holdout(0.3), {}
    if kind == "linear":
        model: Any = LOGISTIC
    elif kind == "trees":
        pytest.importorskip("lightgbm")
        model = mtcd.Trees("logistic", min_samples=5)
    else:
        model = network()
        more = {
            "method": mtcd.MTCD(tokens=1, hops=2, stepsize=0.1, batch=70),
            "stop": mtcd.Stop(epochs=3),
        }

    run = train(given, model, **more)
    parts = {"train": given, "test": given.test}
    for part, samples in parts.items():
        assert samples is not None
        asked = mtcd.VerticalDataset.from_table(samples) if kind == "network" else samples
        expected = roc_auc_score(samples.labels, run.predict_proba(asked)[:, 1])
        assert run.own_metrics[f"{part}_auc"] == pytest.approx(expected, abs=1e-6)
        right = accuracy_score(samples.labels, run.predict(asked))
        assert run.own_metrics[f"{part}_accuracy"] == pytest.approx(right)

        # everybody else sees those of randomised labels
        shown = run.final.metrics.get(f"{part}_accuracy")
        assert shown is None or abs(shown - right) > 0.01

    assert run.own_metrics["test_auc"] not in run.summary()["metrics"].values()
    assert "own_metrics" not in repr(run)


def test_those_of_values_and_of_columns_that_are_prepared() -> None:
    rng = np.random.default_rng(0)
    table = {f"x{i}": rng.standard_normal(200) for i in range(4)}
    table["colour"] = rng.choice(["red", "blue"], 200)
    y = 3.0 * table["x0"] + (table["colour"] == "red")
    frame = pl.DataFrame(table)
    given = mtcd.split(frame, y, clients=2, prepare="auto").holdout(0.25)
    noise = mtcd.LabelDP(epsilon=2.0, range=(-9.0, 9.0), insecure_seeded_draws=True)
    run = train(given, mtcd.Glm("ridge", alpha=1.0), noise)
    assert given.test is not None
    expected = r2_score(given.test.labels, run.predict(given.test))
    assert run.own_metrics["test_r2"] == pytest.approx(expected)


def test_those_of_soft_labels() -> None:
    pytest.importorskip("tenseal")
    given = mtcd.synthetic("logistic", samples=400, features=24, clients=2, seed=3)
    noise = mtcd.SoftLabels(soft=0.5, insecure_seeded_draws=True)
    method, stop = mtcd.MTCD(walk="tour"), mtcd.Stop(iterations=20)
    run = train(given, LOGISTIC, noise, method=method, stop=stop, privacy={"mode": "sealed"})
    expected = roc_auc_score(given.labels, run.decision_function(given))
    assert run.own_metrics["train_auc"] == pytest.approx(expected)


def test_labels_that_are_none_of_the_declared_classes_count_as_the_first() -> None:
    given = data()
    labels = given.labels.astype(int)
    rare = labels.copy()
    rare[:5] = 7
    blocks = np.hstack(given.blocks)
    noise = mtcd.LabelDP(epsilon=3.0, classes=(0, 1), insecure_seeded_draws=True)
    run = train(mtcd.split(blocks, rare, clients=3), LOGISTIC, noise)
    counted = np.where(rare == 7, 0, rare)
    expected = roc_auc_score(counted, run.decision_function(blocks))
    assert run.own_metrics["train_auc"] == pytest.approx(expected)


def test_labels_that_are_all_of_one_declared_class_have_metrics_too() -> None:
    """Or else the end of the training would tell of them."""
    blocks = np.hstack(data().blocks)
    few = np.zeros(len(blocks), dtype=int)
    few[:2] = 7  # not declared: it counts as 0
    noise = mtcd.LabelDP(epsilon=1.0, classes=(0, 1), insecure_seeded_draws=True)
    run = train(mtcd.split(blocks, few, clients=3), LOGISTIC, noise)
    assert "train_auc" not in run.own_metrics.values
    right = float((run.predict(blocks) == 0).mean())
    assert run.own_metrics["train_accuracy"] == pytest.approx(right)


def test_a_run_keeps_them_in_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    run = train(data())
    run.save(tmp_path / "run")
    path = tmp_path / "run" / "own_metrics.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text()) == dict(run.own_metrics.values)
    assert mtcd.load_run(tmp_path / "run").own_metrics == run.own_metrics

    # no other file has a number of it
    found = f"{run.own_metrics['train_auc']:.8f}"[:8]
    for other in (tmp_path / "run").iterdir():
        content = other.read_bytes().decode(errors="replace")
        assert (found in content) == (other == path)

    path.write_text("[]")
    with pytest.raises(MtcdError, match="not a complete run folder"):
        mtcd.load_run(tmp_path / "run")


def test_without_label_privacy_and_without_a_model_there_are_none(tmp_path: Path) -> None:
    run = mtcd.train(data(), LOGISTIC, stop=mtcd.Stop(iterations=5))
    assert run.own_metrics is None
    run.save(tmp_path / "run")
    assert not (tmp_path / "run" / OwnMetrics.file).exists()

    diverged = train(data(), method=mtcd.STCD(stepsize=1e9), stop=mtcd.Stop(iterations=400))
    assert diverged.status == "diverged"
    assert diverged.own_metrics is None


def test_the_command_writes_them_with_the_labels_of_the_table(tmp_path: Path) -> None:
    given = data()
    columns = {f"x{i}": column for i, column in enumerate(np.hstack(given.blocks).T)}
    pl.DataFrame({**columns, "y": given.labels.astype(int)}).write_csv(tmp_path / "table.csv")
    clients = {"a": ["x0", "x1", "x2", "x3"], "b": ["x4", "x5", "x6", "x7", "x8"]}
    content = {
        "data": {"table": "table.csv", "label": "y", "clients": clients, "holdout": 0.3},
        "model": {"kind": "logistic", "l2": 1},
        "privacy": {"labels": {"epsilon": 1}},
        "stop": {"iterations": 30},
    }
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(content))
    out = tmp_path / "run"
    config = str(tmp_path / "config.yaml")
    assert run_command("train", config, "--out", str(out), "--quiet") == 0
    own = json.loads((out / OwnMetrics.file).read_text())

    whole = mtcd.read_tables(tmp_path / "table.csv", "y", clients).holdout(0.3)
    run = mtcd.load_run(out)
    assert whole.test is not None
    for part, samples in (("train", whole), ("test", whole.test)):
        expected = roc_auc_score(samples.labels, run.decision_function(samples))
        assert own[f"{part}_auc"] == pytest.approx(expected)
