"""A run on new samples: probabilities, scores, metrics, pictures; from Python and the command
line."""

from __future__ import annotations

import itertools
import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from matplotlib import image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

import mtcd
from commands import outcome
from commands import run as command
from mtcd.core.errors import ConfigError, DataError
from mtcd.plots.paper import Paper
from mtcd.reporting.plots import draw_runs, plot_metrics, plot_runs

STOP = mtcd.Stop(iterations=200)
METHOD = mtcd.MTCD(tokens=2, hops=4, local_updates=5)
COLUMNS = [f"f{j}" for j in range(6)]


def table(samples: int = 120, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(samples, 6))
    z = X @ np.array([1.0, -1.0, 0.5, 2.0, 0.0, 1.0]) + rng.normal(size=samples)
    kind = np.array(["low", "mid", "high"])[np.digitize(z, [-1, 1])]
    columns = {name: X[:, j] for j, name in enumerate(COLUMNS)}
    ids = [f"p{i}" for i in range(samples)]
    return pl.DataFrame({"pid": ids, **columns, "y": (z > 0).astype(int), "kind": kind, "value": z})


def fitted(kind: str, label: str, **settings: object) -> mtcd.Run:
    data = mtcd.split(table().select(COLUMNS), table()[label].to_numpy(), clients=3)
    return mtcd.train(
        data, mtcd.Glm(kind, l2=1.0, intercept=True, **settings), "cycle", METHOD, STOP
    )


NEW = table(60, seed=1)
X_NEW = NEW[COLUMNS]  # `select` would start threads before the forks of `make mutants`


def test_probabilities_of_two_classes() -> None:
    data = mtcd.split(table().select(COLUMNS), table()["y"].to_numpy(), clients=3)
    model = mtcd.Glm("logistic", l2=1.0, intercept=True)
    run = mtcd.train(data, model, "cycle", mtcd.TreeCG(), mtcd.Stop(gap=1e-9))
    theirs = LogisticRegression(C=1.0, tol=1e-10).fit(
        table().select(COLUMNS).to_numpy(), table()["y"]
    )
    assert run.classes == (0, 1)
    np.testing.assert_allclose(
        run.predict_proba(X_NEW), theirs.predict_proba(X_NEW.to_numpy()), atol=2e-4
    )
    np.testing.assert_allclose(
        run.decision_function(X_NEW), theirs.decision_function(X_NEW.to_numpy()), atol=2e-3
    )
    np.testing.assert_array_equal(run.decision(X_NEW), run.decision_function(X_NEW))
    assert run.score(X_NEW, NEW["y"]) == theirs.score(X_NEW.to_numpy(), NEW["y"])


def test_probabilities_of_several_classes_and_extreme_scores() -> None:
    run = fitted("multinomial", "kind")
    p = run.predict_proba(X_NEW)
    assert run.classes == ("high", "low", "mid")
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(np.array(run.classes)[p.argmax(axis=1)], run.predict(X_NEW))
    for one in (run, fitted("logistic", "y")):
        far = one.predict_proba(X_NEW.to_numpy() * 1e6)
        assert ((far >= 0) & (far <= 1)).all()


@pytest.mark.parametrize("kind", ["squared-hinge", "ridge", "huber"])
def test_models_without_probabilities_say_so(kind: str) -> None:
    run = fitted(kind, "y" if kind == "squared-hinge" else "value")
    with pytest.raises(ConfigError, match="gives no probabilities: use logistic or multinomial"):
        run.predict_proba(X_NEW)
    assert run.classes == ((0, 1) if kind == "squared-hinge" else ())
    assert "log_loss" not in run.evaluate(X_NEW, NEW["y" if kind == "squared-hinge" else "value"])


def test_evaluate_against_scikit_learn() -> None:
    run, y = fitted("logistic", "y"), NEW["y"].to_numpy()
    p = run.predict_proba(X_NEW)[:, 1]
    found = run.evaluate(X_NEW, y)
    assert found["auc"] == pytest.approx(sk.roc_auc_score(y, p))
    assert found["log_loss"] == pytest.approx(sk.log_loss(y, p))
    assert found["f1"] == pytest.approx(sk.f1_score(y, run.predict(X_NEW)))
    run, y = fitted("ridge", "value"), NEW["value"].to_numpy()
    assert (
        run.evaluate(X_NEW, y)["r2"]
        == run.score(X_NEW, y)
        == pytest.approx(sk.r2_score(y, run.predict(X_NEW)))
    )


