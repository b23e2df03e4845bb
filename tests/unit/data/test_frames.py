"""Data frames keep the names of their columns: in a split, in the coefficients and in
predictions."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
import pytest

import mtcd
from mtcd.core.errors import DataError

RNG = np.random.default_rng(0)
NAMES = ["age", "dose", "stay", "score", "weight"]
TABLE = {name: RNG.standard_normal(30) for name in NAMES}
X = np.column_stack(list(TABLE.values()))
Y = X @ [1.0, -2.0, 0.5, 0.0, 3.0] + 0.1 * RNG.standard_normal(30)

MakeFrame = Callable[[dict[Any, Any]], Any]


def pandas_frame(table: dict[Any, Any]) -> Any:
    return pytest.importorskip("pandas").DataFrame(table)


@pytest.fixture(params=["polars", "pandas", "dict"])
def make(request: pytest.FixtureRequest) -> MakeFrame:
    return {"polars": pl.DataFrame, "pandas": pandas_frame, "dict": dict}[request.param]


def trained(data: mtcd.VerticalData, **how: Any) -> mtcd.Run:
    stop = mtcd.Stop(iterations=3000)
    return mtcd.train(
        data, mtcd.Glm("ridge", alpha=0.5), "path", mtcd.STCD(local_updates=5), stop, **how
    )


# --- splitting -----------------------------------------------------------------------------------

HELD = {"h": ["stay", "age"], "b": ["weight"]}


@pytest.mark.parametrize(
    ("clients", "names", "columns"),
    [
        (2, ("client_0", "client_1"), (("age", "dose", "stay"), ("score", "weight"))),
        (["h", "b"], ("h", "b"), (("age", "dose", "stay"), ("score", "weight"))),
        ([["stay", "age"], ["weight"]], ("client_0", "client_1"), (("stay", "age"), ("weight",))),
        (HELD, ("h", "b"), (("stay", "age"), ("weight",))),
        ({"h": [2, "age"], "b": [4]}, ("h", "b"), (("stay", "age"), ("weight",))),
    ],
)
def test_names_are_kept_however_clients_are_given(
    make: MakeFrame, clients: Any, names: Any, columns: Any
) -> None:
    data = mtcd.split(make(TABLE), Y, clients)
    assert data.clients == names
    assert data.columns == columns
    for held, block in zip(columns, data.blocks, strict=True):
        np.testing.assert_array_equal(block, np.column_stack([TABLE[name] for name in held]))
        assert block.flags.f_contiguous
    same = mtcd.split(X, Y, clients, columns=NAMES)
    assert (same.columns, same.positions, same.fingerprint) == (
        data.columns,
        data.positions,
        data.fingerprint,
    )


def test_whole_numbers_and_truths_are_numbers(make: MakeFrame) -> None:
    data = mtcd.split(make({"a": [True, False, True], "b": [3, 4, 5]}), [0, 1, 0], 2)
    assert [block.ravel().tolist() for block in data.blocks] == [[1.0, 0.0, 1.0], [3.0, 4.0, 5.0]]


def test_columns_that_nobody_holds_need_not_be_numbers(make: MakeFrame) -> None:
    frame = make({"id": ["p", "q", "r"], "a": [1, 2, 4], "b": [0.5, 1.0, 2.0]})
    data = mtcd.split(frame, [1.0, 2.0, 3.5], {"h": ["b"], "k": ["a"]})
    assert data.columns == (("b",), ("a",))
    run = trained(data)
    assert run.predict(frame) == pytest.approx(run.predict(data))


@pytest.mark.parametrize("make", [pandas_frame, dict])
def test_a_whole_number_is_a_name_where_names_are_numbers(make: MakeFrame) -> None:
    frame = make({2010: [1, 2, 4], 2012: [0.5, 1.0, 2.0], 0: [7, 1, 1], "x": [5, 5, 6]})
    data = mtcd.split(frame, [1.0, 2.0, 3.5], {"h": [2012, "2010"], "k": [0, "x"]})
    assert data.columns == (("2012", "2010"), ("0", "x"))
    assert data.blocks[1][:, 0].tolist() == [7, 1, 1]
    run = trained(data)
    assert run.predict(frame) == pytest.approx(run.predict(data))
    with pytest.raises(DataError, match="Client 'h' asks for column 1, which"):
        mtcd.split(frame, [1.0, 2.0, 3.5], {"h": [1]})


def test_labels_are_taken_from_a_series(make: MakeFrame) -> None:
    texts, whole = ["no", "yes", "no"], [3, 1, 2]
    frame = make({"a": [1, 2, 4], "text": texts, "whole": whole})
    for name, expected in (("text", texts), ("whole", whole)):
        data = mtcd.split(frame, frame[name], {"k": ["a"]})
        assert data.labels.tolist() == expected
        assert data.labels.dtype.kind == ("U" if name == "text" else "i")


@pytest.mark.parametrize(
    "values", [[1, None, 2], ["u", None, "v"], [True, None, False], [1.5, float("nan"), 2.0]]
)
def test_a_missing_label_of_a_series_is_named(make: MakeFrame, values: list[Any]) -> None:
    frame = make({"a": [1, 2, 4], "y": values})
    with pytest.raises(DataError, match="label of row 2 is missing"):
        mtcd.split(frame, frame["y"], {"k": ["a"]})


def test_of_pandas_nullable_columns_and_labels_are_numbers() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"a": pd.array([1, 2, 4], "Int64"), "b": pd.array([True, False, True], "boolean")}
    )
    classes = pd.Series(["u", "v", "u"], dtype="category")
    assert mtcd.split(frame, classes, 2).labels.tolist() == ["u", "v", "u"]
    data = mtcd.split(frame, pd.Series([1, 0, 1], dtype="Int64"), 2)
    assert [block.ravel().tolist() for block in data.blocks] == [[1.0, 2.0, 4.0], [1.0, 0.0, 1.0]]
    assert data.labels.dtype.kind == "i"
    frame.loc[1, "b"] = None
    with pytest.raises(DataError, match="Column 'b' of client 'client_1' is missing in row 2"):
        mtcd.split(frame, classes, 2)


def test_of_pandas_rows_in_another_order_are_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame, y = pd.DataFrame(TABLE, index=range(100, 130)), pd.Series(Y, index=range(100, 130))
    with pytest.raises(
        DataError, match=r"index of the features in another order.*y\.loc\[X\.index\]"
    ):
        mtcd.split(frame, y[::-1], 2)
    np.testing.assert_array_equal(mtcd.split(frame, y[::-1].loc[frame.index], 2).labels, Y)
    # another index: by position
    np.testing.assert_array_equal(mtcd.split(frame, pd.Series(Y), 2).labels, Y)


TEXT = ["u", "v", "w"]
BAD = {
    "texts": (
        {"a": TEXT, "b": [1, 2, 3], "c": ["1", "2", "3"]},
        1,
        r"Columns 'a' \(text\), 'c' \(text\) do not hold",
    ),
    "one text": (
        {"a": TEXT, "b": [1, 2, 3]},
        2,
        r"Column 'a' \(text\) does not hold numbers: turn",
    ),
    "dates": (
        {"a": [datetime.date(2020, 1, day) for day in (1, 2, 3)]},
        1,
        r"Column 'a' \(dates?\)",
    ),
    "missing": (
        {"a": [1, 2, 3], "b": [1, None, 3]},
        2,
        "Column 'b' of client 'client_1' is missing in row 2",
    ),
    "unknown": (
        {"age": [1, 2, 3]},
        {"k": ["agee"]},
        "'k' asks for column 'agee'.*did you mean 'age'",
    ),
    "truth": ({"age": [1, 2, 3]}, {"k": [True]}, "'k' asks for column True"),
    "a list inside": ({"age": [1, 2, 3]}, {"k": [["age"]]}, r"'k' asks for column \['age'\]"),
    "no list": (
        {"age": [1, 2, 3]},
        {"k": "age"},
        "'k' must be given a list of columns, but got 'age'",
    ),
    "a number": ({"age": [1, 2, 3]}, {"k": 0}, "'k' must be given a list of columns, but got 0"),
    "columns": (
        {"a": [1, 2, 3], "b": [1, 2, 4]},
        ["a", "b"],
        "lists names of columns.*one list of columns per client",
    ),
    "same clients": ({"a": [1, 2, 3], "b": [1, 2, 4]}, ["k", "k"], "Client names must differ"),
    "many clients": ({"a": [1, 2, 3]}, ["k", "h"], "2 clients cannot share 1 columns"),
    "no client": ({"a": [1, 2, 3]}, [], "There is no client"),
}


@pytest.mark.parametrize(("table", "clients", "words"), BAD.values(), ids=BAD.keys())
def test_bad_frames(make: MakeFrame, table: dict[str, Any], clients: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        mtcd.split(make(table), [0, 1, 0], clients)


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(DataError, match="Two columns are named '1'"):
        mtcd.split({1: [1, 2], "1": [3, 4]}, [0, 1], 2)
    pd = pytest.importorskip("pandas")
    with pytest.raises(DataError, match="Two columns are named 'a'"):
        mtcd.split(pd.DataFrame(np.eye(3), columns=["a", "b", "a"]), [0, 1, 0], 3)


def test_a_lazy_frame_is_to_be_collected_and_decimals_are_numbers() -> None:
    frame = pl.DataFrame({"a": [decimal.Decimal("1.5"), decimal.Decimal("2.5")]})
    with pytest.raises(DataError, match=r"collect\(\)"):
        mtcd.split(frame.lazy(), [0, 1], 1)
    assert mtcd.split(frame, [0, 1], 1).blocks[0].ravel().tolist() == [1.5, 2.5]


# --- predicting ----------------------------------------------------------------------------------


@pytest.mark.parametrize("standardise", [False, True])
def test_predictions_go_by_name(make: MakeFrame, standardise: bool) -> None:
    """In the frame that was split, with columns in another order, with further ones."""
    frame = make(TABLE)
    data = mtcd.split(frame, Y, {"h": ["stay", "age"], "b": ["weight", "dose", "score"]})
    run = trained(data, standardise=standardise)
    expected = run.decision(data)
    assert expected == pytest.approx(run.decision(X))
    further = {"name": ["?"] * 30, **{name: TABLE[name] for name in reversed(NAMES)}}
    for new in (TABLE, {name: TABLE[name] for name in reversed(NAMES)}, further):
        np.testing.assert_allclose(run.predict(make(new)), expected)
    assert run.column_names == tuple(NAMES)
    by_name = dict(zip(run.column_names, run.coefficients, strict=True))
    assert max(by_name, key=lambda name: abs(by_name[name])) == "weight"


def test_bad_frames_to_predict_are_refused(make: MakeFrame) -> None:
    run = trained(mtcd.split(make(TABLE), Y, 2))
    fewer = {name: TABLE[name] for name in NAMES[1:4]}
    with pytest.raises(
        DataError, match="no column 'age', 'weight', which this model was trained on"
    ):
        run.predict(make(fewer))
    with pytest.raises(DataError, match="no column 'age'.*did you mean 'Age'"):
        run.predict(make({"Age": TABLE["age"], **fewer, "weight": TABLE["weight"]}))
    # of the first, if of several
    with pytest.raises(DataError, match="no column 'age', 'weight'.*did you mean 'Age'"):
        run.predict(make({"Age": TABLE["age"], **fewer}))
    with pytest.raises(DataError, match="no column 'age'.*; they also have: zzzz$"):
        run.predict(make({"zzzz": TABLE["age"], **fewer}))
    with pytest.raises(DataError, match=r"Column 'age' \(text\) does not hold numbers"):
        run.predict(make({**TABLE, "age": ["1"] * 30}))
    with pytest.raises(DataError, match="Column 'dose' of client 'client_0' is missing in row 30"):
        run.predict(make({**TABLE, "dose": [*TABLE["dose"][:-1], None]}))
