"""Regularisation paths and cross-validation, against scikit-learn."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import Ridge, lasso_path
from sklearn.model_selection import PredefinedSplit, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mtcd
from commands import outcome, run
from mtcd.config.read import read_config
from mtcd.core.errors import ConfigError, DataError, DivergedError
from mtcd.studies.cross_validation import fold_numbers

RNG = np.random.default_rng(0)
X = RNG.standard_normal((90, 9)) * 3 + 1
Y = X @ RNG.standard_normal(9) + 4 * RNG.standard_normal(90)
DATA = mtcd.split(X, Y, 3)
EXACT = mtcd.Stop(gap=1e-11, iterations=50_000)


@given(
    st.lists(st.sampled_from("abc"), min_size=24, max_size=60),
    st.integers(2, 5),
    st.integers(0, 50),
)
def test_folds_share_samples_and_classes_evenly(labels: list[str], folds: int, seed: int) -> None:
    drawn = np.array([*labels, *"abc" * folds])
    numbers = fold_numbers(folds, drawn, True, seed)
    assert np.array_equal(numbers, fold_numbers(folds, drawn, True, seed))
    for held in (numbers, *(numbers[drawn == one] for one in "abc")):
        sizes = np.bincount(held, minlength=folds)
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("of_classes", [True, False])
def test_folds_are_drawn_by_the_seed(of_classes: bool) -> None:
    """Not by the order of the samples, which may be that of their collection; within a class
    neither."""
    labels = np.repeat([0.0, 1.0], 30)
    found = [fold_numbers(3, labels, of_classes, seed) for seed in range(20)]
    assert len({tuple(numbers.tolist()) for numbers in found}) == 20
    together = np.mean([numbers[:29] == numbers[1:30] for numbers in found])
    assert 0.2 < together < 0.45, "neighbours are in one fold by chance alone"


def test_folds_that_are_refused() -> None:
    with pytest.raises(DataError, match="Class 'b' has 2 sample"):
        fold_numbers(3, np.array(["a"] * 9 + ["b"] * 2), True, 0)
    with pytest.raises(DataError, match="too few for 5 folds"):
        fold_numbers(5, np.arange(4.0), False, 0)
    for wrong in ([0, 1], [0, 0, 0], [None, 1, 2], [[1], [1, 2], [3]]):
        with pytest.raises(ConfigError, match="folds"):
            fold_numbers(wrong, np.arange(3.0), False, 0)


def test_what_cannot_be_cross_validated_is_refused() -> None:
    with pytest.raises(ConfigError, match="VerticalDataset, but got ndarray"):
        mtcd.cross_validate(X, mtcd.Glm("ridge"), method=mtcd.TreeCG())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="a Glm, Trees, Mixed or a SplitModel.*'ridge'"):
        mtcd.cross_validate(DATA, "ridge", method=mtcd.TreeCG())  # type: ignore[arg-type]


@pytest.mark.parametrize("standardise", [False, True])
def test_cross_validation_is_that_of_scikit_learn(standardise: bool) -> None:
    fold = RNG.integers(0, 4, 90)
    model = mtcd.Glm("ridge", alpha=20.0, intercept=True)
    found = mtcd.cross_validate(
        DATA,
        model,
        "path",
        mtcd.TreeCG(),
        fold,
        EXACT,
        standardise=standardise,
        metrics=["r2", "rmse"],
    )
    theirs = make_pipeline(StandardScaler(), Ridge(20.0)) if standardise else Ridge(20.0)
    for name, scoring, sign in (("r2", "r2", 1), ("rmse", "neg_root_mean_squared_error", -1)):
        scores = sign * cross_val_score(theirs, X, Y, cv=PredefinedSplit(fold), scoring=scoring)
        np.testing.assert_allclose(
            [one[f"test_{name}"] for one in found.metrics], scores, rtol=1e-4
        )
        assert found.mean[f"test_{name}"] == pytest.approx(scores.mean(), rel=1e-4)
        assert found.sd[f"test_{name}"] == pytest.approx(scores.std(ddof=1), rel=1e-3)
    assert [row["test_samples"] for row in found.rows()] == np.bincount(fold).tolist()
    assert found.to_polars().equals(
        mtcd.cross_validate(
            DATA,
            model,
            "path",
            mtcd.TreeCG(),
            fold,
            EXACT,
            standardise=standardise,
            metrics=["r2", "rmse"],
        ).to_polars()
    )
    assert list(found.to_pandas().columns) == found.to_polars().columns


def test_columns_are_prepared_on_the_training_rows_of_each_fold() -> None:
    age = np.where(RNG.random(90) < 0.2, np.nan, X[:, 0])
    frame = {"age": age, "town": np.where(X[:, 1] > 1, "north", "south"), "dose": X[:, 2]}
    data = mtcd.split(frame, Y, {"a": ["age", "town"], "b": ["dose"]}, prepare="auto")
    found = mtcd.cross_validate(
        data, mtcd.Glm("ridge"), "path", mtcd.TreeCG(), 3, mtcd.Stop(gap=1e-6)
    )
    for number, one in enumerate(found.runs):
        alone = data.take(np.flatnonzero(found.fold != number))
        assert one.trained().preparations.to_json() == alone.preparations.to_json()
    assert len({json.dumps(one.trained().preparations.to_json()) for one in found.runs}) == 3


def test_split_networks_are_cross_validated_too() -> None:
    nn = pytest.importorskip("torch").nn
    data = mtcd.VerticalDataset.from_table(
        mtcd.synthetic("multinomial", samples=60, features=6, clients=2)
    )
    model = mtcd.SplitModel(
        {client: nn.Linear(3, 4) for client in data.clients}, fusion=nn.Linear(8, 3)
    )
    method = mtcd.MTCD(clusters=[[0], [1]], hops=2, batch=10, stepsize=0.2)
    found = mtcd.cross_validate(data, model, "path", method, 3, mtcd.Stop(epochs=5))
    assert [one.status for one in found.runs] == ["epochs"] * 3
    assert found.mean["test_accuracy"] > 0.4
    for number, one in enumerate(found.runs):
        held = {client: values[found.fold == number] for client, values in data.features.items()}
        right = one.predict(held) == data.labels[found.fold == number]
        assert right.mean() == pytest.approx(found.metrics[number]["test_accuracy"])


def test_a_lasso_path_is_that_of_scikit_learn() -> None:
    found = mtcd.path(
        DATA, mtcd.Glm("linear"), "path", mtcd.STCD(local_updates=20), l1=6, stop=EXACT
    )
    alphas, theirs, _ = lasso_path(X, Y, alphas=found.values / 90, tol=1e-12)
    np.testing.assert_allclose(alphas * 90, found.values)
    np.testing.assert_allclose(found.coefficients, theirs.T, atol=2e-4)
    np.testing.assert_allclose(found.coefficients[0], 0.0, atol=1e-6)
    assert found.values[-1] == pytest.approx(found.values[0] / 1000)
    with pytest.raises(ConfigError, match="holdout"):
        _ = found.best


def test_each_run_starts_where_the_one_before_ended() -> None:
    method, stop = mtcd.STCD(local_updates=5), mtcd.Stop(gap=1e-6, iterations=20_000)
    found = mtcd.path(DATA, mtcd.Glm("ridge"), "path", method, l2=[1.0, 100.0, 10.0], stop=stop)
    assert found.values.tolist() == [100.0, 10.0, 1.0]
    for value, one in zip(found.values[1:], found.runs[1:], strict=True):
        cold = mtcd.train(DATA, mtcd.Glm("ridge", alpha=value), "path", method, stop)
        assert one.final.iteration < cold.final.iteration
        assert one.objective == pytest.approx(cold.objective, rel=1e-5)
    cold = mtcd.path(DATA, mtcd.Glm("ridge"), "path", mtcd.TreeCG(), l2=3, stop=stop)
    assert cold.values[0] == pytest.approx(np.linalg.norm(X, 2) ** 2)


def test_the_first_point_of_an_l1_path_with_intercept_has_no_coefficients() -> None:
    data = mtcd.split(X, (np.quantile(Y, 0.8) < Y).astype(int), 3)
    found = mtcd.path(
        data, mtcd.Glm("logistic", intercept=True), "path", mtcd.STCD(20), l1=3, stop=EXACT
    )
    assert np.abs(found.coefficients[0]).max() < 1e-6
    assert np.abs(found.coefficients[1]).max() > 1e-3


def test_the_best_run_is_that_with_the_best_metric(tmp_path: Path) -> None:
    found = mtcd.path(
        DATA.holdout(0.3),
        mtcd.Glm("ridge"),
        "path",
        mtcd.TreeCG(),
        l2=8,
        stop=EXACT,
        metrics=["r2", "rmse"],
    )
    r2 = [one.score(DATA.holdout(0.3).test) for one in found.runs]
    assert found.metric == "test_r2"
    assert found.best is found.runs[int(np.argmax(r2))]
    assert found.best_value == found.values[int(np.argmax(r2))]
    assert "best test_r2" in repr(found)
    found.plot(tmp_path / "path.png")
    # in no font of Matplotlib's: no warning
    named = mtcd.split(X, Y, 3, columns=[f"東京 {j}" for j in range(9)])
    mtcd.path(
        named, mtcd.Glm("linear"), method=mtcd.STCD(2), l1=[1.0], stop=mtcd.Stop(iterations=3)
    ).plot(tmp_path / "names.png")
    assert (tmp_path / "path.png").stat().st_size > 10_000
    found.write(tmp_path / "path.csv")
    assert len((tmp_path / "path.csv").read_text().splitlines()) == 9


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "along l1 or l2"),
        ({"l1": 3, "l2": 3}, "along l1 or l2"),
        ({"l1": 1}, "number of points"),
        ({"l1": [-1.0]}, "0 or more"),
        ({"l2": []}, "list of numbers"),
        ({"l2": ["strong"]}, "list of numbers"),
        ({"l2": [1.0], "metric": "auc"}, "no test set"),
    ],
)
def test_paths_that_are_refused(options, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mtcd.path(
            DATA, mtcd.Glm("ridge"), method=mtcd.SVFL(), stop=mtcd.Stop(iterations=2), **options
        )


def test_a_metric_that_the_test_set_does_not_define_decides_nothing() -> None:
    labels = (np.quantile(Y, 0.5) < Y).astype(int)
    rows = np.flatnonzero(labels == 1)[:8]
    data = mtcd.split(X, labels, 3).parted(np.setdiff1d(np.arange(90), rows), rows, "one class")
    how = {
        "method": mtcd.SVFL(),
        "stop": mtcd.Stop(iterations=2),
        "l2": [1.0, 2.0],
        "metrics": ["auc", "accuracy"],
    }
    found = mtcd.path(data, mtcd.Glm("logistic"), **how)
    assert found.metric == "test_accuracy"
    assert np.isnan([one["test_auc"] for one in found.metrics]).all()
    with pytest.raises(ConfigError, match="'auc' is not defined on this test set"):
        mtcd.path(data, mtcd.Glm("logistic"), metric="auc", **how)


def test_a_point_that_diverges_is_named() -> None:
    with pytest.raises(DivergedError, match="l2 = 5: Diverged"):
        mtcd.path(
            DATA,
            mtcd.Glm("ridge"),
            method=mtcd.SVFL(stepsize=10.0),
            l2=[5.0],
            stop=mtcd.Stop(iterations=500),
        )


CONFIG = """
data: {synthetic: logistic, samples: 120, features: 8, clients: 4, noise: 2.0, holdout: 0.25, standardise: true}
model: {kind: logistic, l2: 1}
method: {kind: stcd, local_updates: 5}
stop: {gap: 1e-4}
"""


def test_the_commands(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    Path("c.yaml").write_text(CONFIG)
    assert run("cv", "c.yaml", "--folds", "3", "--json") == 0
    told = outcome(capsys)
    assert len(told["rows"]) == 3
    assert told["mean"].keys() == told["sd"].keys() >= {"test_auc", "train_auc"}
    assert len(Path("runs/c-cv.csv").read_text().splitlines()) == 4
    sizes = (
        "--folds",
        "8",
        "--set",
        "data={synthetic: ridge, samples: 8, features: 4, clients: 2}",
    )
    assert (
        run("cv", "c.yaml", *sizes, "--set", "model={kind: ridge}", "--out", "one.csv", "--json")
        == 0
    )
    text = capsys.readouterr().out
    assert "NaN" not in text, "JSON has no such word"
    assert json.loads(text.splitlines()[-1])["mean"]["test_r2"] is None, (
        "of one sample there is no R2"
    )
    assert (
        run("path", "c.yaml", "--over", "model.l1=0.1,1,10", "--out", "p", "--metric", "accuracy")
        == 0
    )
    printed = capsys.readouterr().out
    assert "Best test_accuracy" in printed
    assert max(map(len, printed.splitlines())) <= 80
    assert {file.name for file in Path("p").iterdir()} == {
        "best",
        "coefficients.csv",
        "config.yaml",
        "path.csv",
        "path.png",
    }
    assert mtcd.load_run("p/best").status == "converged"
    best = float(printed.split("l1 = ")[1].split(". ")[0])
    assert read_config(Path("p/best/config.yaml")).model.l1 == best
    # from 0, to the same optimum
    assert run("train", "p/best/config.yaml", "--out", "again", "--quiet") == 0
    np.testing.assert_allclose(
        mtcd.load_run("again").objective, mtcd.load_run("p/best").objective, rtol=2e-4
    )
    Path("p/other").touch()
    assert run("path", "c.yaml", "--over", "model.l1=1", "--out", "p") == 2
    for over in ("model.l3=1", "model.l1=a", "model.l1="):
        assert run("path", "c.yaml", "--over", over) == 2


def test_results_of_another_config_are_replaced_only_by_force(
    tmp_path: Path, monkeypatch, capsys
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(CONFIG)
    along = ("path", "c.yaml", "--over", "model.l1=1,10", "--quiet")
    for _ in range(2):
        assert run(*along) == 0
    before = Path("runs/c-path/path.csv").read_bytes()
    assert run(*along, "--seed", "5") == 2
    assert "a path of another config (it differs in seed)" in " ".join(
        capsys.readouterr().err.split()
    )
    assert Path("runs/c-path/path.csv").read_bytes() == before
    assert run(*along, "--seed", "5", "--force") == 0
    assert Path("runs/c-path/path.csv").read_bytes() != before

    Path("patients.csv").write_text("folded,y\n1,2\n")
    folds = ("cv", "c.yaml", "--folds", "2", "--quiet", "--out")
    assert run(*folds, "patients.csv") == 2
    assert "not the table of a cross-validation" in " ".join(capsys.readouterr().err.split())
    assert Path("patients.csv").read_text() == "folded,y\n1,2\n"
    assert run(*folds, "patients.csv", "--force") == 0
    assert run(*folds, "patients.csv") == 0, "it is the table of a cross-validation now"
