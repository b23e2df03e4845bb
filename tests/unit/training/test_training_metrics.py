"""Hold-outs and metrics while training: linear models and split networks, against scikit-learn."""

from __future__ import annotations

import csv
import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from sklearn import metrics as sk

import mtcd
from mtcd.core.errors import DataError

STOP = mtcd.Stop(iterations=60)
METHOD = mtcd.MTCD(tokens=2, hops=4, local_updates=3)


def logistic(samples: int = 120, clients: int = 4) -> mtcd.VerticalData:
    return mtcd.synthetic("logistic", samples=samples, features=8, clients=clients, seed=3)


def test_a_holdout_parts_the_rows_once_for_all_clients() -> None:
    data = logistic()
    held = data.holdout(0.25, seed=5)
    assert (held.samples, held.test.samples) == (90, 30)
    whole = np.column_stack([*data.blocks, data.labels])
    parts = [np.column_stack([*part.blocks, part.labels]) for part in (held, held.test)]
    assert sorted(map(tuple, np.vstack(parts))) == sorted(map(tuple, whole))
    same = mtcd.VerticalDataset.from_table(data).holdout(0.25, seed=5)
    np.testing.assert_array_equal(same.labels, held.labels)
    moved = mtcd.VerticalDataset.from_table(held)
    np.testing.assert_array_equal(moved.test.features["client_1"], same.test.features["client_1"])
    assert not np.array_equal(data.holdout(0.25, seed=6).labels, held.labels)
    assert "30 samples for the test" in repr(held)


def test_a_holdout_of_sparse_columns_stays_sparse() -> None:
    X = scipy.sparse.random_array((50, 6), density=0.4, rng=np.random.default_rng(0), format="csr")
    held = mtcd.split(X, np.arange(50.0), clients=2).holdout(0.2)
    assert all(scipy.sparse.issparse(block) for block in (*held.blocks, *held.test.blocks))
    np.testing.assert_array_equal(
        held.blocks[0].toarray(), X[held.labels.astype(int), :3].toarray()
    )


def test_bad_holdouts_are_refused() -> None:
    data = logistic()
    for fraction in (0.001, 1.0):
        with pytest.raises(DataError, match="cannot be held out of 120 samples"):
            data.holdout(fraction)
    with pytest.raises(DataError, match="test set already"):
        data.holdout(0.2).holdout(0.2)
    with pytest.raises(DataError, match="same clients with the same columns"):
        replace(data, test=mtcd.split(np.eye(4), [0, 1, 0, 1], clients=2))
    with pytest.raises(DataError, match="without a test set of its own"):
        replace(data, test=data.holdout(0.2))


@pytest.mark.parametrize(
    "method", [METHOD, mtcd.STCD(local_updates=2), mtcd.DCPA(), mtcd.SVFL(local_updates=3)]
)
def test_a_linear_model_against_scikit_learn(method) -> None:
    data = logistic().holdout(0.3, seed=1)
    names = ("auc", "log_loss", "accuracy")
    model = mtcd.Glm("logistic", l2=1.0, intercept=True)
    run = mtcd.train(data, model, "cycle", method, STOP, standardise=True, metrics=names)
    for part, samples in (("train", data), ("test", data.test)):
        z = np.column_stack(samples.blocks) @ run.coefficients + run.intercept
        y, p = samples.labels, 1 / (1 + np.exp(-z))
        found = {name: run.final.metrics[f"{part}_{name}"] for name in names}
        expected = {
            "auc": sk.roc_auc_score(y, z),
            "log_loss": sk.log_loss(y, p),
            "accuracy": np.mean((z > 0) == (y > 0)),
        }
        assert found == pytest.approx(expected, rel=1e-9)
    first = run.history.rows[0].metrics
    assert first["train_auc"] == 0.5
    assert first["test_log_loss"] == pytest.approx(np.log(2))
    assert run.final.test_accuracy == run.final.metrics["test_accuracy"]


def test_standardising_takes_means_of_training_rows_only() -> None:
    data = mtcd.split(np.arange(40.0).reshape(20, 2) ** 2, np.arange(20.0), clients=2).holdout(
        0.4, seed=2
    )
    run = mtcd.train(
        data, mtcd.Glm("ridge", intercept=True), "complete", METHOD, STOP, standardise=True
    )
    np.testing.assert_allclose(run.model.scaling.means[0], data.blocks[0].mean(axis=0))
    z = np.column_stack(data.test.blocks) @ run.coefficients + run.intercept
    assert run.final.metrics["test_rmse"] == pytest.approx(
        np.sqrt(np.mean((z - data.test.labels) ** 2))
    )


def test_metrics_change_neither_the_iterates_nor_the_objective() -> None:
    data = logistic().holdout(0.3)
    model = mtcd.Glm("logistic", l2=1.0)
    plain, measured = (
        mtcd.train(data, model, "path", METHOD, STOP, metrics=names)
        for names in ((), ("auc", "ks"))
    )
    np.testing.assert_array_equal(plain.coefficients, measured.coefficients)
    np.testing.assert_array_equal(plain.history["objective"], measured.history["objective"])
    assert plain.history.metrics == ()
    assert measured.history.metrics == ("train_auc", "train_ks", "test_auc", "test_ks")


