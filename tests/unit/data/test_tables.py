"""Reading one table: what a good file gives, features and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from mtcd.data.splitting import split
from mtcd.data.table_files import read_table
from mtcd.data.tables import read_tables
from table_files import MAIN, refused


def test_even_split_of_one_table(put: Any) -> None:
    data = read_tables(Path("main.csv"), "y", clients=2, id="pid")
    assert data.clients == ("client_0", "client_1")
    assert data.columns == (("age", "bp"), ("bmi",))
    np.testing.assert_array_equal(data.blocks[0], [[31, 120], [42, 130], [53, 140], [64, 150]])
    np.testing.assert_array_equal(data.blocks[1], [[21.5], [22.5], [23.5], [24.5]])
    assert data.labels.tolist() == [0, 1, 1, 0]
    assert data.labels.dtype == np.int64
    assert data.notes == ()


def test_blocks_are_views_of_one_column_major_matrix(put: Any) -> None:
    for clients in (3, {"a": ["bmi"], "b": ["age", "bp"]}):
        blocks = read_tables(Path("main.csv"), "y", clients=clients, id="pid").blocks
        base = blocks[0].base
        assert base.flags.f_contiguous
        assert base.shape == (4, 3)
        assert all(block.base is base and block.flags.f_contiguous for block in blocks)


def test_the_id_is_never_a_feature_but_an_unnamed_one_is_a_column(put: Any) -> None:
    assert "pid" not in sum(read_tables(Path("main.csv"), "y", 1, id="pid").columns, ())
    refused("'pid'", "not numeric", "row 1", "'a'", "ignore: [pid]")
    assert read_tables(Path("main.csv"), "y", 1, ignore=["pid"]).columns == (("age", "bp", "bmi"),)


def test_named_clients_take_listed_columns_and_the_rest_is_noted(put: Any) -> None:
    data = read_tables(Path("main.csv"), "y", {"bank": ["bmi"], "clinic": ["age"]}, id="pid")
    assert data.clients == ("bank", "clinic")
    assert data.columns == (("bmi",), ("age",))
    assert data.blocks[0][:, 0].tolist() == [21.5, 22.5, 23.5, 24.5]
    assert data.notes == ("No client takes these columns of main.csv: bp.",)


def test_ignored_columns_are_not_noted_as_unused(put: Any) -> None:
    assert (
        read_tables(Path("main.csv"), "y", {"bank": ["bmi", "age"]}, id="pid", ignore=["bp"]).notes
        == ()
    )


def test_csv_and_parquet_give_the_same_data(put: Any) -> None:
    pl.read_csv("main.csv").write_parquet("main.parquet")
    one, two = (read_tables(Path(f"main.{end}"), "y", 2, id="pid") for end in ("csv", "parquet"))
    assert one.columns == two.columns
    assert one.fingerprint == two.fingerprint
    rows = [[31, 120, 21.5], [42, 130, 22.5], [53, 140, 23.5], [64, 150, 24.5]]
    assert one.fingerprint == split(rows, [0, 1, 1, 0], 2).fingerprint


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "BOM"])
def test_other_delimiters_and_a_byte_order_mark_are_read(
    put: Any, delimiter: str, mark: str
) -> None:
    put("other.csv", mark + MAIN.replace(",", delimiter))
    one, two = (read_tables(Path(name), "y", 2, id="pid") for name in ("main.csv", "other.csv"))
    assert (one.columns, one.fingerprint) == (two.columns, two.fingerprint)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["true", "false"], [1, 0]),
        (["True", "False"], [1, 0]),
        (["+3", "-.5", "1e3"], [3, -0.5, 1000]),
        (["1", " 2.5", "3 "], [1, 2.5, 3]),
    ],
)
def test_ways_to_write_numbers(put: Any, written: list[str], read: list[float]) -> None:
    put("n.csv", "x,y\n" + "".join(f"{value},{label}\n" for label, value in enumerate(written)))
    assert read_tables(Path("n.csv"), "y", 1).blocks[0][:, 0].tolist() == read


def test_blank_lines_at_the_end_and_windows_line_ends_do_no_harm(put: Any) -> None:
    put("w.csv", MAIN.replace("\n", "\r\n") + "\r\n\r\n")
    assert read_tables(Path("w.csv"), "y", 1, id="pid").samples == 4


def test_small_integer_and_decimal_types_of_parquet(put: Any) -> None:
    frame = pl.DataFrame(
        {"x": [1, 2], "b": [True, False], "d": ["1.5", "2.5"], "y": ["0.25", "1.25"]}
    )
    types = {"x": pl.UInt8, "d": pl.Decimal(10, 2), "y": pl.Decimal(10, 2)}
    frame.cast(types).write_parquet("t.parquet")
    data = read_tables(Path("t.parquet"), "y", 1)
    assert data.blocks[0].tolist() == [[1, 1, 1.5], [2, 0, 2.5]]
    assert data.labels.tolist() == [0.25, 1.25]


@pytest.mark.parametrize(
    ("labels", "read", "kind"),
    [
        ("0 1 2", [0, 1, 2], "i"),
        ("0.5 1 2", [0.5, 1, 2], "f"),
        ("true false true", [1, 0, 1], "i"),
        ("cat dog cat", ["cat", "dog", "cat"], "U"),
    ],
)
def test_labels_keep_their_kind(put: Any, labels: str, read: list[object], kind: str) -> None:
    put("l.csv", "x,y\n" + "".join(f"{j},{label}\n" for j, label in enumerate(labels.split())))
    data = read_tables(Path("l.csv"), "y", 1)
    assert data.labels.tolist() == read
    assert data.labels.dtype.kind == kind
    assert data.notes == ()


def test_texts_of_digits_and_categories_in_parquet_stay_classes(put: Any) -> None:
    put("l.parquet", {"x": [1, 2], "y": ["0", "1"]})
    assert read_tables(Path("l.parquet"), "y", 1).labels.tolist() == ["0", "1"]
    pl.DataFrame({"x": [1, 2], "y": ["u", "v"]}).cast({"y": pl.Categorical}).write_parquet(
        "c.parquet"
    )
    assert read_tables(Path("c.parquet"), "y", 1).labels.tolist() == ["u", "v"]


def test_labels_that_mix_numbers_and_texts_are_noted(put: Any) -> None:
    put("l.csv", "x,y\n1,0\n2,1\n3,NA\n")
    data = read_tables(Path("l.csv"), "y", 1)
    assert data.labels.tolist() == ["0", "1", "NA"]
    assert "'NA' in row 3" in data.notes[0]


@pytest.mark.parametrize(
    ("column", "words"),
    [
        ("0 1 -", ["'y' of l.csv", "missing in row 3"]),
        ("u v -", ["'y' of l.csv", "missing in row 3"]),
        ("- - -", ["missing in row 1"]),
        ("0 nan 1", ["missing in row 2"]),
        ("0.5 1 inf", ["infinite in row 3"]),
        ("2 2 2", ["'y' of l.csv", "is 2 in every row"]),
        ("no no no", ["is no in every row"]),
    ],
)
def test_bad_labels(put: Any, column: str, words: list[str]) -> None:
    rows = (f"{j},{value.strip('-')}\n" for j, value in enumerate(column.split()))
    put("l.csv", "x,y\n" + "".join(rows))
    refused(*words, table=Path("l.csv"))


def test_an_empty_text_is_a_missing_label(put: Any) -> None:
    put("l.csv", 'x,y\n1,"u"\n2,""\n')
    put("l.parquet", {"x": [1, 2], "y": ["u", ""]})
    for name in ("l.csv", "l.parquet"):
        refused(f"'y' of {name}) is missing in row 2", table=Path(name))


def test_labels_of_a_type_that_is_neither_number_nor_text(put: Any) -> None:
    put("l.parquet", {"x": [1, 2], "y": [[1], [2]]})
    refused("'y' of l.parquet", "List", "use numbers", table=Path("l.parquet"))


@pytest.mark.parametrize("first", ["1", "0.5", "true", "text", "", "+3"])
@pytest.mark.parametrize(
    "last", ["1", "0.5", "1e300", "12345678901234567890123", "true", "u", "", "nan", " 2", "007"]
)
def test_types_are_those_of_all_rows(tmp_path: Path, first: str, last: str) -> None:
    """As if polars had looked at all rows before it reads any."""
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + f"{first},0\n" * 1500 + f"{last},1\n")
    full = pl.read_csv(path, infer_schema_length=None)["x"]
    numbers = (
        full.str.strip_chars().cast(pl.Float64, strict=False) if full.dtype == pl.String else full
    )
    expected = numbers if numbers.null_count() == full.null_count() else full
    found = read_table(path, None).columns["x"]
    assert (found.dtype.is_numeric(), found.dtype == pl.Boolean) == (
        expected.dtype.is_numeric(),
        full.dtype == pl.Boolean,
    )
    assert found.to_list()[-2:] == pytest.approx(expected.to_list()[-2:], nan_ok=True)
