"""Reading tables of several clients: ids, and rows put together by them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from mtcd.data.tables import TableShare, read_tables
from table_files import refused


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
        refused(
            "'pid' of t.parquet holds", "use numbers or text", table=Path("t.parquet"), id="pid"
        )


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_join_keeps_the_order_of_the_main_table_and_reports_what_does_not_match(
    put: Any, end: str
) -> None:
    put("own.csv", "income,pid,debt\n40,d,4\n10,a,1\n90,z,9\n30,c,3\n")
    if end == "parquet":
        pl.read_csv("own.csv").write_parquet("own.parquet")
    own = TableShare(Path(f"own.{end}"))
    data = read_tables(
        Path("main.csv"), "y", {"bank": own, "clinic": ["age", "bp", "bmi"]}, id="pid"
    )
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
    data = read_tables(
        Path("m.parquet"), "y", {"a": ["x"], "b": TableShare(Path("o.parquet"), ["x"])}, id="i"
    )
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
    text = refused(
        "No id of main.csv is in own.csv", clients={"a": TableShare(Path("own.csv"))}, id="pid"
    )
    assert "'a', 'b', 'c', 'd' with 'A', 'B'" in text
    put("one.csv", "pid,x\na,1\nb,2\n")
    put("two.csv", "pid,x\nc,1\nd,2\n")
    pair = {"p": TableShare(Path("one.csv")), "q": TableShare(Path("two.csv"))}
    refused("No id is in all of main.csv, one.csv, two.csv", clients=pair, id="pid")


def test_the_label_in_a_clients_own_table_is_left_out_and_noted(put: Any) -> None:
    put("own.csv", "pid,x,y\na,1,0\nb,2,1\nc,3,1\nd,4,0\n")
    data = read_tables(
        Path("main.csv"), "y", {"bank": TableShare(Path("own.csv"))}, id="pid", ignore=["bp"]
    )
    assert data.columns == (("x",),)
    assert data.notes == (
        "Column 'y' of own.csv is named like the label: 'bank' leaves it out.",
        "No client takes these columns of main.csv: age, bmi.",
    )


def test_two_clients_of_one_table_hold_different_columns(put: Any) -> None:
    put("own.csv", "pid,u,v\na,1,5\nb,2,6\nc,3,7\nd,4,8\n")
    own, same = Path("own.csv"), Path("own.csv").absolute()
    data = read_tables(
        Path("main.csv"), "y", {"p": TableShare(own, ["v"]), "q": TableShare(same, ["u"])}, id="pid"
    )
    assert [block[:, 0].tolist() for block in data.blocks] == [[5, 6, 7, 8], [1, 2, 3, 4]]
    refused(
        "'u' is given to both",
        clients={"p": TableShare(own), "q": TableShare(same, ["u"])},
        id="pid",
    )


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
def test_bad_own_tables_are_told_by_their_own_rows(
    put: Any, content: str, words: list[str]
) -> None:
    put("own.csv", content)
    refused(*words, clients={"bank": TableShare(Path("own.csv"))}, id="pid")


def test_a_column_that_an_own_table_lacks(put: Any) -> None:
    put("own.csv", "pid,income\na,1\nb,2\n")
    own = {"bank": TableShare(Path("own.csv"), ["incme"])}
    refused(
        "'bank' lists column 'incme'",
        "own.csv lacks",
        "did you mean 'income'?",
        clients=own,
        id="pid",
    )


def test_labels_that_become_constant_by_the_join(put: Any) -> None:
    put("own.csv", "pid,x\nb,1\nc,2\n")
    refused("All 2 labels are 1", clients={"bank": TableShare(Path("own.csv"))}, id="pid")


def test_positions_are_those_of_the_tables_side_by_side(put: Any) -> None:
    main = put("main.csv", "pid,a,y,b,c\n1,1,2,3,4\n2,5,6,7,9\n")
    own = put("own.csv", "pid,d,e\n1,1,2\n2,3,3\n")
    clients = {"bank": TableShare(own, ["e", "d"]), "lab": ["c", "a"]}
    data = read_tables(main, "y", clients, id="pid")
    assert data.positions == ((3, 2), (1, 0))  # a c | d e; b is nobody's
