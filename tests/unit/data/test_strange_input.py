"""Frames, tensors and graphs of unusual kinds are taken for what they mean, or refused in words
that help."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pytest

torch = pytest.importorskip("torch")

import mtcd  # noqa: E402
from mtcd.core.errors import DataError, NetworkError  # noqa: E402
from mtcd.data.frames import as_frame  # noqa: E402

Y = [0.0, 1.0, 0.0, 2.0]
DAYS = [dt.datetime(2020, 1, day) for day in (1, 2, 3, 4)]


def columns_of(X: Any, clients: Any) -> Any:
    return mtcd.split(X, Y, clients).columns


TAKEN = {
    "decimals": pl.DataFrame({"a": [Decimal("1.5"), Decimal("2.5"), Decimal("0"), Decimal("-1")]}),
    "floats of pandas": pd.DataFrame({"a": pd.array([1.5, 2.5, 0, -1], "Float64")}),
    "sparse column": pd.DataFrame({"a": pd.arrays.SparseArray([1.5, 2.5, 0, -1])}),
    "structured array": np.array([(1.5,), (2.5,), (0,), (-1,)], dtype=[("a", float)]),
    "tensor with gradients": torch.tensor([[1.5], [2.5], [0], [-1]], requires_grad=True),
    "tensor of 16 bits": torch.tensor([[1.5], [2.5], [0], [-1]], dtype=torch.bfloat16),
    "columns that are tensors": {"a": torch.tensor([1.5, 2.5, 0, -1], requires_grad=True)},
}


@pytest.mark.parametrize("X", TAKEN.values(), ids=TAKEN.keys())
def test_numbers_of_many_kinds_are_taken(X: Any) -> None:
    data = mtcd.split(X, Y, 1)
    assert data.blocks[0].ravel().tolist() == [1.5, 2.5, 0, -1]
    run = mtcd.train(
        data, mtcd.Glm("ridge", alpha=1.0), "path", mtcd.STCD(), mtcd.Stop(iterations=3)
    )
    np.testing.assert_array_equal(run.predict(X), run.predict(data))


REFUSED = {
    "dates of pandas": (
        pd.DataFrame({"a": DAYS, "b": DAYS}),
        r"Columns 'a' \(dates\), 'b' \(dates\) do not",
    ),
    "dates with a zone": (
        pd.DataFrame({"a": pd.to_datetime(DAYS).tz_localize("UTC")}),
        r"Column 'a' \(dates\)",
    ),
    "dates of polars": (pl.DataFrame({"a": DAYS}), r"Column 'a' \(dates\)"),
    "array of dates": (np.array(DAYS, dtype="M8[us]").reshape(4, 1), "are dates or durations"),
    "array of durations": (np.arange(4).astype("m8[s]").reshape(4, 1), "are dates or durations"),
    "durations": (pl.DataFrame({"a": [dt.timedelta(1)] * 4}), r"Column 'a' \(durations\)"),
    "times": (pl.DataFrame({"a": [dt.time(1)] * 4}), r"Column 'a' \(times of day\)"),
    "structs": (pl.DataFrame({"a": [{"x": 1.0}] * 4}), r"Column 'a' has the shape \(4, 1\)"),
    "lists": (pl.DataFrame({"a": [[1, 2]] * 4}), r"Column 'a'"),
    "categories": (
        pl.DataFrame({"a": pl.Series(list("uvuv"), dtype=pl.Categorical)}),
        r"Column 'a' \(categories\)",
    ),
    "categories that are numbers": (
        pd.DataFrame({"a": pd.Categorical([1.5, 2.5, 0, -1])}),
        r"Column 'a' \(categories\)",
    ),
    "missing in Int64": (
        pd.DataFrame({"a": pd.array([1, None, 3, 4], "Int64")}),
        "'a' .* missing in row 2",
    ),
    "missing category": (
        pd.DataFrame({"a": pd.Categorical([1, None, 1, 2])}),
        r"Column 'a' \(categories\)",
    ),
    "tensor without values": (torch.ones(4, 1, device="meta"), "'meta', so it has no values"),
    "sparse tensor": (torch.ones(4, 1).to_sparse(), "tensor is sparse.*to_dense"),
    "lazy frame": (pl.LazyFrame({"a": Y}), r"collect\(\)"),
    "series": (pl.Series(Y), "must be a matrix"),
}


@pytest.mark.parametrize(("X", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_no_number_is_refused(X: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        mtcd.split(X, Y, 1)


LABELS = [
    pd.DataFrame({"y": Y}),
    pl.DataFrame({"y": Y}),
    {"y": Y},
    np.array(Y)[:, None],
    torch.tensor(Y).requires_grad_(),
]


@pytest.mark.parametrize("y", LABELS)
def test_labels_in_one_column(y: Any) -> None:
    assert mtcd.split(np.eye(4), y, 2).labels.tolist() == Y


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (pd.DataFrame({"y": Y, "z": Y}), r"2 columns \('y', 'z'\): give one"),
        (pl.LazyFrame({"y": Y}), r"collect\(\)"),
        ("y", r"text 'y': give the labels themselves, frame\['y'\]"),
        (DAYS, "labels are of type"),
    ],
)
def test_labels_that_are_refused(y: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        mtcd.split(np.eye(4), y, 2)


# --- which columns -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "X", [np.eye(4), pd.DataFrame(np.eye(4), columns=list("abcd")), pd.DataFrame(np.eye(4))]
)
def test_slices_and_ranges_of_positions(X: Any) -> None:
    expected = mtcd.split(X, Y, {"h": [0, 1, 2], "k": [3]}).columns
    for first, second in (
        (slice(0, 3), slice(3, None)),
        (slice(-1), slice(-1, None)),
        (range(3), range(3, 4)),
    ):
        assert columns_of(X, {"h": first, "k": second}) == expected
        assert columns_of(X, [first, second]) == expected


@pytest.mark.parametrize(
    ("clients", "words"),
    [
        ({"h": slice("a", "b")}, "'h' is given slice.*by position"),
        ({"h": slice(0, 3), "k": slice(2, 4)}, "given to both 'h' and 'k'"),
        ({"h": slice(0, 3), "k": slice(9, None)}, "'k' holds no column"),
        ({"h": slice(0, 3, 0)}, "'h' is given slice"),
        ({"h": np.array([True, False, True, True])}, r"flatnonzero\(mask\)"),
    ],
)
def test_slices_that_are_refused(clients: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        mtcd.split(np.eye(4), Y, clients)


def test_names_of_several_parts_are_joined() -> None:
    labels = pd.MultiIndex.from_product([["blood", "urine"], ["ph", "salt"]])
    frame = pd.DataFrame(np.eye(4), columns=labels)
    assert columns_of(frame, 2) == (("blood.ph", "blood.salt"), ("urine.ph", "urine.salt"))
    data = mtcd.split(frame, Y, {"h": [("urine", "salt"), "blood.ph"]})
    assert data.columns == (("urine.salt", "blood.ph"),)
    run = mtcd.train(
        data, mtcd.Glm("ridge", alpha=1.0), "path", mtcd.STCD(), mtcd.Stop(iterations=3)
    )
    np.testing.assert_array_equal(run.predict(frame), run.predict(data))


# --- columns as series of polars -----------------------------------------------------------------

SERIES = {
    "numbers": ([1.5, None, 2.0], pl.Float64),
    "whole": ([1, 2, 3], pl.Int64),
    "texts": (["u", None, "v"], pl.String),
    "dates": ([DAYS[0], None, DAYS[1]], pl.Datetime),
    "truths": ([True, False, True], pl.Boolean),
}


@pytest.mark.parametrize("make", [dict, pl.DataFrame, pd.DataFrame])
@pytest.mark.parametrize(("values", "kind"), SERIES.values(), ids=SERIES.keys())
def test_a_column_as_a_series(make: Any, values: list[Any], kind: Any) -> None:
    frame = as_frame(make({"a": values}))
    series = frame.series(0)
    assert (series.name, series.dtype, series.to_list()) == ("a", kind, values)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pd.Categorical(["u", None, "v"]), ["u", None, "v"]),
        (pd.array([1, None, 3], "Int64"), [1, None, 3]),
        (pd.array([True, None, False], "boolean"), [True, None, False]),
        (pd.to_datetime([DAYS[0], None, DAYS[1]]).tz_localize("UTC"), [True, None, True]),
        (np.array([1, "u", None], dtype=object), [1, "u", None]),
    ],
)
def test_a_column_of_pandas_as_a_series(column: Any, values: list[Any]) -> None:
    frame = as_frame(pd.DataFrame({"a": column}))
    found = frame.series(0).to_list()
    assert [
        value if values[0] is not True or value in (None, False) else True for value in found
    ] == values


# --- graphs --------------------------------------------------------------------------------------

EDGES = [(0, 1), (1, 2), (2, 3)]
NEAR = ((1,), (0, 2), (1, 3), (2,))


@pytest.mark.parametrize(
    ("graph", "word"),
    [
        (nx.DiGraph(EDGES), "directed"),
        (nx.MultiDiGraph([*EDGES, (0, 1)]), "directed"),
        (nx.DiGraph([*EDGES, *((b, a) for a, b in EDGES)]), ""),
        (nx.MultiGraph([*EDGES, (0, 1), (1, 0)]), ""),
        (nx.from_edgelist(EDGES), ""),
    ],
)
def test_directions_and_repeated_edges(graph: nx.Graph, word: str) -> None:
    data = mtcd.split(np.eye(4), Y, 4)
    assert mtcd.network_from_edges(graph, data.clients).neighbours == NEAR
    run = mtcd.train(
        data, mtcd.Glm("ridge", alpha=1.0), graph, mtcd.STCD(), mtcd.Stop(iterations=2)
    )
    assert any("directed" in note for note in run.notes) == bool(word)


@pytest.mark.parametrize(
    ("weights", "noted"), [((2.0, 0.5, 1.0), True), ((1.0, 1.0, 1.0), False), (([1], 2, 3), True)]
)
def test_weights_are_ignored_with_a_note(weights: Any, noted: bool) -> None:
    graph = nx.Graph()
    graph.add_weighted_edges_from([(a, b, w) for (a, b), w in zip(EDGES, weights, strict=True)])
    network = mtcd.network_from_edges(graph, list("abcd"))
    assert network.neighbours == NEAR
    assert any("weights, which walks do not use" in note for note in network.notes) == noted


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (np.eye(4), "ndarray is no list of edges: give networkx.from_numpy_array"),
        ({0: [1], 1: [2]}, r"dict is no list of edges: give networkx.Graph\(mapping\)"),
        ([(0, 1, 2.0)], r"pair of clients, got \(0, 1, 2.0\); leave weights out"),
        ([0, 1], "pair of clients, got 0"),
    ],
)
def test_what_is_no_graph_is_refused(given: Any, words: str) -> None:
    with pytest.raises(NetworkError, match=words):
        mtcd.network_from_edges(given, list("abcd"))


# --- samples of split networks -------------------------------------------------------------------


def test_features_of_split_networks() -> None:
    features = {
        "a": torch.eye(4, requires_grad=True),
        "b": pl.DataFrame({"u": [1, 2, 3, 4], "v": [0.5] * 4}),
    }
    data = mtcd.VerticalDataset(features, [0, 1, 0, 1])
    assert not data.features["a"].requires_grad
    assert data.shapes == {"a": (4,), "b": (2,)}
    with pytest.raises(DataError, match=r"Column 'u' \(text\) does not hold numbers: client 'a'"):
        mtcd.VerticalDataset({"a": pd.DataFrame({"u": list("uvuv")})}, [0, 1, 0, 1])