def test_labels_that_do_not_fit_are_refused() -> None:
    run = fitted("multinomial", "kind")
    with pytest.raises(DataError, match="label 'huge' is of a class that no training sample has"):
        run.evaluate(X_NEW, ["huge", *NEW["kind"][1:]])
    with pytest.raises(DataError, match="60 samples, but 3 labels"):
        run.evaluate(X_NEW, ["low", "mid", "low"])
    with pytest.raises(DataError, match="no labels: give them as y"):
        run.evaluate(X_NEW)
    with pytest.raises(DataError, match="labels are texts, but this model predicts numbers"):
        fitted("ridge", "value").evaluate(X_NEW, NEW["kind"])


def test_one_class_in_the_table_is_nan_and_has_no_curves(tmp_path) -> None:
    run, ones = fitted("logistic", "y"), np.ones(60, dtype=int)
    found = run.evaluate(X_NEW, ones)
    assert math.isnan(found["auc"])
    assert found["accuracy"] == np.mean(run.predict(X_NEW) == 1)
    with pytest.raises(DataError, match="All labels are of one class"):
        run.plot_evaluation(X_NEW, ones, tmp_path / "pictures")
    assert not (tmp_path / "pictures").exists()


def test_classes_in_any_script_are_drawn_without_warnings(tmp_path) -> None:
    names = np.array(["良性", "悪性"])[NEW["y"].to_numpy()]
    run = mtcd.train(
        mtcd.split(X_NEW, names, 2), mtcd.Glm("logistic", l2=1.0), "path", METHOD, STOP
    )
    assert len(run.plot_evaluation(X_NEW, names, tmp_path)) == 4


def test_data_with_labels_needs_no_y() -> None:
    data = mtcd.synthetic("logistic", samples=80, features=4, clients=2).holdout(0.25)
    run = mtcd.train(data, mtcd.Glm("logistic", l2=1.0), "path", METHOD, STOP)
    assert run.score(data.test) == run.final.metrics["test_accuracy"]


@pytest.mark.parametrize("outputs", [1, 2])
def test_a_split_network_gives_probabilities(outputs: int, tmp_path) -> None:
    nn = pytest.importorskip("torch").nn
    data = mtcd.split(table().select(COLUMNS), table()["y"].to_numpy(), clients=3)
    loss = nn.BCEWithLogitsLoss()
    one = None if outputs == 2 else lambda z, y: loss(z[:, 0], y.float())
    model = mtcd.SplitModel(
        {name: nn.Linear(2, 3) for name in data.clients}, nn.Linear(9, outputs), loss=one
    )
    method = mtcd.MTCD(tokens=1, hops=3, batch=30, stepsize=0.1)
    run = mtcd.train(data, model, "path", method, mtcd.Stop(epochs=4))
    p = run.predict_proba(X_NEW)
    assert p.shape == (60, 2)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(run.predict(X_NEW), (p[:, 1] > 0.5).astype(int))
    assert run.evaluate(X_NEW, NEW["y"])["auc"] == pytest.approx(
        sk.roc_auc_score(NEW["y"], p[:, 1])
    )
    run.save(tmp_path / "run")
    again = mtcd.load_run(tmp_path / "run", model)
    np.testing.assert_array_equal(again.predict_proba(X_NEW), p)
    with pytest.raises(DataError, match="no column 'f0'"):
        again.predict(X_NEW.drop("f0"))


