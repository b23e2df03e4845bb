"""Transformers, one by one, against those of scikit-learn; their state as JSON."""

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler

from mtcd.core.errors import DataError
from mtcd.data.prepare import TRANSFORMERS, ColumnPreparation, read_recipe
from mtcd.data.prepare.automatic import automatic
from mtcd.data.prepare.preparation import fit_columns
from mtcd.data.prepare.transformer import name_of
from mtcd.data.prepare.transformers.impute import Impute
from mtcd.data.prepare.values import as_column

rng = np.random.default_rng(0)
NUMBERS = np.where(rng.random(60) < 0.2, np.nan, rng.gamma(2.0, 3.0, 60))
NEW = np.array([-5.0, 0.5, np.nan, 4.0, 100.0])
LETTERS = [*"aababcbbdaac" * 5]


def fitted(
    values: Any, *steps: Any, **recipe: Any
) -> tuple[ColumnPreparation, np.ndarray, list[str]]:
    frame = pl.DataFrame([as_column(pl.Series("x", values, strict=False, nan_to_null=True))])
    return fit_columns("k", frame, read_recipe({"columns": {"x": list(steps)}, **recipe}))


def applied(preparation: ColumnPreparation, values: Any) -> np.ndarray:
    return preparation.apply(
        pl.DataFrame([as_column(pl.Series("x", values, strict=False, nan_to_null=True))])
    )


@pytest.mark.parametrize("strategy", ["mean", "median", "most-frequent", "constant"])
@pytest.mark.parametrize("indicator", [False, True])
def test_impute_and_standardise_are_those_of_scikit_learn(strategy: str, indicator: bool) -> None:
    column = np.round(NUMBERS)[:, None]
    theirs = SimpleImputer(
        strategy=strategy.replace("-", "_"), fill_value=-1.0, add_indicator=indicator
    )
    scaler = StandardScaler()
    expected = scaler.fit_transform(theirs.fit_transform(column))
    settings = {"strategy": strategy, "indicator": indicator} | (
        {"value": -1} if strategy == "constant" else {}
    )
    ours, block, _ = fitted(column[:, 0], {"impute": settings}, "standardise")
    np.testing.assert_allclose(block, expected, atol=1e-12)
    np.testing.assert_allclose(
        applied(ours, NEW), scaler.transform(theirs.transform(NEW[:, None])), atol=1e-12
    )
    assert ours.outputs == (("x", "x (missing)") if indicator else ("x",))


def test_clip_is_that_of_numpy() -> None:
    known = NUMBERS[~np.isnan(NUMBERS)]
    ours, block, _ = fitted(known, {"clip": {"lower": 0.1, "upper": 0.8}})
    least, largest = np.quantile(known, [0.1, 0.8])
    np.testing.assert_allclose(block[:, 0], np.clip(known, least, largest))
    assert applied(ours, [-1e9, 1e9]).tolist() == [[least], [largest]]


@pytest.mark.parametrize("encode", ["one-hot", "ordinal"])
@pytest.mark.parametrize("bins", [2, 5])
def test_bins_are_those_of_scikit_learn(encode: str, bins: int) -> None:
    known = NUMBERS[~np.isnan(NUMBERS)]
    theirs = KBinsDiscretizer(
        bins,
        encode={"one-hot": "onehot-dense", "ordinal": "ordinal"}[encode],
        strategy="quantile",
        quantile_method="linear",
        subsample=None,
    )
    ours, block, _ = fitted(known, {"bin": {"bins": bins, "encode": encode}})
    np.testing.assert_array_equal(block, theirs.fit_transform(known[:, None]))
    new = np.linspace(-1, 40, 50)
    np.testing.assert_array_equal(applied(ours, new), theirs.transform(new[:, None]))
    if (encode, bins) == ("one-hot", 2):
        middle = f"{np.median(known):.6g}"
        assert ours.outputs == (f"x < {middle}", f"x >= {middle}")


