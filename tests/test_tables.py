"""Reading tables: what a good file gives, and what every bad one is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from mtcd.data.tables import TableShare, read_tables
from mtcd.data.vertical import split
from mtcd.errors import DataError

MAIN = "pid,age,bp,bmi,y\na,31,120,21.5,0\nb,42,130,22.5,1\nc,53,140,23.5,1\nd,64,150,24.5,0\n"


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes files into the working folder, so that messages show bare file names."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: str | bytes | dict[str, Any]) -> Path:
        path = Path(name)
        if isinstance(content, dict):
            pl.DataFrame(content).write_parquet(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    write("main.csv", MAIN)
    return write


def refused(*words: str, **arguments: Any) -> str:
    with pytest.raises(DataError) as caught:
        read_tables(**{"table": Path("main.csv"), "label": "y", "clients": 1, **arguments})
    for word in words:
        assert word in str(caught.value)
    return str(caught.value)


# --- one table -----------------------------------------------------------------------------------


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
        assert base is not None
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
    assert read_tables(Path("main.csv"), "y", {"bank": ["bmi", "age"]}, id="pid", ignore=["bp"]).notes == ()


def test_csv_and_parquet_give_the_same_data(put: Any) -> None:
    pl.read_csv("main.csv").write_parquet("main.parquet")
    one, two = (read_tables(Path(f"main.{end}"), "y", 2, id="pid") for end in ("csv", "parquet"))
    assert one.columns == two.columns
    assert one.fingerprint == two.fingerprint
    rows = [[31, 120, 21.5], [42, 130, 22.5], [53, 140, 23.5], [64, 150, 24.5]]
    assert one.fingerprint == split(rows, [0, 1, 1, 0], 2).fingerprint


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "BOM"])
def test_other_delimiters_and_a_byte_order_mark_are_read(put: Any, delimiter: str, mark: str) -> None:
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
    frame = pl.DataFrame({"x": [1, 2], "b": [True, False], "d": ["1.5", "2.5"], "y": ["0.25", "1.25"]})
    types = {"x": pl.UInt8, "d": pl.Decimal(10, 2), "y": pl.Decimal(10, 2)}
    frame.cast(types).write_parquet("t.parquet")
    data = read_tables(Path("t.parquet"), "y", 1)
    assert data.blocks[0].tolist() == [[1, 1, 1.5], [2, 0, 2.5]]
    assert data.labels.tolist() == [0.25, 1.25]


# --- labels --------------------------------------------------------------------------------------


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
    pl.DataFrame({"x": [1, 2], "y": ["u", "v"]}).cast({"y": pl.Categorical}).write_parquet("c.parquet")
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


# --- bad files -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", ["t.csv is empty"]),
        ("t.csv", b"\n\n", ["t.csv is empty"]),
        ("t.csv", b"x,y\n", ["t.csv is empty", "at least two rows"]),
        ("t.csv", b"x,y\n1,2\n3,4,5\n", ["t.csv cannot be read", "row 2 has 3 values", "header has 2"]),
        ("t.csv", b"x,y\n\xff\xfe,2\n", ["t.csv cannot be read", "UTF-8"]),
        ("t.csv", b'x,y\n"1,2\n3,4\n', ["t.csv cannot be read"]),
        ("t.csv", b"x,x,y\n1,2,3\n", ["t.csv has 2 columns named 'x'", "rename"]),
        ("t.csv", b",x,y\n0,1,2\n", ["Column 1 of t.csv has no name"]),
        ("t.parquet", b"", ["t.parquet cannot be read"]),
        ("t.parquet", b"hello, this is no parquet file", ["t.parquet cannot be read"]),
        ("t.xlsx", b"x", ["t.xlsx ends in '.xlsx'", ".csv or .parquet"]),
        ("t", b"x", ["t ends in ''", ".csv or .parquet"]),
    ],
)
def test_bad_files(put: Any, name: str, content: bytes, words: list[str]) -> None:
    put(name, content)
    refused(*words, table=Path(name))


def test_no_file_and_a_folder(put: Any) -> None:
    refused("There is no file nowhere.csv", "check the path", table=Path("nowhere.csv"))
    Path("folder.csv").mkdir()
    refused("folder.csv is a folder", "name a CSV or Parquet file", table=Path("folder.csv"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("1 2 x", ["'x2' of t.csv is not numeric", "row 3 holds 'x'", "ignore: [x2]"]),
        ("1 2 1,5", ["row 3 holds '1,5'"]),
        ("u v w", ["row 1 holds 'u'"]),
        ("1 - 3", ["'x2' of t.csv is missing in row 2", "ignore: [x2]"]),
        ("- - -", ["missing in row 1"]),
        ("1 2 NaN", ["missing in row 3"]),
        ("1 2 nan", ["missing in row 3"]),
        ("1 inf 3", ["infinite in row 2"]),
        ("-inf 2 3", ["infinite in row 1"]),
    ],
)
def test_bad_features(put: Any, values: str, words: list[str]) -> None:
    cells = ["" if value == "-" else f'"{value}"' if "," in value else value for value in values.split()]
    put("t.csv", "x1,x2,y\n" + "".join(f"7,{cell},{j}\n" for j, cell in enumerate(cells)))
    refused(*words, table=Path("t.csv"))
    assert read_tables(Path("t.csv"), "y", 1, ignore=["x2"]).columns == (("x1",),)


def test_a_late_text_is_found(put: Any) -> None:
    put("t.csv", "x,y\n" + "".join(f"{j},{j}\n" for j in range(20_000)) + "oops,1\n")
    refused("row 20001 holds 'oops'", table=Path("t.csv"))


@pytest.mark.parametrize("values", [[[1], [2]], ["1", "2"], [None, "u"]])
def test_features_of_parquet_that_are_no_numbers(put: Any, values: list[object]) -> None:
    put("t.parquet", {"x": values, "y": [0, 1]})
    row = 2 if values[0] is None else 1
    refused("'x' of t.parquet is not numeric", f"row {row} holds", table=Path("t.parquet"))


@pytest.mark.parametrize("values", [[None, 1.0], [float("nan"), 1.0], [None, None], [None, True]])
def test_missing_features_of_parquet(put: Any, values: list[object]) -> None:
    put("t.parquet", {"x": values, "y": [0, 1]})
    refused("'x' of t.parquet is missing in row 1", table=Path("t.parquet"))


# --- bad requests --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"label": "Y"}, ["main.csv has no label column 'Y'", "known: pid, age"]),
        ({"label": "bmii"}, ["did you mean 'bmi'?"]),
        ({"label": "y", "id": "y"}, ["'y' cannot be both the label and the id"]),
        ({"id": "pdi"}, ["main.csv has no id column 'pdi'", "did you mean 'pid'?"]),
        ({"clients": 0}, ["1 or more, but is 0"]),
        ({"clients": -3}, ["1 or more, but is -3"]),
        ({"clients": 2.5}, ["whole number", "2.5"]),
        ({"clients": 4, "id": "pid"}, ["4 clients cannot share 3 columns", "Ask for 3 clients or fewer"]),
        ({"clients": {}}, ["There is no client"]),
        ({"clients": {"a": ["age"], "b": []}}, ["Client 'b' holds no column"]),
        ({"clients": {"a": ["agee"]}}, ["'a' lists column 'agee'", "main.csv", "did you mean 'age'?"]),
        ({"clients": {"a": ["age"], "b": ["bp", "age"]}}, ["'age' is given to both 'a' and 'b'"]),
        ({"clients": {"a": ["age", "age"]}}, ["'age' is given twice to 'a'"]),
        ({"clients": {"a": ["age", "y"]}}, ["'a' lists column 'y'", "the label"]),
        ({"clients": {"a": ["pid"]}, "id": "pid"}, ["'a' lists column 'pid'", "the id"]),
        ({"clients": {"a": ["age"]}, "ignore": ["age"]}, ["'a' lists column 'age'", "ignored"]),
        ({"ignore": ["pidd"]}, ["'pidd' is to be ignored", "did you mean 'pid'?"]),
        ({"clients": {"a": TableShare(Path("own.csv"))}}, ["'a' has its own table own.csv", "name the id"]),
    ],
)
def test_bad_requests(put: Any, arguments: dict[str, Any], words: list[str]) -> None:
    refused(*words, **arguments)


# --- ids and joins -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ("7 8 7 7", ["Id '7'", "'pid' of t.csv", "rows 1, 3, 4", "one row per id"]),
        ("a b - c", ["Row 3 of t.csv has no id", "'pid'"]),
    ],
)
def test_bad_ids(put: Any, ids: str, words: list[str]) -> None:
    rows = (f"{value.strip('-')},1,{j}\n" for j, value in enumerate(ids.split()))
    put("t.csv", "pid,x,y\n" + "".join(rows))
    refused(*words, table=Path("t.csv"), id="pid")
    put("own.csv", Path("t.csv").read_text().replace(",y", ",z"))
    own = {"a": TableShare(Path("own.csv"))}
    refused(*(word.replace("t.csv", "own.csv") for word in words), clients=own, id="pid")


@pytest.mark.parametrize("values", [[1.0, None], [1.5, float("nan")], ["u", None], ["u", ""]])
def test_missing_ids_of_parquet(put: Any, values: list[object]) -> None:
    put("t.parquet", {"pid": values, "x": [1, 2], "y": [0, 1]})
    refused("Row 2 of t.parquet has no id", table=Path("t.parquet"), id="pid")


def test_ids_that_cannot_be_compared(put: Any) -> None:
    for ids in ([[1], [2]], [{"a": 1}, {"a": 2}], [b"1", b"\xff"]):
        put("t.parquet", {"pid": ids, "x": [1, 2], "y": [0, 1]})
        refused("'pid' of t.parquet holds", "use numbers or text", table=Path("t.parquet"), id="pid")


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_join_keeps_the_order_of_the_main_table_and_reports_what_does_not_match(put: Any, end: str) -> None:
    put("own.csv", "income,pid,debt\n40,d,4\n10,a,1\n90,z,9\n30,c,3\n")
    if end == "parquet":
        pl.read_csv("own.csv").write_parquet("own.parquet")
    own = TableShare(Path(f"own.{end}"))
    data = read_tables(Path("main.csv"), "y", {"bank": own, "clinic": ["age", "bp", "bmi"]}, id="pid")
    assert data.columns == (("income", "debt"), ("age", "bp", "bmi"))
    assert data.blocks[0].tolist() == [[10, 1], [30, 3], [40, 4]]
    assert data.blocks[1][:, 0].tolist() == [31, 53, 64]
    assert data.labels.tolist() == [0, 1, 0]
    assert data.notes == (
        f"1 of 4 ids of main.csv are not in own.{end} and are left out: 'b'",
        f"1 of 4 ids of own.{end} are not in main.csv and are left out: 'z'",
    )


def test_a_large_join_in_a_random_order(put: Any) -> None:
    rng = np.random.default_rng(1)
    ids, others = rng.permutation(5000), rng.permutation(6000)[:4000]
    put("m.parquet", {"i": ids, "x": ids * 2.0, "y": ids * 3.0})
    put("o.parquet", {"i": others, "x": others * 5.0})
    data = read_tables(Path("m.parquet"), "y", {"a": ["x"], "b": TableShare(Path("o.parquet"), ["x"])}, id="i")
    kept = ids[np.isin(ids, others)].astype(float)
    assert data.columns == (("x",), ("x",))
    np.testing.assert_array_equal(np.hstack(data.blocks), np.column_stack([kept * 2, kept * 5]))
    np.testing.assert_array_equal(data.labels, kept * 3)
    assert re.match(r"\d+ of 5000 ids of m.parquet are not in o.parquet", data.notes[0])
    assert data.notes[0].endswith(", ...")


@pytest.mark.parametrize("ids", [[3, 1, 2], [3.0, 1.0, 2.0], ["3", "1", "2"]])
def test_ids_of_different_types_are_compared_as_text(put: Any, ids: list[object]) -> None:
    put("m.csv", "i,y\n1,0\n2,1\n3,1\n")
    put("n.parquet", {"i": [1, 2, 3], "y": [0, 1, 1]})
    put("o.parquet", {"i": ids, "x": [30, 10, 20]})
    for main in ("m.csv", "n.parquet"):
        data = read_tables(Path(main), "y", {"a": TableShare(Path("o.parquet"))}, id="i")
        assert data.blocks[0][:, 0].tolist() == [10, 20, 30]
        assert data.notes == ()


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "BOM"])
def test_leading_zeros_of_ids_count(put: Any, mark: str) -> None:
    put("m.csv", mark + "i,y\n007,0\n7,1\n08,1\n")
    put("o.csv", "i,x\n7,1\n007,2\nA8,3\n")
    data = read_tables(Path("m.csv"), "y", {"a": TableShare(Path("o.csv"))}, id="i")
    assert data.blocks[0][:, 0].tolist() == [2, 1]


def test_ids_that_never_match(put: Any) -> None:
    put("own.csv", "pid,x\nA,1\nB,2\n")
    text = refused("No id of main.csv is in own.csv", clients={"a": TableShare(Path("own.csv"))}, id="pid")
    assert "'a', 'b', 'c', 'd' with 'A', 'B'" in text
    put("one.csv", "pid,x\na,1\nb,2\n")
    put("two.csv", "pid,x\nc,1\nd,2\n")
    pair = {"p": TableShare(Path("one.csv")), "q": TableShare(Path("two.csv"))}
    refused("No id is in all of main.csv, one.csv, two.csv", clients=pair, id="pid")


def test_the_label_in_a_clients_own_table_is_left_out_and_noted(put: Any) -> None:
    put("own.csv", "pid,x,y\na,1,0\nb,2,1\nc,3,1\nd,4,0\n")
    data = read_tables(Path("main.csv"), "y", {"bank": TableShare(Path("own.csv"))}, id="pid", ignore=["bp"])
    assert data.columns == (("x",),)
    assert data.notes == (
        "Column 'y' of own.csv is named like the label: 'bank' leaves it out.",
        "No client takes these columns of main.csv: age, bmi.",
    )


def test_two_clients_of_one_table_hold_different_columns(put: Any) -> None:
    put("own.csv", "pid,u,v\na,1,5\nb,2,6\nc,3,7\nd,4,8\n")
    own, same = Path("own.csv"), Path("own.csv").absolute()
    data = read_tables(Path("main.csv"), "y", {"p": TableShare(own, ["v"]), "q": TableShare(same, ["u"])}, id="pid")
    assert [block[:, 0].tolist() for block in data.blocks] == [[5, 6, 7, 8], [1, 2, 3, 4]]
    refused("'u' is given to both", clients={"p": TableShare(own), "q": TableShare(same, ["u"])}, id="pid")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("pid,x\na,1\nb,2\nz,?\n", ["'x' of own.csv", "row 3 holds '?'"]),
        ("pid,x\nd,1\nc,\nb,2\n", ["'x' of own.csv is missing in row 2"]),
        ("key,x\na,1\n", ["own.csv has no id column 'pid'"]),
        ("pid\na\nb\n", ["Client 'bank' holds no column"]),
        ("", ["own.csv is empty"]),
    ],
)
def test_bad_own_tables_are_told_by_their_own_rows(put: Any, content: str, words: list[str]) -> None:
    put("own.csv", content)
    refused(*words, clients={"bank": TableShare(Path("own.csv"))}, id="pid")


def test_a_column_that_an_own_table_lacks(put: Any) -> None:
    put("own.csv", "pid,income\na,1\nb,2\n")
    own = {"bank": TableShare(Path("own.csv"), ["incme"])}
    refused("'bank' lists column 'incme'", "own.csv lacks", "did you mean 'income'?", clients=own, id="pid")


def test_labels_that_become_constant_by_the_join(put: Any) -> None:
    put("own.csv", "pid,x\nb,1\nc,2\n")
    refused("All 2 labels are 1", clients={"bank": TableShare(Path("own.csv"))}, id="pid")


def test_positions_are_those_of_the_tables_side_by_side(put: Any) -> None:
    main = put("main.csv", "pid,a,y,b,c\n1,1,2,3,4\n2,5,6,7,9\n")
    own = put("own.csv", "pid,d,e\n1,1,2\n2,3,3\n")
    clients = {"bank": TableShare(own, ["e", "d"]), "lab": ["c", "a"]}
    data = read_tables(main, "y", clients, id="pid")
    assert data.positions == ((3, 2), (1, 0))  # a c | d e; b is nobody's
