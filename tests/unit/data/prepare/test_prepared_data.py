"""Preparation from tables to predictions: fitted on training rows only, kept with the run, applied
to new tables."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import commands
import mtcd
from mtcd.cli.run_folder import OnTable, predict_table
from mtcd.core.errors import ConfigError, DataError, MtcdError, NotInstalledError
from patients import CLIENTS, patients

# the city of a patient is hashed, and new samples have new ones; tests/test_data_warnings.py has
# the warnings
pytestmark = pytest.mark.filterwarnings("ignore::mtcd.core.errors.DataWarning")

TABLE = patients()
COLUMNS = [name for name in TABLE.columns if name not in ("patient", "outcome")]
# by index, since `select` and `drop` would start threads before the forks of `make mutants`
X, Y = TABLE[COLUMNS], TABLE["outcome"].to_numpy()
NEW = patients(80, seed=1)[COLUMNS]
SETTINGS: dict[str, Any] = {
    "network": "path",
    "method": mtcd.STCD(local_updates=20),
    "stop": mtcd.Stop(gap=1e-8, iterations=100_000),
}
MODEL = mtcd.Glm("logistic", l2=1.0, intercept=True)


def trained(data: mtcd.VerticalData, model: mtcd.Glm = MODEL) -> mtcd.Run:
    return mtcd.train(data, model, **SETTINGS)


@pytest.fixture(scope="module")
def run() -> mtcd.Run:
    return trained(mtcd.split(X, Y, CLIENTS, prepare="auto"))


def by_scikit_learn(frame: pd.DataFrame) -> ColumnTransformer:
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    texts = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    return ColumnTransformer(
        [("numbers", numbers, ["age", "marker"]), ("texts", texts, ["sex", "plan"])]
    ).fit(frame)


def test_coefficients_and_predictions_are_those_of_scikit_learn() -> None:
    columns = ["age", "marker", "sex", "plan"]
    ours = trained(mtcd.split(X.select(columns), Y, 2, prepare="auto"))
    frame, new = (pd.DataFrame(table.select(columns).to_dict()) for table in (X, NEW))
    frame = frame.astype({"sex": object, "plan": object})
    new = new.astype({"sex": object, "plan": object})
    for one in (frame, new):
        one[:] = one.where(one.notna(), np.nan)
    prepared = by_scikit_learn(frame)
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(prepared.transform(frame), Y)
    names = [
        n.split("__")[1]
        .replace("_nan", " (missing)")
        .replace("sex_", "sex=")
        .replace("plan_", "plan=")
        for n in prepared.get_feature_names_out()
    ]
    found = dict(zip(ours.column_names, ours.coefficients, strict=True))
    expected = dict(zip(names, theirs.coef_[0], strict=True))
    assert found == pytest.approx(expected | {"sex=other": 0, "plan=other": 0}, abs=1e-3)
    assert (ours.predict(NEW.select(columns)) == theirs.predict(prepared.transform(new))).all()


def test_derived_columns_have_names_in_the_order_of_the_table(run: mtcd.Run) -> None:
    names = run.column_names
    assert names[:5] == ("age", "sex=female", "sex=male", "sex (missing)", "sex=other")
    assert "admitted.month" in names
    assert (
        names.index("admitted.days")
        < names.index("marker")
        < names.index("smoker")
        < names.index("city#0")
    )
    assert names[-4:] == ("plan=basic", "plan=gold", "plan=rare", "plan=other")
    assert run.model.classes == ("healthy", "ill")
    assert len(names) == len(run.coefficients)


@pytest.mark.parametrize("form", ["polars", "pandas", "dict", "other order"])
def test_new_tables_of_any_kind_give_the_same_predictions(run: mtcd.Run, form: str) -> None:
    table: Any = {
        "polars": NEW,
        "pandas": pd.DataFrame(NEW.to_dict()),
        "dict": NEW.to_dict(as_series=False),
        "other order": NEW.select(NEW.columns[::-1]).with_columns(more=pl.lit("x")),
    }[form]
    np.testing.assert_allclose(run.model.decision(table), run.model.decision(NEW), atol=1e-12)
    assert set(run.predict(table)) == {"healthy", "ill"}


@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_dates_of_pandas_are_dates_in_any_resolution(unit: str) -> None:
    days = pd.Series(pd.to_datetime(["2024-01-31", "2024-03-01", None])).astype(
        f"datetime64[{unit}]"
    )
    zoned = days.dt.tz_localize("Europe/Berlin")
    frame = pd.DataFrame({"day": days, "zoned": zoned, "wait": days - days[0]})
    recipe = {
        "day": [{"dates": {"parts": ["month", "days"]}}, "impute"],
        "zoned": [{"dates": {"parts": ["day"]}}, "impute"],
    }
    data = mtcd.split(frame, [0, 1, 0], 1, prepare={"columns": recipe, "default": "impute"})
    assert data.columns == (("day.month", "day.days", "zoned.day", "wait"),)
    expected = [[1, 0, 31, 0], [3, 30, 1, 30 * 86_400], [2, 15, 16, 15 * 86_400]]
    assert data.blocks[0].tolist() == expected


def test_new_values_never_stop_a_prediction(run: mtcd.Run) -> None:
    strange = pl.DataFrame({name: ["?!", None, ""] for name in X.columns})
    assert np.isfinite(run.model.decision(strange)).all()
    one = NEW.head(1).with_columns(sex=pl.lit("unheard of"))
    assert len(run.predict(one)) == 1
    with pytest.raises(DataError, match="no column 'city'"):
        run.predict(NEW.drop("city"))


def test_numbers_that_are_none_are_told_when_a_table_is_predicted(
    run: mtcd.Run, tmp_path: Path, capsys
) -> None:
    run.save(tmp_path / "run")
    NEW.with_columns(marker=pl.Series(["high"] * len(NEW))).write_csv(tmp_path / "new.csv")
    predict_table(
        OnTable(tmp_path / "run", tmp_path / "new.csv"), tmp_path / "out.csv", quiet=False
    )
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("Note: ") == 1
    said = "lab: 80 value(s) of column 'marker' (all of them) that are no numbers, such as 'high', count as missing."
    assert said in told
    assert len(pl.read_csv(tmp_path / "out.csv")) == 80


def test_a_prediction_stops_if_asked_to() -> None:
    strict = trained(
        mtcd.split(X, Y, CLIENTS, prepare={"on_unseen": "error"}), mtcd.Glm("logistic", l2=10.0)
    )
    with pytest.raises(
        DataError, match="'sex' holds 'unheard of', as no training row does, in row 1"
    ):
        strict.predict(NEW.with_columns(sex=pl.lit("unheard of")))


def test_the_same_data_gives_the_same_predictions_as_vertical_data_or_table(run: mtcd.Run) -> None:
    # fitted on the new rows
    again = mtcd.split(NEW, np.resize(["healthy", "ill"], 80), CLIENTS, prepare="auto")
    np.testing.assert_allclose(run.model.decision(again), run.model.decision(NEW))
    with pytest.raises(DataError, match="split differently"):
        run.predict(mtcd.split(NEW.select("age", "marker"), again.labels, 2, prepare="auto"))


def test_preparation_is_fitted_on_the_training_rows_only() -> None:
    """Rows that are not trained on are spoilt: nothing of the training may change."""
    rows, others = np.arange(160), np.arange(160, 240)
    spoilt = pl.concat(
        [X[:160], X[160:].with_columns(age=pl.lit(1e6), sex=pl.lit("alien"), plan=pl.lit("gold"))]
    )
    clean, taken = (
        mtcd.split(table, Y, CLIENTS, prepare="auto").take(rows) for table in (X, spoilt)
    )
    assert (
        taken.columns
        == clean.columns
        == mtcd.split(X[:160], Y[:160], CLIENTS, prepare="auto").columns
    )
    for a, b in zip(clean.blocks, taken.blocks, strict=True):
        np.testing.assert_array_equal(a, b)
    assert "sex=alien" not in taken.columns[0]
    test = mtcd.split(spoilt, Y, CLIENTS, prepare="auto").take(others, like=taken)
    assert test.columns == taken.columns
    assert test.blocks[0][:, taken.columns[0].index("sex=other")].all()
    assert test.preparations is taken.preparations
    fitted_on_all = mtcd.split(spoilt, Y, CLIENTS, prepare="auto")
    assert "sex=alien" in fitted_on_all.columns[0]  # so that the test can fail


def test_a_run_folder_keeps_the_preparation(run: mtcd.Run, tmp_path: Path) -> None:
    run.save(tmp_path / "run")
    again = mtcd.load_run(tmp_path / "run")
    np.testing.assert_array_equal(again.model.decision(NEW), run.model.decision(NEW))
    assert again.column_names == run.column_names
    stored = json.loads((tmp_path / "run" / "preparation.json").read_text())
    assert stored["clients"][0]["columns"][0]["name"] == "age"
    trained(mtcd.split(X.select("age", "marker"), Y, 2, prepare="auto")).save(tmp_path / "other")
    (tmp_path / "other" / "preparation.json").replace(tmp_path / "run" / "preparation.json")
    with pytest.raises(MtcdError, match="not a complete run folder"):
        mtcd.load_run(tmp_path / "run")


def test_a_transformer_of_scikit_learn_per_client(tmp_path: Path) -> None:
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    clients = {"a": ["age", "marker"], "b": ["sex", "plan"]}
    prepare = {"a": numbers, "b": OneHotEncoder(handle_unknown="ignore")}
    run = trained(mtcd.split(X, Y, clients, prepare=prepare))
    built_in = trained(mtcd.split(X, Y, clients, prepare="auto"))
    names = [name for name in built_in.column_names if "other" not in name]
    assert run.column_names == (
        "age",
        "marker",
        "sex_female",
        "sex_male",
        "sex_nan",
        "plan_basic",
        "plan_gold",
        "plan_rare",
    )
    found = dict(zip(built_in.column_names, built_in.coefficients, strict=True))
    np.testing.assert_allclose(
        run.coefficients, [found[name] for name in sorted(names, key=_client_first)], atol=1e-3
    )
    assert not hasattr(numbers, "n_features_in_")  # the given one is not touched
    run.save(tmp_path)
    again = mtcd.load_run(tmp_path)
    np.testing.assert_array_equal(again.model.decision(NEW), run.model.decision(NEW))


def _client_first(name: str) -> int:
    return [name.startswith(column) for column in ("age", "marker", "sex", "plan")].index(True)


class Scaler:
    """A transformer that skops does not know."""

    def fit(self, X: Any, y: Any = None) -> "Scaler":
        self.seen_ = True
        return self

    def transform(self, X: Any) -> Any:
        return X[["age"]].fillna(50.0).to_numpy() / 50.0 - 1.0


def test_types_that_skops_does_not_know_are_refused_unless_trusted(tmp_path: Path) -> None:
    run = trained(mtcd.split(X.select("age"), Y, {"a": ["age"]}, prepare={"a": Scaler()}))
    run.save(tmp_path)
    with pytest.raises(MtcdError, match="test_prepared_data.Scaler.*trusted="):
        mtcd.load_run(tmp_path)
    again = mtcd.load_run(tmp_path, trusted=[f"{__name__}.Scaler"])
    np.testing.assert_array_equal(again.model.decision(NEW), run.model.decision(NEW))


def test_without_skops_a_run_trains_and_saving_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = trained(mtcd.split(X.select("age"), Y, {"a": ["age"]}, prepare={"a": Scaler()}))
    assert len(run.predict(NEW)) == 80
    monkeypatch.setitem(sys.modules, "skops", None)
    monkeypatch.delitem(sys.modules, "mtcd.data.prepare.skops_files", raising=False)
    with pytest.raises(NotInstalledError, match=r"skops.*pip install '\.\[prepare\]'"):
        run.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_skrub_prepares_a_client() -> None:
    skrub = pytest.importorskip("skrub")
    with pytest.raises(
        DataError,
        match=r"TableVectorizer of client 'clinic' leaves .* missing: age .*SimpleImputer",
    ):
        mtcd.split(X, Y, CLIENTS, prepare={"clinic": skrub.TableVectorizer()})
    prepare = {"clinic": make_pipeline(skrub.TableVectorizer(), SimpleImputer(), StandardScaler())}
    run = trained(mtcd.split(X, Y, CLIENTS, prepare=prepare), mtcd.Glm("logistic", l2=10.0))
    assert "age" in run.column_names
    assert np.isfinite(run.model.decision(NEW)).all()


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        ({"columns": {"agee": "impute"}}, "'agee', which no client holds; did you mean 'age'"),
        ({"clinc": "auto"}, "neither a client nor a key of prepare: did you mean 'clinic'"),
        ({"clinic": {"columns": {"city": "hash"}}}, "'city', which no client holds"),
    ],
)
def test_bad_preparations(prepare: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        mtcd.split(X, Y, CLIENTS, prepare=prepare)


def test_missing_values_without_preparation_are_told_once_with_columns_and_counts(
    tmp_path: Path,
) -> None:
    numbers = X.select("age", "marker")
    lost = numbers.null_count().row(0)
    words = (
        rf"{sum(lost)} values.* are missing, in 2 column\(s\) of 240 rows: "
        rf"age.* \({lost[0]}\), marker.* \({lost[1]}\)"
    )
    with pytest.raises(DataError, match=words + ".*prepare=.auto."):
        mtcd.split(numbers, Y, 2)
    TABLE.select("age", "marker", "outcome").write_csv(tmp_path / "t.csv")
    with pytest.raises(DataError, match=words + ".*prepare: auto.*ignore:"):
        mtcd.read_tables(tmp_path / "t.csv", "outcome", 2)
    TABLE.write_csv(tmp_path / "t.csv")
    with pytest.raises(
        DataError, match="6 columns of .* are not numeric: patient .row 1 holds 'p0'.*prepare: auto"
    ):
        mtcd.read_tables(tmp_path / "t.csv", "outcome", 2)


def test_columns_to_leave_out_are_listed_to_copy_if_they_are_not_too_many(tmp_path: Path) -> None:
    for count, words in ((12, r"ignore: \[t0, .*, t11\]"), (100, r"\(data.ignore\)")):
        pl.DataFrame({f"t{i}": ["a", "b"] for i in range(count)} | {"y": [0, 1]}).write_csv(
            tmp_path / "t.csv"
        )
        with pytest.raises(DataError, match=words):
            mtcd.read_tables(tmp_path / "t.csv", "y", 2)


def test_a_config_prepares_and_names_the_positive_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    TABLE.write_csv("t.csv")
    config = {
        "data": {
            "table": "t.csv",
            "label": "outcome",
            "id": "patient",
            "clients": CLIENTS,
            "positive": "healthy",
            "prepare": {
                "columns": {
                    "age": [{"impute": {"indicator": True}}, "standardise"],
                    "plan": {"one-hot": {"min_count": 10}},
                }
            },
        },
        "model": {"kind": "logistic", "l2": 1, "intercept": True},
        "network": {"kind": "path"},
        "method": {"kind": "stcd", "local_updates": 20},
        "stop": {"gap": 1e-6, "iterations": 100_000},
    }
    Path("c.yaml").write_text(json.dumps(config))

    assert commands.run("train", "c.yaml", "--out", "run", "--quiet") == 0
    run = mtcd.load_run("run")
    assert run.model.classes == ("ill", "healthy")
    assert run.column_names[:2] == ("age", "age (missing)")
    assert "plan=rare" not in run.column_names
    assert (run.predict(TABLE) == Y).mean() > 0.7
    assert ((run.model.decision(TABLE) > 0) == (run.predict(TABLE) == "healthy")).all()
    # the config in the folder repeats the run
    assert commands.run("train", "run/config.yaml", "--out", "again", "--quiet") == 0
    np.testing.assert_array_equal(mtcd.load_run("again").coefficients, run.coefficients)


@pytest.mark.parametrize(
    ("positive", "classes"), [(None, ("bad", "good")), ("bad", ("good", "bad"))]
)
def test_two_classes_of_any_name(positive: str | None, classes: tuple[str, str]) -> None:
    labels = np.where(Y == "ill", "bad", "good")
    model = mtcd.Glm("logistic", l2=1.0, positive=positive)
    run = trained(mtcd.split(X, labels, CLIENTS, prepare="auto"), model)
    assert run.model.classes == classes
    assert ((run.model.decision(X) > 0) == (run.predict(X) == classes[1])).all()


@pytest.mark.parametrize("labels", [[1, 2], [0.5, 1.5], [0, 5]])
def test_two_classes_of_any_numbers(labels: list[float]) -> None:
    y, classes = mtcd.Glm("squared-hinge", positive=labels[0]).loss.encode(
        np.array([labels[0], labels[1], labels[1]])
    )
    assert classes == (labels[1], labels[0])
    assert y.tolist() == [1, -1, -1]
    with pytest.raises(DataError, match="positive class is to be 7"):
        mtcd.Glm("logistic", positive=7).loss.encode(np.array(labels))
    with pytest.raises(DataError, match="positive class is to be \\[1\\]"):
        mtcd.Glm("logistic", positive=[1]).loss.encode(np.array(labels))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="ridge has no use"):
        mtcd.Glm("ridge", positive=1)


def test_split_networks_prepare_the_same_way(tmp_path: Path) -> None:
    nn = pytest.importorskip("torch").nn
    data = mtcd.VerticalDataset.from_table(mtcd.split(X, Y, CLIENTS, prepare="auto")).holdout(
        0.25, seed=0
    )
    assert data.table is not None
    assert data.shapes == data.test.shapes
    sizes = {client: shape[0] for client, shape in data.shapes.items()}
    model = mtcd.SplitModel({c: nn.Linear(n, 4) for c, n in sizes.items()}, nn.Linear(12, 2))
    method = mtcd.MTCD(tokens=1, hops=3, batch=30, stepsize=0.1)
    run = mtcd.train(data, model, "path", method, mtcd.Stop(epochs=2))
    assert (run.predict(data.test) == run.predict(X[_held_out()])).all()
    run.save(tmp_path)
    again = mtcd.load_run(tmp_path, model)
    assert (again.predict(NEW) == run.predict(NEW)).all()


def _held_out() -> np.ndarray:
    numbered = mtcd.VerticalDataset({"a": np.arange(240.0)[:, None]}, Y).holdout(0.25, seed=0)
    return np.asarray(numbered.test.features["a"])[:, 0].astype(int)


def test_held_out_rows_do_not_leak_into_the_preparation() -> None:
    """The rows that ``holdout`` sets aside are spoilt: the training blocks must not change."""
    held_out = _held_out()
    marks = pl.Series(np.isin(np.arange(240), held_out))
    spoilt = X.with_columns(
        age=pl.when(marks).then(1e6).otherwise(pl.col("age")),
        sex=pl.when(marks).then(pl.lit("alien")).otherwise(pl.col("sex")),
    )
    clean, leaky = (
        mtcd.split(table, Y, CLIENTS, prepare="auto").holdout(0.25, seed=0) for table in (X, spoilt)
    )
    assert clean.columns == leaky.columns
    for a, b in zip(clean.blocks, leaky.blocks, strict=True):
        np.testing.assert_array_equal(a, b)
    assert leaky.test.blocks[0][:, leaky.columns[0].index("sex=other")].all()
    run = trained(leaky)
    np.testing.assert_allclose(run.model.decision(leaky.test), run.model.decision(spoilt[held_out]))


def test_the_reason_of_a_transformer_that_cannot_be_fitted_is_told_whole() -> None:
    with pytest.raises(
        DataError,
        match=r"SimpleImputer of client '\w+' could not be fitted: .*could not convert string",
    ):
        mtcd.split({"sex": ["m", "f", "m"]}, [0, 1, 0], 1, prepare=SimpleImputer())
