"""Reading tables: what every bad file and every bad request is told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mtcd.config.build import build
from mtcd.config.read import read_config
from mtcd.core.errors import DataError
from mtcd.data.tables import TableShare, read_tables
from table_files import refused


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("t.csv", b"", ["t.csv is empty"]),
        ("t.csv", b"\n\n", ["t.csv is empty"]),
        ("t.csv", b"x,y\n", ["t.csv is empty", "rows below it"]),
        (
            "t.csv",
            b"x,y\n1,2\n3,4,5\n",
            ["t.csv cannot be read", "row 2 has 3 values", "header has 2"],
        ),
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


SUPPORTED = [".csv, .tsv, .parquet", "Copy it to this machine", "mtcd.split"]


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("s3://bucket/folder/t.parquet", SUPPORTED),
        ("gs://bucket/t.csv", SUPPORTED),
        ("https://example.org:8443/t.csv?version=2", SUPPORTED),
        ("abfss://box@account.dfs.core.windows.net/t.parquet", SUPPORTED),
        ("file:///data/t.csv", ["by its path", "without 'file://'"]),
    ],
)
def test_an_address_is_told_from_a_path_and_the_error_names_what_can_be_read(
    put: Any, address: str, words: list[str]
) -> None:
    said = f"{address} is an address"
    # a str and a Path, in which '//' is '/'
    refused(said, *words, table=address)
    refused(said, *words, table=Path(address))

    # a table of one client alone
    own = {"a": ["age"], "b": TableShare(Path(address), ["x"])}
    with pytest.raises(DataError, match=re.escape(said)):
        read_tables(Path("main.csv"), "y", own, id="pid")

    # a config puts its folder in front
    put(
        "config.yaml",
        f"data: {{table: '{address}', label: y, clients: 2}}\nmodel: {{kind: logistic}}\n",
    )
    with pytest.raises(DataError, match=re.escape(said)):
        build(read_config(Path("config.yaml").resolve()))


def test_a_path_with_a_colon_is_no_address(put: Any) -> None:
    refused("There is no file a:b/t.csv", "check the path", table=Path("a:b/t.csv"))
    refused("There is no file C:/t.csv", "check the path", table=Path("C:/t.csv"))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ("1 2 x", ["'x2' of t.csv is not numeric", "row 3 holds 'x'", "ignore: [x2]"]),
        ("1 2 1,5", ["row 3 holds '1,5'"]),
        ("u v w", ["row 1 holds 'u'"]),
        ("1 - 3", ["'x2' of t.csv is missing in row 2", "ignore: [x2]"]),
        ("- - -", ["3 values of t.csv are missing", "x2 (3)", "prepare: auto"]),
        ("1 2 NaN", ["missing in row 3"]),
        ("1 2 nan", ["missing in row 3"]),
        ("1 inf 3", ["infinite in row 2"]),
        ("-inf 2 3", ["infinite in row 1"]),
    ],
)
def test_bad_features(put: Any, values: str, words: list[str]) -> None:
    cells = [
        "" if value == "-" else f'"{value}"' if "," in value else value for value in values.split()
    ]
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


@pytest.mark.parametrize("values", [[None, 1.0], [float("nan"), 1.0], [None, True]])
def test_missing_features_of_parquet(put: Any, values: list[object]) -> None:
    put("t.parquet", {"x": values, "y": [0, 1]})
    refused("'x' of t.parquet is missing in row 1", table=Path("t.parquet"))


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
        (
            {"clients": 4, "id": "pid"},
            ["4 clients cannot share 3 columns", "Ask for 3 clients or fewer"],
        ),
        ({"clients": {}}, ["There is no client"]),
        ({"clients": {"a": ["age"], "b": []}}, ["Client 'b' holds no column"]),
        (
            {"clients": {"a": ["agee"]}},
            ["'a' lists column 'agee'", "main.csv", "did you mean 'age'?"],
        ),
        ({"clients": {"a": ["age"], "b": ["bp", "age"]}}, ["'age' is given to both 'a' and 'b'"]),
        ({"clients": {"a": ["age", "age"]}}, ["'age' is given twice to 'a'"]),
        ({"clients": {"a": ["age", "y"]}}, ["'a' lists column 'y'", "the label"]),
        ({"clients": {"a": ["pid"]}, "id": "pid"}, ["'a' lists column 'pid'", "the id"]),
        ({"clients": {"a": ["age"]}, "ignore": ["age"]}, ["'a' lists column 'age'", "ignored"]),
        ({"ignore": ["pidd"]}, ["'pidd' is to be ignored", "did you mean 'pid'?"]),
        (
            {"clients": {"a": TableShare(Path("own.csv"))}},
            ["'a' has its own table own.csv", "name the id"],
        ),
    ],
)
def test_bad_requests(put: Any, arguments: dict[str, Any], words: list[str]) -> None:
    refused(*words, **arguments)
