"""New samples for a model whose clients prepare their columns: what is accepted, and as what."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import mtcd
from mtcd.core.errors import DataError
from mtcd.models.predicted import predicted_columns, true_labels
from mtcd.models.samples import check_unambiguous, prepared_blocks, raw_frames

RNG = np.random.default_rng(1)
X = RNG.standard_normal((12, 4))
CLIENTS = {"lab": ["c", "a"], "bank": ["d"], "shop": ["b"]}
TABLE = pl.DataFrame(X, schema=["a", "b", "c", "d"])
SCALED = (X - X.mean(axis=0)) / X.std(axis=0)
BLOCKS = [SCALED[:, [2, 0]], SCALED[:, [3]], SCALED[:, [1]]]


def data(clients: dict[str, list[str]] = CLIENTS, **settings: Any) -> mtcd.VerticalData:
    return mtcd.split(TABLE, X[:, 0] > 0, clients, **settings)


def blocks_of(given: Any) -> list[np.ndarray]:
    trained = data(prepare="auto")
    assert trained.preparations is not None
    given = trained if isinstance(given, str) and given == "itself" else given
    return [
        np.asarray(block) for block in prepared_blocks(trained.preparations, trained.clients, given)
    ]


# Polars starts threads: not before the forks of `make mutants`
FORMS: dict[str, Callable[[], Any]] = {
    "a matrix, in the order of the table": lambda: X,
    "lists": X.tolist,
    "a table": lambda: TABLE,
    "a table per client": lambda: {
        "lab": TABLE.select("a", "c"),
        "bank": TABLE.select("b", "d"),
        "shop": TABLE,
    },
    "vertical data with the columns as given": data,
    "the data itself": lambda: "itself",
    "vertical data prepared anew": lambda: data(prepare="auto"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_client_gets_its_columns_in_its_order(form: str) -> None:
    for found, expected in zip(blocks_of(FORMS[form]()), BLOCKS, strict=True):
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (lambda: X[:, :3], r"the 4 columns that the clients hold.* of shape \(12, 3\)"),
        (lambda: X[0], r"of shape \(4,\)"),
        (lambda: X.reshape(3, 4, 4), r"of shape \(3, 4, 4\)"),
        (lambda: "a text", "not a table with named columns, a matrix"),
        (lambda: TABLE.select("a", "b", "c"), "'d'"),
        (lambda: {"lab": TABLE, "bank": TABLE[:5], "shop": TABLE}, "not equally many"),
        (lambda: {"a": X[:5, 0], "b": X[:, 1], "c": X[:, 2], "d": X[:, 3]}, "not equally long"),
        (lambda: data(CLIENTS | {"lab": ["a", "c"]}), "split differently"),
        (lambda: data({"lab": ["c", "a"], "bank": ["d"], "pub": ["b"]}), "split differently"),
    ],
)
def test_what_does_not_fit_is_refused(given: Callable[[], Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        blocks_of(given())


def test_one_table_cannot_stand_for_two_columns_of_one_name() -> None:
    check_unambiguous([["a", "c"], ["d", "b"]])
    with pytest.raises(DataError, match="Two clients have a column 'b'"):
        check_unambiguous([["a", "b"], ["c", "b"]])


def test_a_model_of_two_columns_of_one_name_takes_no_table_of_all_clients() -> None:
    """But one per client: in one for all, a column would count twice."""
    columns = (("a", "b"), ("a", "d"))
    prepared: Any = SimpleNamespace(inputs=columns)
    own = {"lab": TABLE.select("a", "b"), "bank": TABLE.select("a", "d")}
    assert len(raw_frames(prepared, ("lab", "bank"), own)) == 2
    with pytest.raises(DataError, match="Two clients have a column 'a'"):
        raw_frames(prepared, ("lab", "bank"), TABLE)

    plain = replace(mtcd.split(X, X[:, 0] > 0, {"lab": [0, 1], "bank": [2, 3]}), columns=columns)
    run = mtcd.train(plain, mtcd.Glm("logistic"), stop=mtcd.Stop(iterations=2))
    assert len(run.decision(X)) == 12
    with pytest.raises(DataError, match="Two clients have a column 'a'"):
        run.decision(TABLE)


def test_all_columns_that_a_table_does_not_have_are_named() -> None:
    with pytest.raises(DataError, match="'a'.*'d'"):
        blocks_of(TABLE.select("b", "c"))


def test_new_samples_need_as_many_labels() -> None:
    assert true_labels([1.0, 1.0], (), 2).tolist() == [1.0, 1.0]
    assert true_labels(["a", "b"], ("a", "b"), 2).tolist() == [0, 1]
    for labels, classes, says in (
        ([1.0], (), "2 samples, but 1 labels"),
        (["a", "b"], (), "The labels are texts"),
        ([np.nan, 1.0], (), "label"),
    ):
        with pytest.raises(DataError, match=says):
            true_labels(labels, classes, 2)


def test_columns_of_a_prediction() -> None:
    two, three = np.array([0.5, -1.0]), np.array([[0.2, 0.3, 0.5]])
    assert list(predicted_columns(two, (), two, None)) == ["prediction"]
    # a model that gives no probabilities
    columns = predicted_columns(np.array([1.0, 0.0]), (0.0, 1.0), two, None)
    np.testing.assert_array_equal(columns["score"], two)
    assert list(predicted_columns(np.array([2]), (0, 1, 2), three, None)) == ["prediction"]
    columns = predicted_columns(np.array([2]), (0.0, 1.5, "x"), three, three)
    assert list(columns) == ["prediction", "p_0", "p_1.5", "p_x"]
    assert [float(columns[name][0]) for name in list(columns)[1:]] == three[0].tolist()