@pytest.mark.parametrize("encode", ["one-hot", "ordinal"])
def test_a_value_at_an_edge_is_in_the_bin_above_it(encode: str) -> None:
    """As the names of the columns say, and as scikit-learn has it."""
    known = np.repeat(np.arange(9.0), 2)  # quantiles of such values are among them
    theirs = KBinsDiscretizer(
        4,
        encode={"one-hot": "onehot-dense", "ordinal": "ordinal"}[encode],
        strategy="quantile",
        quantile_method="linear",
        subsample=None,
    )
    expected = theirs.fit_transform(known[:, None])
    edges = theirs.bin_edges_[0][1:-1]
    assert set(edges) <= set(known)
    ours, block, _ = fitted(known, {"bin": {"bins": 4, "encode": encode}})
    np.testing.assert_array_equal(block, expected)
    near = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf)])
    np.testing.assert_array_equal(applied(ours, near), theirs.transform(near[:, None]))
    if encode == "ordinal":
        assert applied(ours, edges)[:, 0].tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "values",
    [[3.0, 1.0, 2.0] * 20, ["pear", "apple", "fig"] * 20, [*range(50, 0, -1)] * 2],
    ids=str,
)
def test_of_values_that_are_as_frequent_the_least_is_filled_in(values: list[Any]) -> None:
    """In whatever order they come: all parties of a federation, and all reruns, fill in the
    same."""
    least = min(values)
    if not isinstance(least, str):
        theirs = SimpleImputer(strategy="most_frequent").fit(np.array(values, float)[:, None])
        assert theirs.statistics_.tolist() == [least]
    for order in (values, values[::-1]):
        state = Impute(strategy="most-frequent").fit(
            as_column(pl.Series("x", [*order, None], strict=False))
        )
        assert state.fill == least


