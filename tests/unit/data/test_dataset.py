"""Samples for split networks: arrays, tensors and data sets alike, taken apart the same way,
refused when unusable."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import mtcd
from mtcd.core.errors import ConfigError, DataError

torch = pytest.importorskip("torch")
LABELS = [0, 1, 1, 0]


class Lazy:
    """A data set that is read sample by sample, and counts how often."""

    def __init__(self, values: Any) -> None:
        self.values, self.read = values, 0

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: int) -> Any:
        self.read += 1
        return self.values[place]


def numbered(samples: int) -> mtcd.VerticalDataset:
    """Each kind of features; all tell the number of the sample, and so does the label."""
    values = np.arange(samples, dtype=np.float32)
    features = {
        "rows": np.stack([values, -values], axis=1),
        "pictures": torch.from_numpy(values).reshape(-1, 1, 1, 1).expand(-1, 3, 4, 2),
        "lazy": Lazy([np.full((2, 2), value) for value in values]),
    }
    return mtcd.VerticalDataset(features, values)


def numbers(data: mtcd.VerticalDataset) -> list[int]:
    """Which samples these are, if all clients and the labels agree on it."""
    found = [int(label) for label in data.labels]
    for values in data.features.values():
        assert len(values) == data.samples
        assert [int(np.asarray(values[j]).ravel()[0]) for j in range(len(values))] == found
    return found


# --- what it is made from


def test_features_of_any_kind_are_kept_and_their_shapes_known() -> None:
    data = numbered(5)
    assert (data.clients, data.samples) == (("rows", "pictures", "lazy"), 5)
    assert data.shapes == {"rows": (2,), "pictures": (3, 4, 2), "lazy": (2, 2)}
    assert isinstance(data.features["pictures"], torch.Tensor)
    assert isinstance(data.features["lazy"], Lazy)
    assert numbers(data) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "labels",
    [[0, 1, 2, 1], np.array([0.5, 1, 2, 3]), torch.tensor([0, 1, 1, 0]), ["a", "b", "b", "a"]],
)
def test_labels_of_any_kind_become_an_array(labels: Any) -> None:
    data = mtcd.VerticalDataset({"a": [[1.0], [2], [3], [4]]}, labels)
    assert isinstance(data.labels, np.ndarray)
    assert data.labels.tolist() == list(getattr(labels, "tolist", lambda: labels)())
    assert isinstance(data.features["a"], np.ndarray)


def test_a_table_becomes_dense_single_precision() -> None:
    X = np.array([[0, 1.5, 0], [2, 0, 0], [0, 0, 3], [0.1, 0, 0]])
    table = mtcd.split(sp.csr_array(X), LABELS, {"a": ["x1", "x0"], "b": ["x2"]})
    for made in (table, mtcd.split(X, LABELS, {"a": ["x1", "x0"], "b": ["x2"]})):
        data = mtcd.VerticalDataset.from_table(made)
        assert {values.dtype for values in data.features.values()} == {np.dtype(np.float32)}
        np.testing.assert_array_equal(data.features["a"], X[:, [1, 0]].astype(np.float32))
        np.testing.assert_array_equal(data.features["b"], X[:, [2]].astype(np.float32))
        assert data.labels.tolist() == LABELS
    with pytest.raises(
        DataError, match="client 'client_0' are missing.* in 1 row.*: 2; by column: 'x0' "
    ):
        mtcd.VerticalDataset.from_table(mtcd.split([[1.0], [1e90], [0], [0]], LABELS, 1))


# --- what is refused

FINE = np.ones((4, 2))


def spoilt(value: float, dtype: Any = float) -> Any:
    values = np.ones((4, 2, 3), dtype=dtype)
    values[2, 1, 1] = value
    return values


@pytest.mark.parametrize(
    ("features", "labels", "says"),
    [
        ({}, LABELS, "no client"),
        ([FINE], LABELS, "must be a mapping"),
        ({3: FINE}, LABELS, "must be a text, but is 3"),
        ({"a": FINE, "b": FINE[:3]}, LABELS, "'b' brings 3 samples, but there are 4 labels"),
        ({"a": FINE, "b": Lazy([1, 2])}, LABELS, "'b' brings 2 samples"),
        ({"a": np.ones((0, 2))}, [], "no samples"),
        ({"a": np.ones((4, 0))}, LABELS, r"'a' holds no feature.*\(4, 0\)"),
        ({"a": np.float64(3)}, LABELS, "'a' brings a single number"),
        ({"a": 7}, LABELS, "'a' brings a int"),
        ({"a": iter(FINE)}, LABELS, "'a' brings a "),
        ({"a": sp.csr_array(FINE)}, LABELS, "'a' are sparse"),
        ({"a": [[1, 2], [3], [4], [5]]}, LABELS, "'a' are no array"),
        ({"a": [["x"]] * 4}, LABELS, "'a' are of type <U1"),
        ({"a": FINE * 1j}, LABELS, "'a' are of type complex"),
        ({"a": np.ma.masked_less(FINE, 0)}, LABELS, "'a' are of type"),
        ({"b": FINE, "a": spoilt(np.nan)}, LABELS, r"client 'a' are missing.* in 1 row\(s\): 3\. "),
        (
            {"a": pd.DataFrame({"u": FINE[:, 0], "v": [1, 2, np.nan, 4]})},
            LABELS,
            r"row\(s\): 3; by column: 'v' \(1\)",
        ),
        ({"a": spoilt(-np.inf, np.float16)}, LABELS, r"client 'a' .* in 1 row\(s\): 3\. "),
        ({"a": spoilt(1e39)}, LABELS, r"client 'a' .* in 1 row\(s\): 3\. "),
        ({"a": torch.from_numpy(spoilt(np.nan))}, LABELS, r"client 'a' .* in 1 row\(s\): 3\. "),
        ({"a": FINE}, [0, 1, None, 1], "label of row 3 is missing"),
        ({"a": FINE}, [0, 1, np.nan, 1], "label of row 3 is missing"),
        ({"a": FINE}, np.array([0, 1, np.inf, 1], dtype=np.float32), "label of row 3 is infinite"),
        ({"a": FINE}, torch.tensor([2, 2, 2, 2]), "All 4 labels are 2"),
        ({"a": FINE}, [[0, 1]] * 4, "2 dimensions"),
    ],
)
def test_what_cannot_be_used_is_refused(features: Any, labels: Any, says: str) -> None:
    with pytest.raises(DataError, match=says):
        mtcd.VerticalDataset(features, labels)


def test_a_lazy_data_set_that_gives_no_arrays_is_refused_when_its_shape_is_asked_for() -> None:
    for values in ([(np.ones(3), 1)] * 4, {9: 1, 8: 1, 7: 1, 6: 1}):
        data = mtcd.VerticalDataset({"a": Lazy(values)}, LABELS)
        with pytest.raises(
            DataError, match="Sample 0 of client 'a' cannot be read as one array or tensor"
        ):
            _ = data.shapes


def test_nothing_of_a_lazy_data_set_is_read_before_it_is_needed() -> None:
    lazy = Lazy(FINE)
    data = mtcd.VerticalDataset({"a": lazy}, LABELS).part(3, seed=1)
    assert lazy.read == 0
    np.testing.assert_array_equal(data.features["a"][2], FINE[0])
    assert lazy.read == 1
    with pytest.raises(IndexError):
        data.features["a"][3]
    assert len(pickle.loads(pickle.dumps(data)).features["a"]) == 3


def test_transforms_belong_to_clients() -> None:
    with pytest.raises(DataError, match="client 'picture': did you mean 'pictures'"):
        mtcd.VerticalDataset(
            {"pictures": FINE}, LABELS, transforms={"picture": lambda batch, _: batch}
        )
    with pytest.raises(DataError, match="client 'a' cannot be called"):
        mtcd.VerticalDataset({"a": FINE}, LABELS, transforms={"a": "flip"})  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("features", "labels", "says"),
    [
        ({"a": FINE}, LABELS, "only one of the two has b"),
        ({"a": FINE, "b": FINE, "c": FINE}, LABELS, "only one of the two has c"),
        (
            {"a": FINE, "b": np.ones((4, 3))},
            LABELS,
            r"client 'b' have the shape \(2,\), but \(3,\)",
        ),
        (
            {"a": FINE, "b": Lazy(np.ones((4, 2, 2)))},
            LABELS,
            r"client 'b' have the shape \(2,\), but \(2, 2\)",
        ),
        ({"a": FINE, "b": FINE}, ["x", "y", "x", "x"], "both be numbers"),
    ],
)
def test_a_test_set_must_fit(features: Any, labels: Any, says: str) -> None:
    test = mtcd.VerticalDataset(features, labels)
    with pytest.raises(DataError, match=says):
        mtcd.VerticalDataset({"a": FINE, "b": FINE}, LABELS, test=test)


def test_a_test_set_has_no_further_classes_and_no_test_set() -> None:
    named = mtcd.VerticalDataset({"a": FINE}, ["x", "y", "z", "x"])
    with pytest.raises(DataError, match="class that the test set has: z"):
        mtcd.VerticalDataset({"a": FINE}, ["x", "y", "y", "x"], test=named)
    nested = mtcd.VerticalDataset(
        {"a": FINE}, ["x", "y", "y", "x"], test=mtcd.VerticalDataset({"a": FINE}, list("xyxy"))
    )
    with pytest.raises(DataError, match="without a test set of its own"):
        mtcd.VerticalDataset({"a": FINE}, list("xyxy"), test=nested)


# --- parts


@given(st.integers(4, 40), st.floats(0.05, 0.95), st.integers(0, 5))
def test_a_holdout_takes_every_sample_once(samples: int, fraction: float, seed: int) -> None:
    data = numbered(samples)
    count = round(fraction * samples)
    if not 2 <= count <= samples - 2:  # one sample alone has a constant label
        return
    held = data.holdout(fraction, seed)
    assert held.test is not None
    train, test = numbers(held), numbers(held.test)
    assert len(test) == count
    assert sorted(train + test) == list(range(samples))
    assert (train, test) == (sorted(train), sorted(test))
    assert numbers(data.holdout(fraction, seed)) == train


@given(st.integers(2, 40), st.integers(0, 5), st.data())
def test_a_part_is_as_large_as_asked_and_the_same_again(
    samples: int, seed: int, draw: st.DataObject
) -> None:
    data = numbered(samples)
    wanted = draw.draw(st.integers(2, samples))
    kept = numbers(data.part(wanted, seed))
    assert (len(set(kept)), kept) == (wanted, sorted(kept))
    assert numbers(data.part(wanted, seed)) == kept
    assert wanted < samples or kept == list(range(samples))
    assert numbers(data.part(wanted, seed).part(2, seed)) == [
        kept[j] for j in numbers(numbered(wanted).part(2, seed))
    ]


def test_seeds_draw_differently_and_transforms_stay_with_the_training_set() -> None:
    data = numbered(30)
    transforms = {"rows": lambda batch, generator: batch}
    data = mtcd.VerticalDataset(data.features, data.labels, transforms)
    parts = {tuple(numbers(data.part(10, seed))) for seed in range(10)}
    held = {tuple(numbers(data.holdout(0.3, seed))) for seed in range(10)}
    assert (len(parts), len(held)) == (10, 10)
    cut = data.holdout(0.3).part(5)
    assert cut.transforms == transforms
    assert (cut.samples, cut.test.samples, cut.test.transforms) == (5, 9, None)
    assert "9 of 30 samples, drawn with seed 0" in cut.notes[0]
    assert "5 of 21 samples" in cut.notes[1]


def test_parts_that_cannot_be() -> None:
    data = numbered(6)
    for fraction in (0.01, 1.0, 0.99, 2):
        with pytest.raises(DataError, match="cannot be held out of 6 samples"):
            data.holdout(fraction)
    for wrong in (0, -1, "x", float("nan")):
        with pytest.raises(ConfigError, match="fraction must be"):
            data.holdout(wrong)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="already"):
        data.holdout(0.5).holdout(0.5)
    with pytest.raises(DataError, match="6 samples, fewer than 7"):
        data.part(7)
    with pytest.raises(ConfigError, match="samples must be 1 or more"):
        data.part(0)
    with pytest.raises(DataError, match="of the 1 samples drawn are .*draw more"):
        data.part(1)
