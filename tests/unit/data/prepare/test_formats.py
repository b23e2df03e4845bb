"""Everyday formats of numbers, dates and categories under ``prepare: auto``: each is read right, or
refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtcd
from auto_prepared import new, prepared
from mtcd.core.errors import ConfigError, DataError
from mtcd.data.prepare import ColumnPreparation, read_recipe
from mtcd.data.prepare.preparation import fit_columns

rng = np.random.default_rng(3)
VALUES = np.round(rng.normal(0, 4000, 60), 2)


def german(value: float, thousands: str = ".") -> str:
    return f"{value:,.2f}".replace(",", "|").replace(".", ",").replace("|", thousands)


NUMBERS = {
    "decimal comma": lambda v: f"{v:.2f}".replace(".", ","),
    "thousands": lambda v: f"{v:,.2f}",
    "thousands by points": german,
    "thousands by spaces": lambda v: german(v, " "),
    "thousands by no-break spaces": lambda v: german(v, "\u00a0"),
    "thousands by narrow spaces": lambda v: german(v, "\u202f"),
    "thousands by apostrophes": lambda v: f"{v:,.2f}".replace(",", "'"),
    "thousands by curly apostrophes": lambda v: f"{v:,.2f}".replace(",", "\u2019"),
    "percent": lambda v: f"{v:.2f}%",
    "percent with a space": lambda v: f"{german(v)} %",
    "dollars": lambda v: f"-${-v:,.2f}" if v < 0 else f"${v:,.2f}",
    "dollars with the sign inside": lambda v: f"${v:,.2f}",
    "euros": lambda v: f"{german(v)} €",
    "euros by code": lambda v: f"EUR {v:.2f}",
    "francs": lambda v: f"CHF {v:,.2f}".replace(",", "'"),
    "pounds": lambda v: f"£{v:,.2f}",
    "negative in parentheses": lambda v: f"({-v:,.2f})" if v < 0 else f"{v:,.2f}",
    "negative dollars in parentheses": lambda v: f"(${-v:,.2f})" if v < 0 else f"${v:,.2f}",
    "trailing minus": lambda v: f"{-v:.2f}-" if v < 0 else f"{v:.2f}",
    "minus of Unicode": lambda v: f"{v:.2f}".replace("-", "\u2212"),
    "kilograms": lambda v: f"{v:.2f} kg",
    "fahrenheit": lambda v: f"{v:.2f}°F",
    "concentration": lambda v: f"{v:.2f} mg/dL",
    "a unit of one's own": lambda v: f"{v:.2f} points",
    "spaces around": lambda v: f"  {v:.2f} ",
    "scientific": lambda v: f"{v:.6e}",
    "scientific with a comma": lambda v: f"{v:.6e}".replace(".", ","),
    "plus signs": lambda v: f"{v:+.2f}",
    "yen, which are whole and have commas": lambda v: f"¥{v:,.0f}",
    "German prices without cents": lambda v: german(v)[:-3] + ",- €",
    "powers of ten": lambda v: f"{v / 1000:.5f} x 10^3",
    "powers of ten in superscript": lambda v: f"{v * 1000:.5f}\u00d710\u207b\u00b3",
    "a unit with a power of ten": lambda v: f"{v:.2f} 10*3/uL",
    "full-width digits": lambda v: "".join(
        chr(ord(c) + 0xFEE0) if c.isdigit() else c for c in f"{v:.2f}"
    ),
    "Indian groups": lambda v: f"{'-' if v < 0 else ''}12,34,{abs(v) % 900 + 100:.2f}",
}


WHOLE = ("yen, which are whole and have commas", "German prices without cents")


@pytest.mark.parametrize("form", NUMBERS)
@pytest.mark.parametrize("spoilt", [None, "<0.5", "#N/A", "n/a", "see comment"])
def test_numbers_in_everyday_formats_are_numbers(form: str, spoilt: str | None) -> None:
    values = VALUES
    if form == "Indian groups":
        values = np.sign(VALUES) * (1_234_000 + np.round(np.abs(VALUES) % 900 + 100, 2))
    if form in WHOLE:
        values = np.trunc(VALUES) if form.startswith("German") else np.round(VALUES)
    texts = [NUMBERS[form](value) for value in VALUES]
    if spoilt is not None:
        texts[7], values = (
            spoilt,
            np.where(np.arange(60) == 7, np.median(np.delete(values, 7)), values),
        )
    expected = (values - values.mean()) / values.std()  # what is missing is the median
    preparation, block, notes = prepared(texts)
    assert preparation.outputs == ("x",)
    np.testing.assert_allclose(block[:, 0], expected, atol=1e-9)
    if spoilt is not None:
        assert (
            f"1 value(s) of column 'x' that are no numbers, such as {spoilt!r}, count as missing"
            in notes
        )
    plain = form in ("spaces around", "scientific", "plus signs")
    assert ("read as numbers" in notes) != plain
    np.testing.assert_allclose(new(preparation, texts[:3]), block[:3], atol=1e-9)


MONTHS = (
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
FRENCH, SPANISH = (names.split() for names in MONTHS)


OPEN = {
    "thousands by "
    "points": (["1.234", "12.345", "999"], "'1.234' and '12.345'.*decimal: ','", "decimal", [".", ","]),
    "day or month of digits": (["03042024", "05062024"], "'03042024'.*dates: day-first", "dates",
                               ["day-first", "month-first"]),
    "thousands or "
    "decimals": (["1,234", "12,345", "999"], "'1,234' and '12,345'.*decimal: ','", "decimal", [".", ","]),
    "points before "
    "euros": (["1.234 €", "5.678 €"], "'1.234 €' and '5.678 €'.*decimal", "decimal", [".", ","]),
    "both decimals": (["1.5", "2,5"] * 5, "'1.5' and '2,5'.*decimal", "decimal", [".", ","]),
    "day or "
    "month": (["03/04/2024", "05/06/2024"], "'03/04/2024'.*day-first or month-first.*dates: day-first", "dates",
                     ["day-first", "month-first"]),
    "year or "
    "day": (["24-03-14", "23-01-02"], "'23-01-02'.*year-first", "dates", ["day-first", "year-first"]),
    "both "
    "orders": (["14/03/2024", "03/14/2024"] * 5, "values contradict each other.*dates", "dates", ["day-first"]),
    "bounds": (["<0.5", "1.2", "3.4"] * 5, "5 of 15 are bounds such as '<0.5'.*missing or value", "limits",
               ["missing", "value"]),
    "bounds only": (["~5.1", "~6.2", ">7"] * 5, "15 of 15 are bounds.*limits: value", "limits", ["value"]),
}  # fmt: skip


@pytest.mark.parametrize("case", OPEN)
def test_what_the_values_leave_open_is_refused_and_the_setting_decides(case: str) -> None:
    values, words, setting, choices = OPEN[case]
    with pytest.raises(DataError, match=f"Client 'k': Column 'x' .*{words}"):
        prepared(values)
    blocks = []
    for choice in choices:
        recipe = {"columns": {"x": {"auto": {setting: choice}}}, "missing": "keep"}
        preparation, block, _ = prepared(values, recipe)
        blocks.append(block)
        assert not preparation.categorical
        np.testing.assert_array_equal(new(preparation, values), block)
    assert len({block.tobytes() for block in blocks}) == len(choices)


def test_a_single_row_anywhere_decides() -> None:
    """A day above 12, or a number that shows its decimal mark, in the last of many rows."""
    days = [f"{i % 12 + 1:02}/{i % 11 + 1:02}/2024" for i in range(3000)]
    with pytest.raises(DataError, match="day-first or month-first"):
        prepared(days)
    for last, columns in (("13/01/2024", (1, 2)), ("01/13/2024", (2, 1))):
        preparation, _, _ = prepared([*days, last], {"missing": "keep"})
        assert new(preparation, ["05/02/2024"])[0, list(columns)].tolist() == [2, 5]
    amounts = [f"{i % 9 + 1},{i % 1000:03}" for i in range(3000)]
    for last, expected in (("12,5", 1.5), ("1,234,567", 1500.0), ("1,234.5", 1500.0)):
        preparation, _, _ = prepared([*amounts, last], {"missing": "keep"})
        assert new(preparation, ["1,500"]).tolist() == [[expected]]


def test_a_row_that_is_not_trained_on_decides_too() -> None:
    """So that folds and hold-outs are read as the whole column is."""
    days = [f"{i % 12 + 1:02}/{i % 11 + 1:02}/2024" for i in range(40)]
    with pytest.warns(mtcd.DataWarning, match="read as dates"):
        data = mtcd.split({"x": [*days, "13/01/2024"]}, np.arange(41) % 2, 1, prepare="auto")
    train = data.take(np.arange(40))
    assert train.columns == data.columns
    fitted = train.preparations.parts[0]
    first, same = (fitted.apply(pl.DataFrame({"x": [day]})) for day in ("05/02/2024", "2024-02-05"))
    np.testing.assert_array_equal(first, same)


def test_all_open_columns_of_a_client_are_told_at_once_and_their_values_stay_with_it() -> None:
    frame = pl.DataFrame(
        {"a": ["1,234", "2,345"], "b": ["03/04/2024", "05/06/2024"], "c": [1.0, 2.0]}
    )
    with pytest.raises(DataError, match=r"Column 'a' .*Column 'b' ") as told:
        fit_columns("k", frame, read_recipe("auto"))
    assert "'a', 'b'" in told.value.shared
    assert "1,234" not in told.value.shared
    assert "2024" not in told.value.shared


UNITS = {
    "kilograms and pounds": (
        ["70 kg", "154 lb", "80 kg", "176 lbs"],
        "'70 kg' and 6 such as '154 lb'",
    ),
    "currencies": (["$5", "€6", "$7", "€8"], "of different units"),
    "degrees": (["36.6 °C", "98.6 F", "37 C", "99 °F"], "of different units"),
    "magnitudes": (["1.5K", "2M", "3.5K", "4M"], "of different units"),
    "some without a unit": (["70 kg", "154", "80 kg", "176"], "'154' and 6 such as '70 kg'"),
}


@pytest.mark.parametrize("case", UNITS)
def test_different_units_are_never_merged(case: str) -> None:
    values, words = UNITS[case]
    with pytest.raises(DataError, match=f"{words}.*convert them to one unit"):
        prepared(values * 3)
    unit = values[0].lstrip("0123456789.").strip() or "kg"
    unit = "$" if case == "currencies" else unit
    steps = [{"number": {"unit": unit}}, {"impute": {"strategy": "constant", "value": -1}}]
    _, block, notes = prepared(values * 3, {"columns": {"x": steps}})
    assert (block[:, 0] == -1).sum() == (0 if case == "some without a unit" else 6)
    assert ("count as missing" in notes) == (case != "some without a unit")


def test_a_few_values_of_another_unit_count_as_missing() -> None:
    preparation, _, notes = prepared([*(f"{60 + i} kg" for i in range(30)), "154 lb"])
    assert (
        "1 value(s) of column 'x' that are no numbers, such as '154 lb', count as missing" in notes
    )
    frame = pl.DataFrame({"x": ["70 lb", "80", "0", "62 KG"]})
    assert (
        "2 value(s) of column 'x' that are no numbers, such as '70 lb'"
        in preparation.notes(frame)[0]
    )
    # a number of no unit
    assert "such as 70.0" in preparation.notes(pl.DataFrame({"x": [70.0]}))[0]


TEXTS = {
    "codes": [f"A{i}" for i in range(60)],
    "codes of one prefix": [f"ID{1000 + i}" for i in range(60)],
    "postal codes": [f"{i * 911 % 99999:05}" for i in range(60)],
    "addresses": [f"{i} {('Main', 'Oak', 'Elm')[i % 3]}" for i in range(60)],
    "pressures": [f"{100 + i}/{60 + i}" for i in range(60)],
    "telephone numbers": [f"+49{1700000000 + 37 * i}" for i in range(60)],
    "codes with the name of a month": [f"GEN-{10 + i}" for i in range(60)],
    "phones": [f"+49 170 {100 + i} {200 + i}" for i in range(60)],
    "versions": [f"1.{i}.{i % 7}.2" for i in range(60)],
    "seats": [f"{i}{'ABCDEF'[i % 6]}" for i in range(60)],
}


@pytest.mark.parametrize("case", TEXTS)
def test_texts_that_look_like_numbers_are_no_numbers_and_hashed_columns_are_named(
    case: str,
) -> None:
    preparation, _, notes = prepared(TEXTS[case])
    assert len(preparation.outputs) == 32
    assert (
        f"hashed into 32 columns each, which categories share: x (60 values, such as "
        f"{TEXTS[case][0]!r})" in notes
    )
    assert ("leading zeros are taken as codes" in notes) == (case == "postal codes")
    trees, _, told = prepared(TEXTS[case], "trees")
    assert trees.categorical == (0,)
    assert "hashed" not in told


def test_every_hashed_column_is_named() -> None:
    frame = pl.DataFrame({f"c{j}": [f"w{i}" for i in range(50)] for j in range(20)})
    notes = " ".join(fit_columns("k", frame, read_recipe("auto"))[2])
    assert all(f"c{j} (50 values" in notes for j in range(20))


def test_numbers_among_many_other_texts_are_categories_which_is_told() -> None:
    preparation, _, notes = prepared(["1", "2", "3", "a", "b"] * 3)
    assert preparation.outputs[:3] == ("x=1", "x=2", "x=3")
    assert "mostly numbers or dates are taken as categories: x (6 values are neither)" in notes
    yes, _, _ = prepared(["yes", "no", "unknown"])
    assert yes.outputs == ("x=no", "x=unknown", "x=yes", "x=other")


def test_a_few_padded_numbers_among_others_are_numbers() -> None:
    preparation, _, notes = prepared([*map(str, range(100)), "07"])
    assert preparation.outputs == ("x",)
    assert notes == ""


def test_leading_zeros_of_a_file_stay(tmp_path: Path) -> None:
    codes = [f"{i * 3571 % 30:05}" for i in range(60)]
    rows = [f"{code},{i},{i % 2},0{i % 2}" for i, code in enumerate(codes)]
    (tmp_path / "t.csv").write_text("zip,n,y,z\n" + "\n".join(rows) + "\n")
    with pytest.warns(
        mtcd.DataWarning, match=r"leading zeros are taken as codes.*zip \(such as '00000'\)"
    ):
        data = mtcd.read_tables(tmp_path / "t.csv", "y", {"a": ["zip", "n"]}, prepare="auto")
    assert "zip=00001" in data.columns[0]
    assert data.columns[0][-1] == "n"
    assert data.labels.dtype.kind == "i"
    # without preparation, numbers
    plain = mtcd.read_tables(tmp_path / "t.csv", "z", {"a": ["zip", "n"]})
    assert plain.columns == (("zip", "n"),)
    with pytest.warns(mtcd.DataWarning):
        labelled = mtcd.read_tables(tmp_path / "t.csv", "z", {"a": ["zip"]}, prepare="auto")
    assert labelled.labels.tolist() == plain.labels.tolist()  # the label is no code


@pytest.mark.parametrize("decimal", [".", ","])
def test_thousands_with_points_in_a_file_are_not_read_as_decimals_in_silence(
    tmp_path: Path, decimal: str
) -> None:
    counts = [750 + 40 * i for i in range(30)]
    rows = [f"{count:,};{i % 2}".replace(",", ".") for i, count in enumerate(counts)]
    (tmp_path / "t.csv").write_text("n;y\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match=r"Column 'n' .*'1.030' and '1.070'.*decimal"):
        mtcd.read_tables(tmp_path / "t.csv", "y", 1, prepare="auto")
    recipe = {"columns": {"n": {"auto": {"decimal": decimal}}}, "missing": "keep"}
    if decimal == ".":
        data = mtcd.read_tables(tmp_path / "t.csv", "y", 1, prepare=recipe)
    else:
        with pytest.warns(mtcd.DataWarning, match="read as numbers"):
            data = mtcd.read_tables(tmp_path / "t.csv", "y", 1, prepare=recipe)
    expected = (
        counts if decimal == "," else [count if count < 1000 else count / 1000 for count in counts]
    )
    np.testing.assert_allclose(data.blocks[0][:, 0], expected)


def test_digits_of_other_scripts_in_a_file_are_read(tmp_path: Path) -> None:
    numbers = [i / 4 for i in range(12)]
    rows = [f"{NUMBERS['full-width digits'](number)},{i % 2}" for i, number in enumerate(numbers)]
    (tmp_path / "t.csv").write_text("n,y\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.warns(mtcd.DataWarning, match="read as numbers"):
        data = mtcd.read_tables(tmp_path / "t.csv", "y", 1, prepare="trees")
    assert data.blocks[0][:, 0].tolist() == numbers


def test_decimals_of_a_program_are_no_thousands() -> None:
    for texts in (["1.234", "5.670", "0.125"], ["1.234", "5.678", "2.000"], ["1.5", "1.234", "7"]):
        _, block, notes = prepared(texts, {"missing": "keep"})
        assert block[:, 0].tolist() == [float(text) for text in texts]
        assert notes == ""


def as_categories(form: str, values: list[Any]) -> Any:
    texts = [None if value is None else str(value) for value in values]
    if form == "pandas":
        return pd.DataFrame({"c": pd.Categorical(values)})
    if form == "pandas texts":
        return pd.DataFrame({"c": pd.Categorical(texts)})
    if form == "enum":
        return pl.DataFrame(
            {"c": pl.Series(texts).cast(pl.Enum(sorted({t for t in texts if t is not None})))}
        )
    return pl.DataFrame({"c": pl.Series(texts).cast(pl.Categorical)})


@pytest.mark.parametrize("form", ["pandas", "pandas texts", "polars", "enum"])
@pytest.mark.parametrize("lost", [[], [None]])
def test_a_categorical_is_a_category_whatever_its_values_are(form: str, lost: list[Any]) -> None:
    values = [3, 1, 2, 10, *lost] * 6
    frame, labels = as_categories(form, values), np.arange(len(values)) % 2
    data = mtcd.split(frame, labels, 1, prepare="auto")
    missing = ("c (missing)",) if lost else ()
    assert data.columns[0] == ("c=1", "c=10", "c=2", "c=3", *missing, "c=other")
    trees = mtcd.split(frame, labels, 1, prepare="trees")
    assert trees.categorical == ((0,),)
    assert trees.take(np.arange(8)).categorical == ((0,),)
    with pytest.raises(DataError, match=r"'c' \(categories\) does not hold numbers"):
        mtcd.split(frame, labels, 1)
    with pytest.raises(ValueError, match="categories are no numbers: c"):
        mtcd.MTCDClassifier().fit(frame, labels)


@pytest.mark.parametrize("form", ["pandas", "polars", "enum"])
def test_trees_split_categories_into_any_two_sets(form: str) -> None:
    """Every other of 24 codes: trees of one split per visit learn it only if the codes have no
    order."""
    codes = np.random.default_rng(0).integers(1, 25, 400)
    frame, y = as_categories(form, codes.tolist()), codes % 2
    few: dict[str, Any] = {
        "max_iter": 3,
        "leaves": 2,
        "depth": 1,
        "adaptive": False,
        "learning_rate": 0.5,
    }
    found = mtcd.TreesClassifier(blocks=1, **few).fit(frame, y)
    assert found.score(frame, y) == 1.0
    numbers = mtcd.TreesClassifier(blocks=1, **few).fit(codes[:, None], y)
    assert numbers.score(codes[:, None], y) < 0.7
    with pytest.warns(
        mtcd.DataWarning, match=r"in no training row count as missing: c \(1, such as '77'\)"
    ):
        found.predict(as_categories(form, [1, 77]))
    with pytest.raises(ValueError, match="give a data frame"):
        found.predict(codes[:, None])
    named = mtcd.TreesClassifier(blocks=1, **few).fit(pl.DataFrame({"c": codes}), y)
    with pytest.raises(ValueError, match="were numbers when"):
        named.predict(frame)


@pytest.mark.parametrize(
    ("given_", "words"),
    [
        ({"auto": {"decimal": ";"}}, "decimal must be '.' or ','"),
        ({"auto": {"dates": "first"}}, "dates must be 'day-first'"),
        ({"auto": {"limits": 3}}, "limits must be"),
        ({"auto": {"decimals": ","}}, "no setting 'decimals'; did you mean 'decimal'"),
        ({"auto": "comma"}, "settings of auto are a mapping"),
        ([{"auto": {"decimal": ","}}, "standardise"], "stands alone"),
        ({"number": {"unit": " kg"}}, "leave out its spaces"),
        ({"dates": {"format": "%d", "order": "day-first"}}, "leave one of the two out"),
        ({"categories": {"order": ["a", "a"]}}, "in order twice"),
    ],
)
def test_settings_that_cannot_work_are_refused(given_: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_recipe({"columns": {"x": given_}})


def test_states_of_older_versions_are_read() -> None:
    """As runs of earlier versions have them: a hash without categories, dates without an order."""
    dates = {
        "kind": "dates",
        "parts": ["year"],
        "origin": "2024-01-01T00:00:00",
        "zone": None,
        "format": None,
    }
    hashed = {"kind": "hash", "columns": 2}
    columns = [
        {
            "name": "d",
            "steps": [[dates]],
            "outputs": ["d.year"],
            "means": [2024.0],
            "had_missing": False,
        },
        {
            "name": "h",
            "steps": [[hashed]],
            "outputs": ["h#0", "h#1"],
            "means": [0.5, 0.5],
            "had_missing": False,
        },
    ]
    stored = {"format": 1, "kind": "columns", "columns": columns, "on_unseen": "ignore"}
    old = ColumnPreparation.from_json(stored)
    frame = pl.DataFrame({"d": ["2023-05-05", "05.05.2022"], "h": ["a", "b"]})
    assert old.apply(frame)[:, 0].tolist() == [2023, 2024]
    assert old.apply(frame)[:, 1:].sum() == 2
    assert old.notes(frame) == [
        "1 value(s) of column 'd' that are no dates, such as '05.05.2022', count as missing."
    ]


FORMS = st.sampled_from(sorted(NUMBERS))


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=30), FORMS)
def test_numbers_are_never_read_as_others(values: list[float], form: str) -> None:
    """Whatever the numbers are: what is read is what was written, or the column is refused or no
    number."""
    if form == "Indian groups" or form in WHOLE:  # of other numbers
        return
    written = np.round(np.asarray(values), 2)
    try:
        preparation, _, _ = prepared(
            [NUMBERS[form](value) for value in written], {"missing": "keep"}
        )
    except DataError:
        return
    if preparation.outputs == ("x",) and not preparation.categorical:
        found = new(preparation, [NUMBERS[form](value) for value in written])[:, 0]
        known = ~np.isnan(found)
        np.testing.assert_allclose(found[known], written[known], rtol=1e-5, atol=1e-9)