@pytest.mark.parametrize("min_count", [1, 6, 16])
def test_one_hot_is_that_of_scikit_learn(min_count: int) -> None:
    theirs = OneHotEncoder(
        min_frequency=min_count, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    ours, block, _ = fitted(LETTERS, {"one-hot": {"min_count": min_count}})
    expected = theirs.fit_transform(np.array(LETTERS)[:, None])
    rare = sum(LETTERS.count(letter) < min_count for letter in "abcd")
    assert ours.outputs == (*(f"x={letter}" for letter in "abcd"[: 4 - rare]), "x=other")
    if not rare:  # our column for others is there in any case
        expected = np.column_stack([expected, np.zeros(len(expected))])
    np.testing.assert_array_equal(block, expected)
    assert applied(ours, ["a", "zebra", None]).tolist()[1:] == [[0.0] * (4 - rare) + [1.0]] * 2


def test_one_hot_of_missing_values_numbers_and_a_category_called_other() -> None:
    ours, block, _ = fitted(["other", None, "u", " u "], "one-hot")
    assert ours.outputs == ("x=other", "x=u", "x (missing)", "x=(other)")
    assert block.argmax(axis=1).tolist() == [0, 2, 1, 1]
    assert block.sum() == 4
    codes, _, _ = fitted([1.0, 2.0, None, 2.5], "one-hot")
    assert codes.outputs == ("x=1", "x=2", "x=2.5", "x (missing)", "x=other")
    assert applied(codes, [2, 1]).argmax(axis=1).tolist() == [1, 0]
    assert applied(codes, ["2", "1"]).argmax(axis=1).tolist() == [1, 0]


def test_ordinal_is_that_of_scikit_learn() -> None:
    ours, block, _ = fitted(LETTERS, "ordinal")
    np.testing.assert_array_equal(block, OrdinalEncoder().fit_transform(np.array(LETTERS)[:, None]))
    assert applied(ours, ["zebra"])[0, 0] == pytest.approx(block.mean())
    _, block, _ = fitted(["mid", "low", "high"], {"ordinal": {"order": ["low", "mid", "high"]}})
    assert block[:, 0].tolist() == [1, 0, 2]


def test_hashing_puts_equal_categories_into_equal_columns() -> None:
    words = [f"city {i % 50}" for i in range(200)]
    ours, block, _ = fitted(words, {"hash": {"columns": 8}})
    assert ours.outputs == tuple(f"x#{i}" for i in range(8))
    assert (block.sum(axis=1) == 1).all()
    assert (block[:50] == block[50:100]).all()
    assert len(set(block[:50].argmax(axis=1))) > 5  # spread
    assert applied(ours, ["never seen", None]).sum(axis=1).tolist() == [1, 0]
    assert applied(ours, ["city 0"]).tolist() == block[:1].tolist()


DAYS = [date(2024, 2, 28), date(2023, 12, 31), date(2024, 3, 1)]


@pytest.mark.parametrize("form", ["date", "datetime", "text", "german"])
def test_dates_become_their_parts(form: str) -> None:
    values: list[Any] = {
        "date": DAYS,
        "datetime": [datetime(d.year, d.month, d.day) for d in DAYS],
        "text": [d.isoformat() for d in DAYS],
        "german": [d.strftime("%d.%m.%Y") for d in DAYS],
    }[form]
    settings = {"format": "%d.%m.%Y"} if form == "german" else {}
    ours, block, _ = fitted(values, {"dates": settings})
    assert ours.outputs == ("x.year", "x.month", "x.day", "x.weekday", "x.days")
    expected = [[d.year, d.month, d.day, d.isoweekday(), (d - min(DAYS)).days] for d in DAYS]
    assert block.tolist() == expected


def test_dates_with_time_zones_are_compared_in_one_zone() -> None:
    berlin = timezone(timedelta(hours=1))
    moments = [datetime(2024, 1, 1, 0, 30, tzinfo=berlin), datetime(2024, 1, 2, 12, tzinfo=UTC)]
    _, block, _ = fitted(
        [m.isoformat() for m in moments], {"dates": {"parts": ["day", "hour", "days"]}}
    )
    assert block[:, :2].tolist() == [[31, 23], [2, 12]]  # in UTC
    assert block[1, 2] - block[0, 2] == pytest.approx((moments[1] - moments[0]) / timedelta(days=1))
    series = pl.Series("x", [m.astimezone(UTC) for m in moments]).dt.convert_time_zone(
        "Europe/Berlin"
    )
    local, _, _ = fit_columns(
        "k", pl.DataFrame([series]), read_recipe({"default": {"dates": {"parts": ["day"]}}})
    )
    assert local.apply(pl.DataFrame([series]))[:, 0].tolist() == [1, 2]
    assert local.apply(pl.DataFrame({"x": ["2024-01-01T23:30Z"]}))[:, 0].tolist() == [2]
    # as local time
    assert local.apply(pl.DataFrame({"x": ["2024-01-01T23:30"]}))[:, 0].tolist() == [1]


def test_yes_and_no_are_numbers() -> None:
    _, block, _ = fitted(["yes", "NO", "True", "f", "1"], "boolean")
    assert block[:, 0].tolist() == [1, 0, 1, 0, 1]


AUTOMATIC = {
    "numbers": ([1.5, None, 3.0], ["impute", "standardise"]),
    "numbers as text": (["1", "n/a", "3", ""], ["impute", "standardise"]),
    "nothing": ([None, None], ["impute", "standardise"]),
    "booleans": ([True, False, None], ["boolean", "impute"]),
    "yes and no": (["yes", "no", ""], ["boolean", "impute"]),
    "dates": (DAYS, ["dates", "impute", "standardise"]),
    "dates as text": (["2024-01-01", None, "2023-02-03 10:00"], ["dates", "impute", "standardise"]),
    "yes and no with gaps": (["yes", "no", "n/a", "NA"], ["boolean", "impute"]),
    "dates with gaps": (["2024-01-01", "-", "2023-02-03"], ["dates", "impute", "standardise"]),
    "only gaps": (["NA", "-"], ["impute", "standardise"]),
    "few texts": (["m", "f", None, "2024-01-01"], ["one-hot"]),
    "many texts": ([f"name {i}" for i in range(41)], ["hash"]),
}


@pytest.mark.parametrize("case", AUTOMATIC)
def test_the_automatic_choice(case: str) -> None:
    values, names = AUTOMATIC[case]
    column = as_column(pl.Series("x", values))
    assert [name_of(step.fitted) for step in automatic(column).steps] == names
    _, block, _ = fit_columns("k", pl.DataFrame([column]), read_recipe("auto"))
    assert np.isfinite(block).all()


def test_columns_without_a_value_and_constant_columns_become_zero() -> None:
    empty, block, notes = fitted([None, None], "impute", "standardise")
    assert block.tolist() == [[0.0], [0.0]]
    assert "no value in any training row" in notes[0]
    assert applied(empty, ["text"]).tolist() == [[0.0]]
    _, block, _ = fitted([0.1] * 7, "standardise")
    assert not block.any()


def test_mixed_types_are_texts_and_texts_among_numbers_are_missing() -> None:
    mixed = pl.Series("x", [1, "b", None, True, 2.0], dtype=pl.Object)
    assert as_column(mixed).to_list() == ["1", "b", None, "true", "2"]
    _, block, notes = fitted(["1", "three", "3"], {"impute": {"strategy": "mean"}})
    assert block[:, 0].tolist() == [1, 2, 3]
    assert "1 value(s) of column 'x'" in notes[0]
    assert "'three'" in notes[0]


@pytest.mark.parametrize("name", list(TRANSFORMERS))
def test_new_values_that_the_first_step_cannot_read_are_noted(name: str) -> None:
    values = {"dates": ["2024-01-01", "2024-01-02"], "clock": ["14:30", "2:30 PM"]}.get(
        name, ["1", "0"]
    )
    ours, _, _ = fitted(values, name)
    noted = ours.notes(pl.DataFrame({"x": [*values, "soon", None]}))
    odd = {"dates": "no dates", "boolean": "neither yes nor no", "ordinal": "not in its order"}
    odd |= {"clock": "no times of day"} | dict.fromkeys(
        ("categories", "one-hot", "hash"), "of no category in the training rows"
    )
    instead = {"one-hot": "count as other", "hash": "take the columns of others"}.get(
        name, "count as missing"
    )
    what = odd.get(name, "no numbers")
    assert noted == [f"1 value(s) of column 'x' that are {what}, such as 'soon', {instead}."]


def test_values_of_many_columns_that_cannot_be_read_are_told_in_one_note() -> None:
    frame = pl.DataFrame(
        {f"c{j}": ["1", "2", "-", "n/a"] for j in range(12)} | {"none": [None] * 4}
    )
    preparation, _, notes = fit_columns("k", frame, read_recipe("auto"))
    assert len(notes) == 2
    said = "24 values of 12 columns cannot be read and count as missing: c0 (2, such as '-'), c1 (2, such as '-'), "
    assert said in " ".join(notes)
    assert "'none' has no value" in " ".join(notes)
    assert preparation.notes(frame) == [note for note in notes if "24 values" in note]


def test_missing_values_that_no_step_fills_are_told_once_with_counts() -> None:
    frame = pl.DataFrame({"a": [1.0, None, None], "b": [1.0, 2.0, None], "c": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match=r"3 values of client 'k'.* a \(2\), b \(1\).*impute"):
        fit_columns("k", frame, read_recipe({"default": "standardise"}))


UNREADABLE = {
    "texts as numbers": (
        ["Bern", "Graz"],
        ["impute"],
        "impute reads numbers, but none.*row 1 holds 'Bern'.*one-hot",
    ),
    "a later step": (
        ["Bern", "Graz"],
        [{"impute": {"strategy": "most-frequent"}}, "clip"],
        "clip reads numbers",
    ),
    "no dates": (
        [None, "-", "02.03.2024"],
        ["dates", "impute"],
        "dates reads dates.*row 3 holds '02.03.2024'",
    ),
    "no yes": (["a", "b"], ["boolean", "impute"], "boolean reads yes and no"),
    "no order": (
        ["a", "b"],
        [{"ordinal": {"order": ["low", "high"]}}, "impute"],
        "ordinal reads the categories of",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_step_that_can_read_none_of_the_values_is_refused(case: str) -> None:
    values, steps, words = UNREADABLE[case]
    with pytest.raises(DataError, match=words):
        fitted(values, *steps)


def test_values_that_a_first_step_cannot_read_are_told() -> None:
    _, _, notes = fitted(["2024-01-01", "soon", None, "2024-01-03"], "dates", "impute")
    assert notes == [
        "1 value(s) of column 'x' that are no dates, such as 'soon', count as missing."
    ]
    _, _, notes = fitted(["yes", "-", "no"], "boolean", "impute")
    assert notes == [
        "1 value(s) of column 'x' that are neither yes nor no, such as '-', count as missing."
    ]
    with pytest.raises(
        DataError, match=r"1 value of client 'k' is still missing.*x \(1, such as 'mid'\).*Add"
    ):
        fitted(["low", "mid", "high"], {"ordinal": {"order": ["low", "high"]}})


UNSEEN = {
    "category": (["u", "v"], "one-hot", ["u", "w"], "'w', as no training row does, in row 2"),
    "order": (["u", "v"], "ordinal", ["w", "u"], "in row 1"),
    "missing": ([1.0, 2.0], "standardise", [None, 1.0], "missing, in row 1"),
    "no number": ([1.0, 2.0], "keep", ["1", "x"], "'x'.*in row 2"),
    "no number, filled in": ([1.0, 2.0], ["impute", "standardise"], ["1", "x"], "'x'.*in row 2"),
    "a later step": (
        ["u", "v"],
        [{"impute": {"strategy": "most-frequent"}}, "one-hot"],
        ["u", "w"],
        "'w'.*in row 2",
    ),
    "no date, filled in": (
        ["2024-01-01", "2024-01-03"],
        ["dates", "impute"],
        ["2024-01-01", "soon"],
        "'soon'",
    ),
    "no date": (["2024-01-01", "2024-01-03"], "dates", ["2024-01-01", "soon"], "'soon'.*in row 2"),
}


@pytest.mark.parametrize("case", UNSEEN)
def test_new_values_stop_a_prediction_only_if_asked_to(case: str) -> None:
    values, steps, new, words = UNSEEN[case]
    steps = steps if isinstance(steps, list) else [steps]
    strict, _, _ = fitted(values, *steps, on_unseen="error")
    with pytest.raises(DataError, match=words):
        applied(strict, new)
    assert np.isfinite(applied(strict, values)).all()
    ours, block, _ = fitted(values, *steps)
    bad = 0 if "row 1" in words else 1
    found = applied(ours, new)
    assert np.isfinite(found).all()
    if case in ("order", "missing", "no number", "no date"):
        np.testing.assert_allclose(found[bad], block.mean(axis=0))
