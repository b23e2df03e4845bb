"""The party's own table: what is read, and what is said where it cannot be used."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from mtcd.core.errors import DataError, WireError
from mtcd.federation.node.opening import Agreed
from mtcd.federation.participant.table import PartyTable, own_table, read_party_table
from mtcd.models.glm.party.participant import LinearParticipant
from own_parts import bundles

CSV = "patient,age,bmi,outcome\n007,30,21.5,yes\n8,41,30,no\nx9,52,25,yes\n"
CLIENTS = ("a", "b")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    (tmp_path / "own.csv").write_text(CSV)
    return tmp_path


def read(
    folder: Path, name: str = "b", data: Any = "own.csv", given: Any = None, **settings: Any
) -> PartyTable:
    """The table of a party whose bundle names no data; ``given`` is what is given when it starts."""
    config = bundles(CLIENTS, held_by="b", **settings)[name]
    given = {"key": "patient"} if given is None else given
    return own_table(config, folder, data if data is None else folder / data, **given)


def test_the_holder_reads_ids_as_text_its_columns_and_the_label(folder: Path) -> None:
    table = read(folder)
    assert table.ids == ("007", "8", "x9")
    assert table.columns == ("age", "bmi")
    assert table.values.tolist() == [[30, 21.5], [41, 30], [52, 25]]
    assert table.labels.tolist() == ["yes", "no", "yes"]


def test_others_have_no_label(folder: Path) -> None:
    table = read(folder, "a", given={"key": "patient", "columns": ["bmi"]})
    assert table.labels is None
    assert table.values.tolist() == [[21.5], [30], [25]]


def test_parquet_is_read_too(folder: Path) -> None:
    pl.DataFrame({"patient": [3, 1], "x": [1, 2], "outcome": [True, False]}).write_parquet(
        folder / "own.parquet"
    )
    table = read(folder, data="own.parquet")
    assert table.ids == ("3", "1")
    assert table.labels.tolist() == [1, 0]


def test_what_the_bundle_says_counts_unless_something_is_given(folder: Path) -> None:
    config = bundles(CLIENTS, held_by="b")["b"]
    said = config.data.model_copy(
        update={"table": Path("own.csv"), "id": "patient", "columns": ["bmi"]}
    )
    config = config.model_copy(update={"data": said})
    assert own_table(config, folder).columns == ("bmi",)
    assert own_table(config, folder, columns=["age"]).columns == ("age",)
    assert own_table(config, folder, label="age", columns=["bmi"]).labels.tolist() == [30, 41, 52]  # type: ignore[union-attr]
    Path("here.csv").write_text(CSV)
    here = config.model_copy(update={"data": said.model_copy(update={"table": Path("here.csv")})})
    assert own_table(here, folder).rows == 3


def test_with_a_given_order_nobody_looks_at_ids(folder: Path) -> None:
    (folder / "own.csv").write_text("age,outcome\n1,0\n2,1\n")
    table = read(folder, given={}, alignment="given order")
    assert table.ids is None
    assert table.columns == ("age",)
    with pytest.raises(DataError, match="Leave --id out"):
        read(folder, given={"key": "age"}, alignment="given order")


def test_new_samples_are_read_without_a_label(folder: Path) -> None:
    table = read_party_table(folder / "own.csv", "b", "patient", ("bmi", "age"))
    assert table.labels is None
    np.testing.assert_array_equal(table.values, [[21.5, 30], [30, 41], [25, 52]])


def test_of_new_samples_no_column_can_be_left_out(folder: Path) -> None:
    (folder / "new.csv").write_text("patient,bmi,age\nx,20,30\ny,,40\n")
    with pytest.raises(DataError, match="missing in row 2") as told:
        read_party_table(folder / "new.csv", "b", "patient", ("bmi", "age"))
    assert "leave" not in str(told.value)


HOLDER = {"key": "patient"}
WRONG: list[tuple[str, str, dict[str, Any], str]] = [
    ("b", CSV, {}, "the column with the ids.*--id"),
    ("b", CSV, {"key": "patent"}, "no id column 'patent': did you mean 'patient'"),
    ("b", CSV.replace("8,", "007,"), HOLDER, "Id '007'.* rows 1, 2: keep one row per id"),
    ("b", CSV.replace("8,", ","), HOLDER, "Row 2 .*has no id"),
    ("b", CSV.replace("41", ""), HOLDER, "'age'.* missing in row 2.*--columns"),
    ("b", CSV.replace("41", "old"), HOLDER, "'age'.* not numeric: row 2 holds 'old'.*--columns"),
    ("b", CSV.replace("41", "inf"), HOLDER, "'age'.* infinite in row 2"),
    ("b", CSV.replace("no", ""), HOLDER, "label.* missing in row 2"),
    ("b", CSV.replace("no", "yes"), HOLDER, "yes in every row"),
    (
        "b",
        CSV,
        HOLDER | {"label": "outcom"},
        "no label column 'outcom': did you mean 'outcome'.*--label",
    ),
    ("b", CSV, HOLDER | {"columns": ["age", "outcome"]}, "'outcome', which is the label"),
    ("b", CSV, HOLDER | {"columns": ["patient"]}, "'patient', which is the id"),
    ("b", CSV, HOLDER | {"columns": ["agee"]}, "did you mean 'age'"),
    ("b", CSV, HOLDER | {"columns": ["age", "age"]}, "given twice to 'b'"),
    ("b", CSV, HOLDER | {"columns": []}, "No column of .* is left"),
    ("b", "patient,outcome\n1,0\n2,1\n", HOLDER, "No column of .* is left"),
    ("b", "", HOLDER, "is empty"),
    ("a", CSV, HOLDER | {"label": "outcome"}, "'b' holds the labels"),
]


@pytest.mark.parametrize(
    ("name", "content", "given", "told"), WRONG, ids=lambda value: str(value)[:30]
)
def test_a_table_that_cannot_be_used(
    folder: Path, name: str, content: str, given: dict[str, Any], told: str
) -> None:
    (folder / "own.csv").write_text(content)
    with pytest.raises(DataError, match=told):
        read(folder, name, given=given)


def test_what_the_bundle_does_not_say_must_be_given(folder: Path) -> None:
    with pytest.raises(DataError, match="--data"):
        read(folder, data=None)
    with pytest.raises(DataError, match="There is no file"):
        read(folder, data="nowhere.csv")
    with pytest.raises(DataError, match="--label"):
        read(folder, labels__column=None)


PARTY_TABLE = PartyTable(Path("own.csv"), ("a", "b"), ("x",), np.array([[1.0], [2.0]]))


def linear_party() -> LinearParticipant:
    bundle: Any = SimpleNamespace(config=bundles(CLIENTS, alignment="hashed")["b"])
    return LinearParticipant(bundle, PARTY_TABLE)


def test_a_table_that_lacks_agreed_samples_is_not_the_one_that_was_aligned() -> None:
    """After a restart with another table, rows of other people would be trained on."""
    party = linear_party()

    def drawn(*ids: str) -> list[int]:
        return list(party.drawn(Agreed("r", {}, b"", json.dumps(ids).encode())).training)

    assert drawn("a", "b") == [0, 1]
    with pytest.raises(DataError, match=r"own\.csv is not the table that was aligned.*--data"):
        drawn("a", "c")


def test_a_model_without_a_fusion_module_takes_none() -> None:
    with pytest.raises(WireError, match="kind does not belong to this model"):
        linear_party().accept_final_module(b"module")
