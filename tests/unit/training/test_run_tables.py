"""What comes out of a run as tables, HTML and pictures."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import mtcd
from mtcd.models.glm.model import Glm
from patients import CLIENTS, patients

RNG = np.random.default_rng(5)
X = RNG.standard_normal((80, 4)) * [1, 30, 0.1, 5] + [0, 100, 2, -3]
FRAME = pl.DataFrame(X, schema=["age", "pressure", "marker", "score"], orient="row")
PARTS = {"lab": ["marker", "age"], "clinic": ["score", "pressure"]}
Y = np.array(["ill", "well"])[(X[:, 0] + 0.05 * X[:, 1] + RNG.standard_normal(80) > 5).astype(int)]


@cache
def trained(kind: str = "logistic", y: tuple[str, ...] = tuple(Y)) -> mtcd.Run:
    data = mtcd.split(FRAME, y, clients=PARTS)
    stop = mtcd.Stop(gap=1e-12, iterations=20_000)
    model = Glm(kind, l2=1.0, intercept=True)
    return mtcd.train(data, model, "path", mtcd.STCD(local_updates=10), stop, standardise=True)


# --- coefficients --------------------------------------------------------------------------------


def test_coefficients_by_name_on_both_scales_are_those_of_scikit_learn() -> None:
    table = trained().coefficients_table()
    scaler = StandardScaler().fit(X)
    other = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit(scaler.transform(X), Y)
    rows = {row["column"]: row for row in table}
    assert list(rows) == [*FRAME.columns, "(intercept)"], "in the order of the columns as given"
    assert [row["client"] for row in table] == ["lab", "clinic", "lab", "clinic", None]
    for j, name in enumerate(FRAME.columns):
        assert rows[name]["scaled_coefficient"] == pytest.approx(other.coef_[0, j], abs=1e-4)
        assert rows[name]["coefficient"] == pytest.approx(
            other.coef_[0, j] / scaler.scale_[j], rel=1e-3, abs=1e-4
        )
    assert rows["(intercept)"]["scaled_coefficient"] == pytest.approx(other.intercept_[0], abs=1e-4)
    frame = table.to_polars()
    scores = X @ frame["coefficient"].to_numpy()[:-1] + frame["coefficient"][-1]
    assert_allclose(scores, other.decision_function(scaler.transform(X)), atol=1e-3)


def test_of_several_classes_a_column_each() -> None:
    grades = np.array(["low", "middle", "high"])[np.digitize(X[:, 1], [90, 110])]
    run = trained("multinomial", tuple(grades))
    frame = run.coefficients_table().to_pandas()
    named = [f"coefficient_{one}" for one in run.classes]
    assert list(frame.columns) == [
        "client",
        "column",
        *named,
        *(f"scaled_{name}" for name in named),
    ]
    assert_allclose(frame[named].to_numpy(), np.vstack([run.coefficients, run.intercept]))
    assert_allclose(
        X @ frame[named].to_numpy()[:-1] + frame[named].to_numpy()[-1], run.decision(X), rtol=1e-9
    )


def test_a_run_folder_has_them_as_csv(tmp_path: Path) -> None:
    run = trained()
    run.save(tmp_path / "run")
    with (tmp_path / "run" / "coefficients.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["coefficient"]) for row in rows] == [*run.coefficients, run.intercept]
    assert [
        float(row["scaled_coefficient"]) for row in rows[:-1]
    ] == run.scaled_coefficients.tolist()
    run.save(tmp_path / "run")
    replace(run, model=None).save(tmp_path / "run")
    assert not (tmp_path / "run" / "coefficients.csv").exists(), "a run without a model has none"


def test_of_a_split_network_they_are_refused() -> None:
    nn = pytest.importorskip("torch").nn
    data = mtcd.VerticalDataset({"a": X[:, :2] / 100, "b": X[:, 2:]}, Y)
    model = mtcd.SplitModel({"a": nn.Linear(2, 3), "b": nn.Linear(2, 3)}, nn.Linear(6, 2))
    run = mtcd.train(
        data, model, method=mtcd.SVFL(2, stepsize=0.1, batch=20), stop=mtcd.Stop(epochs=1)
    )
    with pytest.raises(mtcd.MtcdError, match="split network"):
        run.coefficients_table()
    check_html(run)
    assert len(run.plot().axes) >= 3, "with a panel of metrics"


# --- folders -------------------------------------------------------------------------------------


def test_a_prepared_and_weighted_run_reads_back(tmp_path: Path) -> None:
    table = patients(90)
    weights = np.random.default_rng(1).uniform(0.5, 2, 90)
    with pytest.warns(mtcd.DataWarning, match="hashed into 32 columns.*city"):
        data = mtcd.split(
            table, table["outcome"], clients=CLIENTS, prepare="auto", weights=weights
        ).holdout(0.2)
    model = Glm("logistic", l2=1.0, intercept=True, class_weight="balanced")
    metrics = ("auc", "log_loss", "ks")
    run = mtcd.train(data, model, "path", mtcd.STCD(), mtcd.Stop(iterations=60), metrics=metrics)
    run.save(tmp_path / "run")
    back = mtcd.load_run(tmp_path / "run")
    assert back.summary() == run.summary()
    assert list(back.history) == list(run.history)
    assert {"train_ks", "test_auc"} <= set(back.final.metrics)
    assert back.classes == run.classes
    assert back.coefficients_table() == run.coefficients_table()
    # cities of the test set
    with pytest.warns(mtcd.DataWarning, match="no category in the training rows"):
        shares, first_shares = back.predict_proba(table), run.predict_proba(table)
    np.testing.assert_array_equal(shares, first_shares)
    assert back.history.to_polars().equals(run.history.to_polars())


# --- history -------------------------------------------------------------------------------------


def test_the_history_as_frames() -> None:
    run = trained()
    polars, pandas = run.history.to_polars(), run.history.to_pandas()
    assert polars.height == len(pandas) == len(run.history)
    assert list(pandas.columns) == polars.columns
    for name in polars.columns:
        np.testing.assert_array_equal(pandas[name].to_numpy(dtype=float), run.history[name])
    assert polars["iteration"].dtype == pl.Int64
    assert polars["epoch"].dtype == pl.Float64
    assert polars["epoch"].null_count() == len(run.history)


def test_without_pandas_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(mtcd.MtcdError, match=r"pip install '\.\[pandas\]'"):
        trained().history.to_pandas()


# --- texts and pictures --------------------------------------------------------------------------


def check_html(run: mtcd.Run) -> ElementTree.Element:
    """It is well formed, so that nothing in it was left unescaped, and brings nothing from
    outside."""
    shown = run._repr_html_()
    assert "<script" not in shown
    assert "href" not in shown
    return ElementTree.fromstring(shown)


def test_a_run_in_four_lines_and_as_html() -> None:
    run = trained()
    assert len(repr(run).splitlines()) == 4
    assert "train_auc=" in repr(run)
    tree = check_html(run)
    cells = {row[0].text: row[1].text for row in tree.iter("tr")}
    assert cells["objective"] == f"{run.objective:.6g}"
    assert cells["gap"] == f"{run.gap:.3g}"
    assert cells["metrics"].startswith("train accuracy ")
    assert cells["messages"].endswith("0 uplink, 0 downlink")
    line = next(tree.iter("{http://www.w3.org/2000/svg}polyline")).attrib["points"].split()
    heights = [float(point.split(",")[1]) for point in line]
    assert len(line) == np.sum(run.history["gap"] > 0)
    assert heights == sorted(heights), "the gap of this run falls, and y grows downwards"


def test_texts_in_html_are_escaped() -> None:
    run = replace(trained(), method="<b>&", message='"</td><script>', notes=("<i>",))
    cells = {row[0].text: row[1].text for row in check_html(run).iter("tr")}
    assert cells["method"] == "<b>&"
    assert cells["status"].endswith('"</td><script>')
    assert cells["notes"] == "<i>"


def test_a_run_with_one_measurement_has_no_curve() -> None:
    run = trained()
    one = replace(run, history=mtcd.History([replace(run.final, gap=None)]))
    assert not list(check_html(one).iter("{http://www.w3.org/2000/svg}polyline"))


def test_the_picture_of_a_run(tmp_path: Path) -> None:
    run = trained()
    figure = run.plot(tmp_path / "run.svg")
    assert (tmp_path / "run.svg").read_text().lstrip().startswith("<?xml")
    drawn = figure.axes[0].lines[0].get_ydata()
    np.testing.assert_array_equal(
        drawn, np.where(run.history["gap"] > 0, run.history["gap"], np.nan)
    )
    for bad in (tmp_path / "run.xyz", tmp_path / "nowhere" / "run.png"):
        with pytest.raises(mtcd.MtcdError, match="picture cannot be written"):
            run.plot(bad)
