"""Splitting matrices by column, scaling them, and refusing what cannot be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from mtcd.core.errors import DataError
from mtcd.data.shares import check_owned_once, even_shares
from mtcd.data.splitting import split
from mtcd.data.standardise import Scaling, standardise
from mtcd.data.vertical import VerticalData

LABELS = [0, 1, 1, 0]


def matrix(samples: int, columns: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.random.default_rng(seed).standard_normal((samples, columns))


# --- partitions ----------------------------------------------------------------------------------


@given(st.integers(1, 60), st.data())
def test_even_shares_cover_all_columns_once_in_order(columns: int, data: st.DataObject) -> None:
    clients = data.draw(st.integers(1, columns))
    names = [f"c{j}" for j in range(columns)]
    shares = even_shares(names, clients)
    assert list(shares) == [f"client_{k}" for k in range(clients)]
    assert [column for held in shares.values() for column in held] == names
    sizes = [len(held) for held in shares.values()]
    assert max(sizes) - min(sizes) <= 1


@given(st.integers(1, 12), st.booleans(), st.data())
def test_blocks_put_together_are_the_matrix(
    columns: int, sparse: bool, data: st.DataObject
) -> None:
    """For even splits and for any assignment of columns, in any order, to named clients."""
    X = matrix(5, columns) * (matrix(5, columns, seed=1) > 0)
    order = data.draw(st.permutations(range(columns)))
    cut = data.draw(st.integers(1, columns))
    named = {"a": order[:cut], **({"b": order[cut:]} if cut < columns else {})}
    given_matrix = sp.coo_array(X) if sparse else X
    for clients, expected in ((cut, X), (named, X[:, order])):
        result = split(given_matrix, range(5), clients)
        assert all(sp.issparse(block) == sparse for block in result.blocks)
        blocks = [block.toarray() if sparse else block for block in result.blocks]
        np.testing.assert_array_equal(np.hstack(blocks), expected)
        assert result.features == columns
        assert result.samples == 5


@given(st.integers(1, 12), st.data())
def test_dense_neighbours_are_views_and_nothing_is_copied(
    columns: int, data: st.DataObject
) -> None:
    X = np.asfortranarray(matrix(4, columns))
    blocks = split(X, LABELS, data.draw(st.integers(1, columns))).blocks
    assert all(np.shares_memory(block, X) and block.flags.f_contiguous for block in blocks)


def test_row_major_input_is_copied_once_into_one_column_major_matrix() -> None:
    X = matrix(4, 6)
    blocks = split(X, LABELS, 3).blocks
    assert not any(np.shares_memory(block, X) for block in blocks)
    assert all(block.base is blocks[0].base and block.flags.f_contiguous for block in blocks)


def test_columns_by_name_and_by_position() -> None:
    X = matrix(4, 3)
    data = split(X, LABELS, {"p": ["u", 2], "q": ["v"]}, columns=["u", "v", "w"])
    assert data.columns == (("u", "w"), ("v",))
    np.testing.assert_array_equal(data.blocks[0], X[:, [0, 2]])
    assert data.blocks[0].flags.f_contiguous


def test_sparse_blocks_are_rows_compressed() -> None:
    assert split(sp.eye_array(4), LABELS, 2).blocks[0].format == "csr"
    assert split(sp.eye_array(4), LABELS, {"a": [3, 0]}).blocks[0].format == "csr"


def test_the_number_of_clients_may_come_from_numpy() -> None:
    assert len(split(np.eye(4), LABELS, np.int64(3)).clients) == 3


# --- fingerprints --------------------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_equal_data_has_equal_fingerprints_and_any_change_another(sparse: bool) -> None:
    def fingerprint(X: Any, y: Any = LABELS, clients: int = 2) -> str:
        return split(sp.csr_array(X) if sparse else X, y, clients).fingerprint

    X = matrix(4, 4)
    changed = X.copy()
    changed[3, 3] = np.nextafter(changed[3, 3], 9)
    prints = [
        fingerprint(X),
        fingerprint(changed),
        fingerprint(X, y=[0, 1, 1, 1]),
        fingerprint(X, clients=4),
        fingerprint(X[:, ::-1]),
    ]
    assert len(set(prints)) == len(prints)
    assert fingerprint(np.asfortranarray(X.copy())) == prints[0]


def test_a_matrix_without_any_entry_has_a_fingerprint() -> None:
    assert split(sp.csr_array((4, 2)), LABELS, 1).fingerprint


# --- refusals ------------------------------------------------------------------------------------

BAD_SPLITS = {
    "too many": (
        np.eye(4),
        LABELS,
        5,
        "5 clients cannot share 4 columns.*Ask for 4 clients or fewer",
    ),
    "zero": (np.eye(4), LABELS, 0, "1 or more, but is 0"),
    "negative": (np.eye(4), LABELS, -1, "1 or more, but is -1"),
    "a fraction": (np.eye(4), LABELS, 2.0, "whole number.*2.0"),
    "a truth": (np.eye(4), LABELS, True, "whole number.*True"),
    "nobody": (np.eye(4), LABELS, {}, "There is no client"),
    "nothing": (np.eye(4), LABELS, {"a": [0], "b": []}, "Client 'b' holds no column"),
    "nothing sparse": (sp.eye_array(4), LABELS, {"a": [0], "b": []}, "Client 'b' holds no column"),
    "unknown": (np.eye(4), LABELS, {"a": ["x9"]}, "Client 'a' asks for column 'x9'"),
    "out of range": (np.eye(4), LABELS, {"a": [4]}, "Client 'a' asks for column 4"),
    "below range": (np.eye(4), LABELS, {"a": [-1]}, "Client 'a' asks for column -1"),
    "both": (np.eye(4), LABELS, {"a": [0], "b": [1, 0]}, "'x0' is given to both 'a' and 'b'"),
    "twice": (np.eye(4), LABELS, {"a": [0, "x0"]}, "'x0' is given twice to 'a'"),
    "texts": ([["u", "v"]] * 4, LABELS, 1, "not a matrix of numbers"),
    "ragged": ([[1, 2], [3]], [0, 1], 1, "not a matrix of numbers"),
    "a vector": ([1, 2, 3, 4], LABELS, 1, r"must be a matrix.*1 dimension\(s\)"),
    "few labels": (np.eye(4), [0, 1, 0], 1, "brings 4 rows.*3 labels"),
    "one label": (np.eye(4), 1, 1, "have 0 dimensions"),
    "label matrix": (np.eye(4), np.eye(4), 1, "have 2 dimensions"),
    "ragged labels": (np.eye(3), [0, [1], 1], 1, "labels are not one number"),
    "no samples": (np.empty((0, 2)), [], 1, "no samples"),
    "nan label": (np.eye(4), [0, 1, np.nan, 1], 1, "label of row 3 is missing"),
    "inf label": (np.eye(4), [0, np.inf, 1, 1], 1, "label of row 2 is inf"),
    "no label": (np.eye(4), ["u", "v", "u", None], 1, "label of row 4 is missing"),
    "constant": (np.eye(4), [1, 1, 1, 1], 1, "All 4 labels are 1"),
    "constant text": (np.eye(4), ["u"] * 4, 1, "All 4 labels are u"),
}


@pytest.mark.parametrize(("X", "y", "clients", "words"), BAD_SPLITS.values(), ids=BAD_SPLITS.keys())
def test_bad_splits(X: Any, y: Any, clients: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        split(X, y, clients)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "missing"), (np.inf, "infinite"), (-np.inf, "infinite")]
)
def test_values_that_are_no_numbers_are_named(sparse: bool, value: float, word: str) -> None:
    X = np.eye(4)
    X[2, 3] = value
    with pytest.raises(DataError, match=f"Column 'x3' of client 'client_1' is {word} in row 3"):
        split(sp.csr_array(X) if sparse else X, LABELS, 2)


def test_column_names_must_fit_and_differ() -> None:
    with pytest.raises(DataError, match="has 4 columns, but 2 column names"):
        split(np.eye(4), LABELS, 2, columns=["a", "b"])
    with pytest.raises(DataError, match="Two columns are named 'b'"):
        split(np.eye(4), LABELS, 2, columns=["a", "b", "c", "b"])


def test_client_names_must_differ() -> None:
    with pytest.raises(DataError, match="Client names must differ"):
        VerticalData(("a", "a"), (("x",), ("z",)), (np.eye(2)[:, :1],) * 2, np.array([0, 1]))


def test_owned_once_accepts_a_partition() -> None:
    check_owned_once({"a": ["x", "z"], "b": ["w"]})


# --- scaling -------------------------------------------------------------------------------------


def test_standardised_columns_agree_with_scikit_learn() -> None:
    X = matrix(50, 6) * [1, 10, 0.1, 5, 1e6, 1e-6] + [0, 3, -7, 100, 1e6, 0]
    data = split(X, range(50), 4)
    scaled, scaling = standardise(data)
    np.testing.assert_allclose(
        np.hstack(scaled.blocks), StandardScaler().fit_transform(X), atol=1e-12
    )
    np.testing.assert_array_equal(np.hstack(data.blocks), X)  # the original is as it was
    assert scaled.columns == data.columns
    assert scaled.notes == ()
    assert all(block.flags.f_contiguous for block in scaled.blocks)
    new = split(matrix(3, 6, seed=5), range(3), 4)
    expected = StandardScaler().fit(X).transform(np.hstack(new.blocks))
    np.testing.assert_allclose(np.hstack(scaling.apply(new.blocks)), expected, rtol=1e-9)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array])
def test_held_out_samples_are_brought_to_the_scale_of_those_that_are_trained_on(
    convert: Any,
) -> None:
    """By the means and deviations of the latter alone."""
    X = np.random.default_rng(5).normal(3.0, [1.0, 4.0, 0.2, 9.0], (50, 4))
    data = split(convert(X), range(50), 2).holdout(0.3, seed=1)
    scaled, _ = standardise(data)
    for k, (block, held) in enumerate(zip(data.blocks, data.test.blocks, strict=True)):
        known, new = (
            np.asarray(one.todense() if sp.issparse(one) else one) for one in (block, held)
        )
        mean = known.mean(axis=0) if convert is np.asarray else 0.0
        found = scaled.test.blocks[k]
        found = np.asarray(found.todense() if sp.issparse(found) else found)
        np.testing.assert_allclose(found, (new - mean) / known.std(axis=0), rtol=1e-9)


def test_constant_columns_become_zero_and_are_noted() -> None:
    X = matrix(7, 3)
    X[:, 1] = 0.1  # its mean is not exactly 0.1
    data, scaling = standardise(split(X, range(7), 3))
    assert data.blocks[1].tolist() == [[0.0]] * 7
    assert scaling.scales[1].tolist() == [1.0]
    assert data.notes == ("Columns that are constant became 0: x1 (client_1).",)


def test_sparse_blocks_are_not_centred() -> None:
    X = sp.random_array((40, 6), density=0.3, rng=np.random.default_rng(3), format="csr")
    X.data[:] += 1
    data, scaling = standardise(split(X, range(40), 2))
    assert all(sp.issparse(block) for block in data.blocks)
    expected = StandardScaler(with_mean=False).fit_transform(X).toarray()
    np.testing.assert_allclose(np.hstack([block.toarray() for block in data.blocks]), expected)
    np.testing.assert_allclose(
        np.hstack(scaling.apply(split(X.toarray(), range(40), 2).blocks)), expected
    )
    assert data.notes[0].startswith(
        "Sparse columns are divided by their deviations, but not centred: those of client_"
    )
    constant, _ = standardise(split(sp.csr_array(np.full((4, 2), 0.1)), LABELS, 1))
    assert constant.blocks[0].toarray() == pytest.approx(0.1)
    _, dense = standardise(split(X.toarray(), range(40), 2))
    with pytest.raises(DataError, match=r"would make sparse features dense: give \.toarray\(\)"):
        dense.apply(split(X, range(40), 2).blocks)


def test_scaling_other_clients_or_columns_is_refused() -> None:
    scaling = Scaling((np.zeros(2), np.zeros(1)), (np.ones(2), np.ones(1)))
    with pytest.raises(DataError, match="for 2 clients, but there are 1 blocks"):
        scaling.apply([np.eye(2)])
    with pytest.raises(DataError, match="number 1 was scaled with 1 columns"):
        scaling.apply([np.eye(2), np.eye(2)])


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_other_number_place_or_label_gives_another_fingerprint(order: str) -> None:
    X, y = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 3.0]], order=order), np.array([0.0, 1.0])
    seen = {split(X, y, clients=1).fingerprint, split(X, y, clients=3).fingerprint}
    seen |= {
        split(X[::-1], y, clients=1).fingerprint,
        split(X[:, [1, 0, 2]], y, clients=1).fingerprint,
    }
    seen |= {split(X, y[::-1], clients=1).fingerprint, split(X + 1e-15, y, clients=1).fingerprint}
    assert len(seen) == 6
    assert split(X.copy(order="C"), y, clients=1).fingerprint in seen