CONFIG = """
data: {{table: train.csv, label: {label}, id: pid, clients: 3, ignore: [{ignore}], holdout: 0.25}}
model: {model}
method: {method}
stop: {stop}
metrics: [{metrics}]
"""
LINEAR = {"method": "{kind: mtcd, tokens: 2, hops: 4}", "stop": "{iterations: 40}"}
SPLIT = {
    "method": "{kind: mtcd, tokens: 1, hops: 3, batch: 20, stepsize: 0.1}",
    "stop": "{epochs: 2}",
}
CASES = {
    "logistic": ("y", "kind, value", "{kind: logistic, intercept: true}", "auc, brier", LINEAR),
    "hinge": ("y", "kind, value", "{kind: squared-hinge}", "ks", LINEAR),
    "ridge": ("value", "kind, y", "{kind: ridge}", "mae", LINEAR),
    "split": (
        "kind",
        "y, value",
        "{kind: split, client: mlp, client_settings: {width: 3, hidden: [4]}}",
        "f1",
        SPLIT,
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("runs")
    table().write_csv(place / "train.csv")
    NEW.write_csv(place / "new.csv")
    NEW.select("pid", *COLUMNS).write_csv(place / "bare.csv")
    for name, (label, ignore, model, metrics, rest) in CASES.items():
        if name == "split" and find_spec("torch") is None:
            continue
        text = CONFIG.format(label=label, ignore=ignore, model=model, metrics=metrics, **rest)
        (place / f"{name}.yaml").write_text(text)
        assert (
            command("train", str(place / f"{name}.yaml"), "--out", str(place / name), "--quiet")
            == 0
        )
    return place


@pytest.mark.parametrize("name", CASES)
def test_predict_and_evaluate_commands(name: str, folder: Path, tmp_path, capsys) -> None:
    if name == "split":
        pytest.importorskip("torch")
    out = tmp_path / "predictions.csv"
    assert command("predict", str(folder / name), str(folder / "bare.csv"), "--out", str(out)) == 0
    assert "60 predictions are in" in capsys.readouterr().out
    run, found = mtcd.load_run(folder / name), pl.read_csv(out)
    assert found["id"].to_list() == NEW["pid"].to_list()
    np.testing.assert_array_equal(found["prediction"].to_numpy(), run.predict(X_NEW))
    wanted = {
        "logistic": ["p_0", "p_1"],
        "hinge": ["score"],
        "ridge": [],
        "split": ["p_high", "p_low", "p_mid"],
    }[name]
    assert found.columns == ["id", "prediction", *wanted]
    if name in ("logistic", "split"):
        np.testing.assert_allclose(found.select(wanted).to_numpy(), run.predict_proba(X_NEW))
    pictures = str(tmp_path / "pics")
    assert (
        command(
            "evaluate", str(folder / name), str(folder / "new.csv"), "--json", "--plot", pictures
        )
        == 0
    )
    said = outcome(capsys)
    assert said["metrics"] == pytest.approx(run.evaluate(X_NEW, NEW[CASES[name][0]]))
    assert all(Path(path).read_bytes()[:4] == b"\x89PNG" for path in said["plots"])
    assert len(said["plots"]) == {"logistic": 4, "hinge": 3, "ridge": 1, "split": 4}[name]
    history = (folder / name / "history.csv").read_text().splitlines()[0]
    assert f"test_{CASES[name][3].split(',')[0]}" in history


BAD = {
    "no label": (["--label", "yy"], "no label column 'yy': did you mean 'y'"),
    "a missing column": ([], "no column 'f2'"),
    "an unseen class": ([], "label 7 is of a class that no training sample has"),
}


@pytest.mark.parametrize("bad", BAD)
def test_bad_tables_are_refused(bad: str, folder: Path, tmp_path, capsys) -> None:
    changed = {
        "a missing column": NEW.drop("f2"),
        "an unseen class": NEW.with_columns(y=pl.lit(7)),
    }.get(bad, NEW)
    changed.write_csv(tmp_path / "bad.csv")
    extra, text = BAD[bad]
    assert command("evaluate", str(folder / "logistic"), str(tmp_path / "bad.csv"), *extra) == 2
    assert text in " ".join(capsys.readouterr().err.split())


def test_a_folder_that_is_no_run_and_a_run_without_a_table(folder: Path, tmp_path, capsys) -> None:
    assert command("evaluate", str(tmp_path), str(folder / "new.csv")) == 2
    assert "not a run folder" in capsys.readouterr().err
    assert command("predict", str(folder / "logistic")) == 2
    assert "Which new samples?" in capsys.readouterr().err
    for nothing in (tmp_path, tmp_path / "none"):
        assert command("predict", str(nothing), str(folder / "new.csv")) == 2
        assert "neither a run folder, with run.json, nor a bundle, with party.yaml" in " ".join(
            capsys.readouterr().err.split()
        )


def test_tables_of_one_row_and_of_none(folder: Path, tmp_path, capsys) -> None:
    for rows in (1, 0):
        NEW.head(rows).write_csv(tmp_path / f"{rows}.csv")
    out = str(tmp_path / "p.csv")
    assert command("predict", str(folder / "logistic"), str(tmp_path / "1.csv"), "--out", out) == 0
    assert "1 prediction is in" in capsys.readouterr().out
    assert command("predict", str(folder / "logistic"), str(tmp_path / "0.csv"), "--out", out) == 2
    assert "0.csv is empty: it needs a header and rows below it." in " ".join(
        capsys.readouterr().err.split()
    )


def test_the_help_names_the_extra_of_onnx(capsys) -> None:
    assert command("export", "--help") == 0
    assert "'.[onnx]'" in capsys.readouterr().out


def test_metrics_are_in_the_table_of_mtcd_train(folder: Path, tmp_path, capsys) -> None:
    assert command("train", str(folder / "logistic.yaml"), "--out", str(tmp_path / "run")) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    final = mtcd.load_run(tmp_path / "run").final.metrics
    assert ["metric", "train", "test"] in lines
    assert ["auc", f"{final['train_auc']:.4g}", f"{final['test_auc']:.4g}"] in lines


CHANGES = {
    "data.test_samples=10": "data.holdout and data.test_samples both",
    "data.holdout=1.5": "data.holdout",
    "metrics=acu": "no metric is called 'acu'; did you mean 'auc'",
    "metrics=[rmse]": "rmse is for models that predict values",
}


@pytest.mark.parametrize("change", CHANGES)
def test_bad_settings_are_refused(change: str, folder: Path, tmp_path, capsys) -> None:
    config = str(folder / "logistic.yaml")
    assert command("train", config, "--out", str(tmp_path / "run"), "--quiet", "--set", change) == 2
    assert CHANGES[change] in " ".join(capsys.readouterr().err.split())


def test_test_samples_hold_out_for_a_linear_model(folder: Path, tmp_path, capsys) -> None:
    changes = ("--set", "data.test_samples=30", "--set", "data.holdout=null", "--json", "--quiet")
    assert (
        command("train", str(folder / "logistic.yaml"), "--out", str(tmp_path / "run"), *changes)
        == 0
    )
    by_count = outcome(capsys)["metrics"]
    assert (
        command(
            "train",
            str(folder / "logistic.yaml"),
            "--out",
            str(tmp_path / "two"),
            "--json",
            "--quiet",
        )
        == 0
    )
    assert by_count == outcome(capsys)["metrics"]  # 30 is a quarter of 120: the same rows


def test_the_picture_of_a_run_has_a_panel_of_its_metrics(tmp_path) -> None:
    run = fitted("logistic", "y")
    axes = Figure().subplots()
    plot_metrics(axes, run.history, "iteration")
    lines = {line.get_label(): line for line in axes.get_lines()}
    assert sorted(lines) == ["train accuracy", "train auc"]
    assert lines["train auc"].get_ydata()[-1] == run.final.metrics["train_auc"]
    plot_runs({"one": run}, tmp_path / "wide.png")
    plot_runs({"one": run, "two": run}, tmp_path / "two.png")
    wide, two = (image.imread(tmp_path / name).shape[1] for name in ("wide.png", "two.png"))
    assert wide > two


@pytest.mark.parametrize("width", [3.5, 7.0, 7.16])
@pytest.mark.parametrize("metrics", [("auc", "accuracy"), ("auc", "log_loss")])
def test_nothing_overlaps_in_the_picture_for_a_paper(
    width: float, metrics: tuple[str, ...]
) -> None:
    data = mtcd.split(X_NEW, NEW["y"].to_numpy(), 2).holdout(0.3)
    run = mtcd.train(data, mtcd.Glm("logistic", l2=1.0), "path", METHOD, STOP, metrics=metrics)
    paper = Paper(width, 9.0)
    with paper.fonts():
        figure = draw_runs({"one": run}, "", paper)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        texts = [axes.xaxis.label for axes in figure.axes] + [
            axes.yaxis.label for axes in figure.axes
        ]
        boxes = [
            text.get_window_extent() for text in texts if text.get_text() and text.get_visible()
        ]
        boxes += [
            legend.get_window_extent() for axes in figure.axes if (legend := axes.get_legend())
        ]
        panels = [axes.get_window_extent() for axes in figure.axes]
    assert not [
        (one, other) for one, other in itertools.combinations(boxes, 2) if one.overlaps(other)
    ]
    assert all(figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1 for box in boxes)
    assert min(panel.width for panel in panels) > figure.bbox.width * (0.6 if width < 4 else 0.2)


def test_errors_are_on_an_axis_of_their_own() -> None:
    axes = Figure().subplots()
    plot_metrics(axes, fitted("ridge", "value").history, "iteration")
    other = axes.figure.axes[1]
    assert [line.get_label() for line in axes.get_lines()] == ["train r2"]
    assert [line.get_label() for line in other.get_lines()] == ["train rmse"]
    assert other.get_ylabel() == "errors (rmse)"


def test_a_metric_of_ones_own_in_a_config(folder: Path, tmp_path, capsys) -> None:
    (folder / "mymetric.py").write_text(
        "from mtcd.models.metrics import Metric\n\n\n"
        "class Misses(Metric):\n"
        "    higher_is_better = False\n\n"
        "    def value(self, outputs):\n"
        "        return float((outputs.labels != outputs.predicted).sum())\n"
    )
    change = ("--set", "metrics=[accuracy, mymetric:Misses]", "--json", "--quiet")
    assert (
        command("train", str(folder / "logistic.yaml"), "--out", str(tmp_path / "run"), *change)
        == 0
    )
    found = outcome(capsys)["metrics"]
    assert found["test_mymetric:Misses"] == round(30 * (1 - found["test_accuracy"]))
