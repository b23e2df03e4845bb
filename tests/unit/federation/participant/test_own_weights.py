"""The label holder's weights: as bytes, in its table and in the files."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federations import written
from mtcd.core.errors import ConfigError, DataError, WireError
from mtcd.federation.file import read_federation
from mtcd.federation.node.opening import Agreed
from mtcd.federation.participant.labels import labels_from_bytes, labels_to_bytes
from mtcd.federation.participant.table import PartyTable, own_table
from mtcd.models.glm.party.participant import LinearParticipant
from own_parts import bundles

NUMBERS = st.floats(0, 1e99)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "c"]), NUMBERS), min_size=2, max_size=9))
def test_weights_arrive_as_they_were(samples: list[tuple[str, float]]) -> None:
    labels, weights = (
        np.array([one for one, _ in samples]),
        np.array([weight for _, weight in samples]),
    )
    if len(set(labels)) == 1 or not weights.any():
        with pytest.raises(DataError):
            labels_to_bytes(labels, weights)
        return
    arrived, weighing = labels_from_bytes(labels_to_bytes(labels, weights), len(labels))
    assert arrived.tolist() == labels.tolist()
    assert weighing.tobytes() == weights.tobytes()


WRONG = {
    "negative": [1.0, -1e-9, 1.0],
    "not a number": [1.0, np.nan, 1.0],
    "infinite": [np.inf, 1.0, 1.0],
    "too large": [1.0, 1e300, 1.0],
    "all 0": [0.0, 0.0, 0.0],
    "too few": [1.0, 77.25],
    "too many": [1.0, 77.25, 1.0, 1.0],
    "none": [],
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_weights_are_refused_on_arrival(name: str) -> None:
    content = (
        labels_to_bytes(np.array([1.0, 2.0, 3.0]), np.ones(3))[:-24]
        + np.array(WRONG[name]).tobytes()
    )
    with pytest.raises(WireError) as refused:
        labels_from_bytes(content, 3)
    assert refused.value.field == (
        "labels" if name in ("too few", "too many", "none") else "weights"
    )
    assert not any(one in str(refused.value) for one in ("1e", "-1", "nan", "inf", "77"))


@pytest.mark.parametrize("mark", [False, None, 1, "true", [], {}])
def test_a_head_that_says_otherwise_is_refused(mark: Any) -> None:
    content = np.array([1.0, 2.0, 1.0, 1.0]).tobytes()
    for numbers in (content, content[:16]):
        with pytest.raises(WireError, match="keys"):
            labels_from_bytes(
                json.dumps({"kind": "f", "weights": mark}).encode() + b"\n" + numbers, 2
            )


@settings(max_examples=300)
@given(st.data())
def test_damaged_weights_are_refused_or_are_weights(data: st.DataObject) -> None:
    content = bytearray(labels_to_bytes(np.array(["x", "yes", "x"]), np.array([0.0, 2.5, 1e9])))
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        _, weights = labels_from_bytes(bytes(content), 3)
    except WireError:
        return
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert weights.any()


# Tables and files

CSV = "patient,age,bmi,w,outcome\n007,30,21.5,2,yes\n8,41,30,0,no\nx9,52,25,0.5,yes\n"
GIVEN = {"key": "patient", "weights": "w"}


def read(
    folder: Path, name: str = "b", content: str = CSV, given: Any = None, **changes: Any
) -> PartyTable:
    (folder / "own.csv").write_text(content)
    return own_table(
        bundles(("a", "b"), held_by="b", **changes)[name],
        folder,
        folder / "own.csv",
        **(given or GIVEN),
    )


def test_the_weights_are_read_and_are_no_feature(tmp_path: Path) -> None:
    given = read(tmp_path)
    named = read(tmp_path, given={"key": "patient"}, labels__weights="w")
    instead = read(tmp_path, labels__weights="bmi", given={**GIVEN, "columns": ["age", "bmi"]})
    prepared = read(tmp_path, given={**GIVEN, "prepare": "auto"})
    for table in (given, named, instead, prepared):
        assert table.columns == ("age", "bmi")
        assert table.weights.tolist() == [2.0, 0.0, 0.5]
    assert read(tmp_path, given={"key": "patient"}).weights is None


BAD: list[tuple[str, str, dict[str, Any], str]] = [
    ("b", CSV.replace("0.5", "much"), GIVEN, "'w' of .*own.csv is not numeric: row 3 holds 'much'"),
    ("b", CSV.replace("0.5", ""), GIVEN, "'w' of .*own.csv is missing in row 3"),
    ("b", CSV.replace("0.5", "-0.5"), GIVEN, "'w' of .*own.csv: The weight of row 3 is negative"),
    ("b", CSV.replace("0.5", "inf"), GIVEN, "'w' of .*own.csv is infinite in row 3"),
    (
        "b",
        CSV.replace("0.5", "0").replace(",2,", ",0,"),
        GIVEN,
        "'w' of .*own.csv: All weights are 0",
    ),
    ("b", CSV, {**GIVEN, "weights": "wt"}, "no weight column 'wt': did you mean 'w'.*--weights"),
    ("b", CSV, {**GIVEN, "weights": "outcome"}, "'outcome' cannot be the weight and the label"),
    (
        "b",
        CSV,
        {**GIVEN, "weights": "patient"},
        "'patient' cannot be the weight and the label or the id",
    ),
    ("b", CSV, {**GIVEN, "columns": ["age", "w"]}, "'w', which is the weight"),
    ("a", CSV, GIVEN, "--weights w: weights come with the labels, which 'b' holds"),
]


@pytest.mark.parametrize(
    ("name", "content", "given", "said"), BAD, ids=lambda value: str(value)[:40]
)
def test_columns_that_cannot_be_weights(
    tmp_path: Path, name: str, content: str, given: Any, said: str
) -> None:
    with pytest.raises(DataError, match=said):
        read(tmp_path, name, content, given)


def holder(table: PartyTable, **changes: Any) -> LinearParticipant:
    alone = {"method": {"kind": "stcd"}, "server": None, "alignment": "given order"}
    config = bundles(
        ("a", "b"), held_by="b", model={"kind": "logistic", "l2": 1.0}, **alone, **changes
    )["b"]
    bundle: Any = SimpleNamespace(config=config, folder=table.path.parent)
    return LinearParticipant(bundle, table)


def test_common_samples_that_all_have_weight_0_are_refused(tmp_path: Path) -> None:
    participant = holder(read(tmp_path, content=CSV.replace(",2,yes", ",0,yes")))
    with pytest.raises(DataError, match="All common samples to train on have weight 0"):
        participant.labels_for_facts([0, 1])
    with pytest.raises(WireError, match="labels"):
        participant.facts([0, 1, 2], b"nonsense")


def test_after_a_restart_the_holder_has_the_same_weights(tmp_path: Path) -> None:
    weighing, plain = read(tmp_path), read(tmp_path, given={"key": "patient"})
    other = read(tmp_path, content=CSV.replace("0.5", "0.6"))
    settings = {"samples": 3, "outputs": 1, "stepsize": 0.1, "notes": []}
    log: Any = None
    for begun, again in [(weighing, plain), (plain, weighing), (weighing, other)]:
        first = holder(begun)
        sent = labels_to_bytes(first.held_labels(range(3)), first.held_weights(range(3)))
        agreed = Agreed("run", settings, sent, b"")
        holder(begun).role(agreed, log)
        with pytest.raises(DataError, match="not those that this run began with.*--weights"):
            holder(again).role(agreed, log)


def test_split_networks_take_none(tmp_path: Path) -> None:
    split = {"model": {"kind": "split", "client": "mlp"}, "method__stepsize": 0.1}
    with pytest.raises(
        ConfigError, match="--weights w: split networks do not take weights of samples"
    ):
        read(tmp_path, labels__shared_with=["parties", "server"], **split)


def test_only_the_holder_knows_the_name_of_the_column() -> None:
    made = bundles(("a", "b"), held_by="b", labels__weights="w")
    assert {name: bundle.labels.weights for name, bundle in made.items()} == {
        "a": None,
        "b": "w",
        "server": None,
    }


def test_files_with_weights(tmp_path: Path) -> None:
    read_federation(written(tmp_path, labels__weights="w"))
    # classes that only the holder knows
    text = {"kind": "logistic", "class_weight": {"no": 1, "yes": 5}}
    read_federation(written(tmp_path, model=text))
    refused: list[tuple[dict[str, Any], str]] = [
        ({"labels__weights": "x"}, "'x' is the weight, not a feature"),
        ({"labels__weights": "outcome"}, "labels.weights: 'outcome' is the label or the id"),
        ({"labels__weights": "patient"}, "labels.weights: 'patient' is the label or the id"),
        ({"model": {"kind": "ridge", "class_weight": {"no": 1}}}, "class_weight is for classes"),
        ({"labels__weight": "w"}, "weights"),
    ]
    for changes, said in refused:
        with pytest.raises(ConfigError, match=said):
            read_federation(written(tmp_path, **changes))


def test_files_of_split_networks_with_weights(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    changes: dict[str, Any] = {
        "labels": {"held_by": "b", "weights": "w", "shared_with": ["parties", "server"]},
        "model": {"kind": "split", "client": "mlp"},
        "method": {"kind": "mtcd", "tokens": 1, "hops": 4, "stepsize": 0.1},
    }
    with pytest.raises(
        ConfigError, match=r"labels\.weights: split networks do not take weights of samples"
    ):
        read_federation(written(tmp_path, **changes))
