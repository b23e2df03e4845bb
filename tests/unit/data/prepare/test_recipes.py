"""Recipes of preparations, what they are kept as, and states and settings that are refused."""

import json
import re
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd.core.errors import ConfigError, DataError
from mtcd.data.prepare import TRANSFORMERS, ColumnPreparation, read_recipe
from mtcd.data.prepare.preparation import fit_columns
from mtcd.data.prepare.transformer import make_transformer, state_from_json, state_to_json
from mtcd.data.prepare.values import as_column


def fitted(
    values: Any, *steps: Any, **recipe: Any
) -> tuple[ColumnPreparation, np.ndarray, list[str]]:
    frame = pl.DataFrame([as_column(pl.Series("x", values, strict=False, nan_to_null=True))])
    return fit_columns("k", frame, read_recipe({"columns": {"x": list(steps)}, **recipe}))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("all", "prepare must be 'auto', 'trees' or a mapping"),
        ({"column": {}}, "did you mean 'columns'"),
        ({"columns": {"x": "onehot"}}, "no transformer is called 'onehot'; did you mean 'one-hot'"),
        ({"columns": {"x": {"one-hot": {"min": 1}}}}, "no setting 'min'"),
        ({"columns": {"x": {"one-hot": {"min_count": 0}}}}, "1 or more"),
        ({"columns": {"x": {"one-hot": {}, "impute": {}}}}, "a step is a name or"),
        ({"columns": {"x": ["auto", "standardise"]}}, "stands alone"),
        ({"columns": {"x": []}}, "empty list"),
        ({"columns": {"x": {"impute": {"strategy": "constant"}}}}, "needs a value"),
        ({"columns": {"x": {"dates": {"origin": "soon"}}}}, "not a date"),
        ({"columns": {"x": {"dates": {"zone": "Moon"}}}}, "no time zone"),
        ({"columns": {"x": {"clip": {"lower": 0.9, "upper": 0.1}}}}, "lower < upper"),
        ({"on_unseen": "stop"}, "'ignore' or 'error'"),
    ],
)
def test_bad_recipes(given: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_recipe(given)


@pytest.mark.parametrize("name", list(TRANSFORMERS))
def test_every_transformer_says_what_it_does_and_takes_a_column_without_values(name: str) -> None:
    assert TRANSFORMERS[name].__doc__
    state = make_transformer(name, {}).fit(pl.Series("x", [None, None], dtype=pl.String))
    assert state_from_json(json.loads(json.dumps(state_to_json(state)))) == state


VALUES = st.lists(
    st.one_of(
        st.none(),
        st.text(max_size=5),
        st.floats(allow_nan=False, width=32).map(str),
        st.dates().map(str),
    ),
    min_size=1,
    max_size=12,
)


STEPS = st.sampled_from(
    ["auto", "one-hot", "hash", "boolean", [{"impute": {"indicator": True}}, "standardise"], "auto"]
)


MORE = st.sampled_from(
    [["impute", "clip"], ["impute", {"bin": {"bins": 3}}], ["dates", "impute", "standardise"]]
)


@given(VALUES, VALUES, STEPS | MORE)
def test_json_gives_the_same_preparation_and_new_values_never_stop_it(
    values: Any, new: Any, steps: Any
) -> None:
    frame = pl.DataFrame([as_column(pl.Series("x", values, dtype=pl.String))])
    if steps == "boolean":
        steps = ["boolean", "impute"]
    try:
        ours, block, _ = fit_columns("k", frame, read_recipe({"default": steps}))
    except DataError as error:
        if "none of the values" not in str(error):
            raise
        return
    again = ColumnPreparation.from_json(json.loads(json.dumps(ours.to_json(), allow_nan=False)))
    assert again == ours
    np.testing.assert_array_equal(again.apply(frame), block)
    found = again.apply(pl.DataFrame([as_column(pl.Series("x", new, dtype=pl.String))]))
    assert found.shape == (len(new), len(ours.outputs))
    assert np.isfinite(found).all()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda column: column.update(outputs=["y"]),
        lambda column: column.update(means=[]),
        lambda column: column["steps"][0][0].update(kind="os"),
        lambda column: column["steps"][0][0].update(fill=None),
        lambda column: column["steps"][0][0].update(more=1),
        lambda column: column["steps"][1][0].update(scale=float("nan")),
    ],
)
def test_spoilt_json_is_refused(spoil: Any) -> None:
    ours, _, _ = fitted([1.0, None, 3.0], "impute", "standardise")
    stored = ours.to_json()
    assert ColumnPreparation.from_json(stored) == ours
    spoil(stored["columns"][0])
    with pytest.raises((ValueError, KeyError, TypeError)):
        ColumnPreparation.from_json(stored)


@pytest.mark.parametrize(
    ("step", "spoilt"),
    [
        ("hash", {"columns": 10**12}),
        ("dates", {"zone": "Moon"}),
        ("dates", {"origin": "soon"}),
        ("one-hot", {"categories": 3}),
        ("bin", {"edges": ["a"]}),
    ],
)
def test_a_spoilt_state_is_refused(step: str, spoilt: dict[str, Any]) -> None:
    state = state_to_json(
        make_transformer(step, {}).fit(pl.Series("x", ["2024-01-01", "2024-01-02"]))
    )
    with pytest.raises((ValueError, KeyError)):
        state_from_json(state | spoilt)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"on_unseen": "warn"}, "prepare.on_unseen must be 'ignore' or 'error', but is 'warn'"),
        ({"missing": "drop"}, "prepare.missing must be 'impute' or 'keep', but is 'drop'"),
        (
            {"columns": {"x": {"categories": {"order": ["a", "b", "a"]}}}},
            "a category is in order twice",
        ),
        (
            {"columns": {"x": {"ordinal": {"order": ["a", "b", "a"]}}}},
            "a category is in order twice",
        ),
        ({"columns": {"x": {"dates": {"parts": ["year", "year"]}}}}, "name each part once"),
        ({"columns": {"x": {"dates": {"parts": []}}}}, "name each part once"),
        (
            {"columns": {"x": {"dates": {"origin": "2000-01-01T00:00+02:00"}}}},
            "without a time zone",
        ),
        ({"columns": {"x": {"bin": {"bins": 1}}}}, "bins must be 2 or more"),
        ({"columns": {"x": {"impute": {"strategy": "constant"}}}}, "needs a value"),
        ({"columns": {"x": {"impute": {"strategy": "mean", "value": 3.0}}}}, "needs a value"),
        ({"default": {"auto": {"decimal": ";"}}}, "auto: decimal must be"),
    ],
)
def test_settings_of_preparations_that_cannot_be_are_refused(
    given: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        read_recipe(given)
