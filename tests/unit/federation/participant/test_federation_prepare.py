"""Preparation in a federation: each party its own, fitted on the common samples, kept with its
block."""

import csv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from live import in_process
from mtcd.core.errors import ConfigError, DataError, MtcdError
from mtcd.data.tables import TableShare, read_tables
from mtcd.federation.node.predicting import Predictor, new_samples, writer
from mtcd.federation.participant.table import read_party_table
from mtcd.models.glm.party.block import read_block
from patients import CLIENTS, patients
from prepared_federations import OWN, TABLE, federate, own_tables
from waiting import PATIENCE

# the city of a patient is hashed, and new samples have other categories
pytestmark = pytest.mark.filterwarnings("ignore::mtcd.core.errors.DataWarning")


@pytest.fixture
def table(tmp_path: Path) -> Callable[[pl.DataFrame], Path]:
    def written(frame: pl.DataFrame) -> Path:
        frame.write_csv(tmp_path / "t.csv")
        return tmp_path / "t.csv"

    return written


def test_three_parties_train_and_predict_as_one_process_would(tmp_path: Path) -> None:
    paths = own_tables(tmp_path / "tables", TABLE)
    bundles, told = federate(tmp_path, paths, labels__positive="healthy")
    shares = {name: TableShare(path, CLIENTS[name]) for name, path in paths.items()}
    data = read_tables(paths["clinic"], "outcome", shares, id="patient", prepare=OWN)
    assert data.samples < TABLE.height
    one = in_process(data, bundles["clinic"])
    for name, block in told.blocks.items():
        np.testing.assert_allclose(block.theta, one.parameters[name], atol=1e-9)
    assert told.blocks["clinic"].columns[:3] == ("age", "age (missing)", "sex=female")
    assert told.blocks["clinic"].classes == ("ill", "healthy")
    assert (tmp_path / "runs" / "clinic" / "block.csv").read_text().count("admitted.month") == 1

    new = patients(40, seed=5).with_columns(sex=pl.lit("unheard of"))
    files = own_tables(tmp_path / "new", new)
    predictors = {}
    for name in CLIENTS:
        samples = new_samples(bundles[name], tmp_path / "runs" / name, files[name], "patient")
        predictors[name] = Predictor(
            bundles[name],
            samples,
            writer(bundles[name].config, tmp_path / f"{name}.csv"),
            None,
            None,
        )
    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(one_of.run) for one_of in predictors.values()]:
            future.result(PATIENCE)
    with (tmp_path / "clinic.csv").open() as file:
        rows = {row["id"]: row["prediction"] for row in csv.DictReader(file)}
    assert not (tmp_path / "lab.csv").exists()
    expected = dict(zip(new["patient"], one.predict(new.drop("patient", "outcome")), strict=True))
    assert rows == {patient: expected[patient] for patient in rows}
    assert len(rows) > 25


def test_a_party_without_preparation_is_told_of_all_columns_at_once(
    table: Callable[[pl.DataFrame], Path],
) -> None:
    path = table(TABLE.select("patient", "age", "marker"))
    lost = TABLE.select("age", "marker").null_count().row(0)
    with pytest.raises(
        DataError, match=rf"age \({lost[0]}\), marker \({lost[1]}\).*--prepare auto"
    ):
        read_party_table(path, "lab", "patient", None)
    with pytest.raises(
        DataError, match="2 columns of .* are not numeric: sex .*, city .*--prepare auto"
    ):
        read_party_table(table(TABLE.select("patient", "sex", "city")), "lab", "patient", None)
    path = table(TABLE.select("patient", "age", "marker"))
    with pytest.raises(ConfigError, match="'aeg', which no client holds; did you mean 'age'"):
        read_party_table(path, "lab", "patient", None, prepare={"columns": {"aeg": "impute"}})


def test_a_block_with_a_spoilt_preparation_is_refused(tmp_path: Path) -> None:
    from mtcd.data.prepare import read_recipe
    from mtcd.data.prepare.preparation import fit_columns
    from mtcd.models.glm.model import Glm
    from mtcd.models.glm.party.block import PartyBlock

    preparation, _, _ = fit_columns("k", pl.DataFrame({"x": ["u", "v"]}), read_recipe("auto"))
    block = PartyBlock(
        "k", Glm(), preparation.outputs, (), np.ones(3), np.zeros(()), None, preparation
    )
    (tmp_path / "block.npz").write_bytes(block.files()["block.npz"])
    assert read_block(tmp_path).preparation == preparation
    other = PartyBlock("k", Glm(), ("a", "b", "c"), (), np.ones(3), np.zeros(()), None, preparation)
    (tmp_path / "block.npz").write_bytes(other.files()["block.npz"])
    with pytest.raises(MtcdError, match="not a whole block"):
        read_block(tmp_path)


def test_recipes_of_a_party_on_the_command_line(tmp_path: Path) -> None:
    from mtcd.federation.commands.party import _recipe

    assert _recipe(None) is None
    assert _recipe("auto") == "auto"
    (tmp_path / "recipe.yaml").write_text("columns: {age: [impute, standardise]}\n")
    assert _recipe(str(tmp_path / "recipe.yaml")) == {"columns": {"age": ["impute", "standardise"]}}
    (tmp_path / "recipe.yaml").write_text("columns: {age: [inpute]}\n")
    with pytest.raises(ConfigError, match="did you mean 'impute'"):
        _recipe(str(tmp_path / "recipe.yaml"))
    with pytest.raises(ConfigError, match="no recipe file"):
        _recipe("nowhere.yaml")
