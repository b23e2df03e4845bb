"""Trees: bad settings and data are refused in words; missing values and categories; commands on a
config."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import mtcd
from boosting import SETTINGS, samples, trained
from commands import outcome
from commands import run as command
from mtcd.core.errors import ConfigError, DataError, DataWarning, MtcdError
from mtcd.models.glm.model import Glm
from mtcd.models.trees.training import check_additive

X, Y = samples("classes", n=60)
DATA = mtcd.split(X, Y, 3)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (mtcd.DCPA(), "dcpa trains linear models only: use mtcd or stcd for trees"),
        (mtcd.TreeCG(), "tree-cg trains linear models only"),
        (mtcd.SVFL(), "svfl trains linear models only"),
        (
            mtcd.STCD(walk="tour", acceleration="momentum"),
            "method.acceleration extrapolates parameters",
        ),
        (mtcd.MTCD(batch=10), "method.batch samples mini-batches; .*use model.rows"),
        (mtcd.STCD(stepsize=0.1), "method.stepsize is for linear models: .*learning_rate"),
        (mtcd.STCD(local_solver="majorise"), "method.local_solver is for linear models"),
    ],
)
def test_methods_that_trees_do_not_have_are_refused(method: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mtcd.train(DATA, mtcd.Trees("logistic"), "path", method, mtcd.Stop(iterations=3))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"loss": "logistc"}, "no loss is called 'logistc'.*'logistic'"),
        ({"loss": "ridge"}, "no loss is called 'ridge': write squared"),
        ({"loss": "quantile", "quantile": 1.5}, "quantile must be below 1"),
        ({"loss": "quantile", "quantile": 0}, "quantile must be above 0"),
        ({"loss": "squared", "quantile": 0.9}, "model.quantile: the loss squared has no use"),
        ({"loss": "squared", "delta": 2.0}, "model.delta: the loss squared has no use"),
        ({"learning_rate": 0}, "learning_rate must be above 0"),
        ({"rows": 1.5}, "model.rows is a share"),
        ({"columns": 0}, "model.columns must be above 0"),
        ({"depth": -1}, "depth must be 0 or more"),
        ({"leaves": 1}, "leaves must be 2 or more"),
        ({"min_samples": 0}, "min_samples must be 1 or more"),
        ({"class_weight": "even"}, "class_weight must be"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mtcd.Trees(**settings)


def test_what_is_not_for_trees_is_refused() -> None:
    def train(data: Any = DATA, model: Any = None, **more: Any) -> None:
        stop = more.pop("stop", mtcd.Stop(iterations=2))
        mtcd.train(data, model or mtcd.Trees("logistic"), method=mtcd.STCD(), stop=stop, **more)

    with pytest.raises(
        ConfigError, match="stop.gap needs the optimum, which is not known for trees"
    ):
        train(stop=mtcd.Stop(gap=1e-3))
    with pytest.raises(ConfigError, match="sealed tours hide the derivatives of each sample"):
        mtcd.train(
            DATA,
            mtcd.Trees("logistic"),
            method=mtcd.STCD(walk="tour"),
            privacy=mtcd.Privacy(mode="sealed"),
        )
    with pytest.raises(ConfigError, match="standardise is not for trees"):
        train(standardise=True)
    with pytest.raises(DataError, match="counts"):
        train(mtcd.split(X, X[:, 0], 2), mtcd.Trees("poisson"))
    with pytest.raises(DataError, match="constant label"):
        mtcd.split(X, np.ones(60), 2)
    with pytest.raises(DataError, match="two classes"):
        train(mtcd.split(X, X[:, 0], 2))
    for kind in ("quantile", "poisson"):
        with pytest.raises(
            ConfigError, match=f"a linear model cannot have the {kind} loss.*Trees can"
        ):
            Glm(kind)
    run = trained(DATA, mtcd.Trees("logistic", **SETTINGS), 4)
    with pytest.raises(MtcdError, match="ONNX"):
        run.export_onnx("model.onnx")
    with pytest.raises(MtcdError, match="without coefficients"):
        _ = run.coefficients


def frame(n: int = 150, seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    city, dose = rng.choice(["Rome", "Oslo", "Lima", "Bonn"], n), rng.standard_normal(n)
    score = 1.5 * np.isin(city, ["Rome", "Lima"]) + dose + 0.2 * rng.standard_normal(n)
    gaps = rng.random(n) < 0.2
    columns = {
        "city": city,
        "dose": np.where(gaps, np.nan, dose),
        "empty": [None] * n,
        "smokes": rng.choice(["y", "n"], n),
    }
    return pl.DataFrame(columns | {"label": (score > 0.8).astype(int)})


def test_missing_values_and_categories_are_the_learners(tmp_path: Path) -> None:
    """Against LightGBM on the same codes, and after a reload; unseen categories count as
    missing."""
    from boosting import joint

    table = frame()
    parties = {"all": ["city", "dose", "smokes"]}
    data = mtcd.split(table.drop("label", "empty"), table["label"], parties, prepare="trees")
    assert data.categorical == ((0,),)
    run = trained(data, mtcd.Trees("logistic", **SETTINGS), 10)
    theirs = joint(data.blocks[0], table["label"].to_numpy(), "binary", 10, categories=[0])
    np.testing.assert_allclose(
        run.decision(table), theirs.predict(data.blocks[0], raw_score=True), atol=1e-5
    )
    run.save(tmp_path / "run")
    again = mtcd.load_run(tmp_path / "run")
    new = frame(20, seed=1).with_columns(city=pl.lit("Paris"), dose=pl.lit(None))
    missing = new.with_columns(city=pl.lit(None))
    with pytest.warns(
        DataWarning, match="20 value\\(s\\) of column 'city' \\(all of them\\).*such as 'Paris'"
    ):
        unseen = again.decision(new)
    np.testing.assert_array_equal(unseen, run.decision(missing))


def test_an_empty_column_is_noted_and_a_linear_model_refuses_what_was_kept() -> None:
    table = frame()
    parties = {"a": ["city", "empty"], "b": ["dose", "smokes"]}
    with pytest.warns(DataWarning, match="Column 'empty' has no value"):
        data = mtcd.split(table.drop("label"), table["label"], parties, prepare="trees")
    assert any("'empty' has no value" in note for note in data.notes)
    trained(data, mtcd.Trees("logistic", **SETTINGS), 3)
    with pytest.raises(DataError, match="prepared for trees.*prepare them with 'auto'"):
        mtcd.train(data, mtcd.Glm("logistic"), method=mtcd.STCD(), stop=mtcd.Stop(iterations=2))
    strict = {"missing": "keep", "on_unseen": "error"}
    data = mtcd.split(table.select("city", "dose"), table["label"], 2, prepare=strict)
    run = trained(data, mtcd.Trees("logistic", **SETTINGS), 3)
    with pytest.raises(DataError, match="'city' holds 'Paris', as no training row does"):
        run.predict(frame(5).with_columns(city=pl.lit("Paris")))


CONFIG = """
data: {table: t.csv, label: label, clients: {a: [city, smokes], b: [dose, empty]}, holdout: 0.3}
model: {kind: trees, loss: logistic, min_samples: 5}
network: {kind: path}
method: {kind: stcd}
stop: {iterations: 12}
"""


def test_commands_on_a_config(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame().write_csv(tmp_path / "t.csv")
    config = tmp_path / "c.yaml"
    config.write_text(CONFIG)

    def told(*arguments: str) -> dict[str, Any]:
        assert command(*arguments, "--json") == 0
        return outcome(capsys)

    assert told("train", str(config), "--out", str(tmp_path / "run"))["metrics"]["test_auc"] > 0.6
    assert (tmp_path / "run" / "importance.csv").read_text().startswith("client,column,gain,share")
    assert told("inspect", str(config))["clients"]["a"]["categories"] == ["city"]
    planned = told("plan", str(config), "--budget", "4s", "--out", str(tmp_path / "p.yaml"))
    assert {"STCD, Q=1", "STCD, Q=3, tour"} <= {one["method"] for one in planned["candidates"]}
    again = told("train", str(tmp_path / "p.yaml"), "--out", str(tmp_path / "again"))
    assert again["method"] == planned["candidates"][0]["method"]
    assert command("inspect", str(config), "--set", "model.dept=3") != 0
    assert "'model.dept', did you mean 'depth'" in capsys.readouterr().err.replace("\n", " ")


def test_the_kinds_of_trees_in_an_error_are_in_one_order() -> None:
    sealed: Any = SimpleNamespace(kind="stcd")
    families: Any = [SimpleNamespace(kind=kind) for kind in ("trees", "linear", "nets", "linear")]
    with pytest.raises(ConfigError, match="from which linear and nets and trees learn"):
        check_additive(sealed, families, mtcd.Stop(iterations=1))