def test_metrics_are_spaced_and_always_at_the_end() -> None:
    stop = mtcd.Stop(iterations=2000)
    run = mtcd.train(logistic(), mtcd.Glm("logistic", l2=1.0), "path", mtcd.STCD(), stop)
    measured = [row.iteration for row in run.history if row.metrics]
    assert len(measured) < len(run.history) / 2
    assert (measured[0], measured[-1]) == (0, 2000)
    assert all(b <= 1.25 * a + 1 for a, b in itertools.pairwise(measured))


def test_a_holdout_of_one_class_leaves_out_what_is_not_defined() -> None:
    data = logistic()
    rows = np.flatnonzero(data.labels == data.labels[0])[:5]
    from mtcd.data.vertical import HeldOut

    test = HeldOut(
        data.clients, data.columns, tuple(block[rows] for block in data.blocks), data.labels[rows]
    )
    run = mtcd.train(replace(data, test=test), mtcd.Glm("logistic", l2=1.0), "path", METHOD, STOP)
    assert "test_auc" not in run.final.metrics
    assert 0 <= run.final.metrics["test_accuracy"] <= 1


def test_a_test_class_that_no_training_sample_has() -> None:
    data = mtcd.split(np.eye(4), ["a", "b", "a", "b"], clients=2)
    other = mtcd.split(np.eye(4), ["a", "b", "c", "b"], clients=2)
    with pytest.raises(DataError, match="label 'c' is of a class that no training sample has"):
        mtcd.train(replace(data, test=other), mtcd.Glm("multinomial"), "path", METHOD, STOP)


def test_saved_history_has_the_metrics_after_the_old_columns(tmp_path) -> None:
    data = logistic().holdout(0.3)
    run = mtcd.train(data, mtcd.Glm("logistic", l2=1.0), "path", METHOD, STOP)
    run.save(tmp_path / "run")
    with (tmp_path / "run" / "history.csv").open(newline="") as file:
        header = next(csv.reader(file))
    assert header[-4:] == ["test_accuracy", "train_accuracy", "train_auc", "test_auc"]
    loaded = mtcd.load_run(tmp_path / "run")
    assert loaded.history.rows == run.history.rows
    summary = json.loads((tmp_path / "run" / "run.json").read_text())
    assert summary["metrics"] == run.final.metrics
    assert np.isnan(run.history["test_auc"]).sum() == sum(not row.metrics for row in run.history)


def test_a_history_without_metrics_still_loads(tmp_path) -> None:
    run = mtcd.train(logistic(), mtcd.Glm("logistic", l2=1.0), "path", METHOD, STOP, metrics=())
    run.save(tmp_path / "run")
    assert (
        (tmp_path / "run" / "history.csv")
        .read_text()
        .splitlines()[0]
        .endswith("epoch,accuracy,test_accuracy")
    )
    assert mtcd.load_run(tmp_path / "run").history.rows == run.history.rows


@pytest.mark.parametrize("kind", ["multinomial", "ridge"])
def test_split_networks_measure_too(kind: str, tmp_path) -> None:
    nn = pytest.importorskip("torch").nn
    data = mtcd.VerticalDataset.from_table(
        mtcd.synthetic(kind, samples=150, features=6, clients=3)
    ).holdout(0.2)
    outputs = 3 if kind == "multinomial" else 1
    model = mtcd.SplitModel(
        {client: nn.Linear(2, 4) for client in data.clients}, nn.Linear(12, outputs)
    )
    method = mtcd.MTCD(tokens=1, hops=3, local_updates=2, batch=40, stepsize=0.05)
    names = ("accuracy", "auc", "log_loss") if outputs == 3 else ("rmse", "r2")
    folder = tmp_path / "run"
    run = mtcd.train(
        data, model, "path", method, mtcd.Stop(epochs=3), metrics=names, checkpoint=folder
    )
    for part, samples in (("train", data), ("test", data.test)):
        z, y = run.trained().decision(samples).astype(float), samples.labels
        if outputs == 3:
            p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
            expected = [
                np.mean(z.argmax(1) == y),
                sk.roc_auc_score(y, p, multi_class="ovr"),
                sk.log_loss(y, p),
            ]
        else:
            expected = [sk.root_mean_squared_error(y, z[:, 0]), sk.r2_score(y, z[:, 0])]
        found = [run.final.metrics[f"{part}_{name}"] for name in names]
        assert found == pytest.approx(expected, rel=1e-5)
    further = mtcd.train(
        data,
        model,
        "path",
        method,
        mtcd.Stop(epochs=4),
        metrics=names,
        checkpoint=folder,
        resume=True,
    )
    assert further.history.rows[:4] == run.history.rows
    if outputs == 3:
        assert run.final.accuracy == pytest.approx(run.final.metrics["train_accuracy"])
        assert run.final.test_accuracy == pytest.approx(run.final.metrics["test_accuracy"])
