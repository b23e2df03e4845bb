"""Trained split networks: predictions for samples in all forms, and their files."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import nn

import mtcd
from mtcd.core.errors import ConfigError, DataError
from mtcd.models.splitnet.trained import CHUNK, TrainedSplit, read_trained

RNG = np.random.default_rng(1)
SIZES = {"ann": 1, "bob": 2, "eve": 3}


def features(samples: int) -> dict[str, Any]:
    return {
        name: RNG.standard_normal((samples, size)).astype(np.float32)
        for name, size in SIZES.items()
    }


def trained(classes: Any = ("no", "yes"), outputs: int = 2, **others: Any) -> TrainedSplit:
    torch.manual_seed(0)
    nets = {name: nn.Linear(size, 2) for name, size in SIZES.items()}
    shapes = {name: (size,) for name, size in SIZES.items()}
    return TrainedSplit(nets, nn.Linear(6, outputs), "concat", (2, 2, 2), classes, shapes, **others)


def test_predictions_in_chunks_are_those_of_the_modules() -> None:
    one, new = trained(), features(CHUNK + 3)
    with torch.no_grad():
        h = torch.cat([one.modules[name](torch.as_tensor(new[name])) for name in SIZES], dim=1)
        decision = one.fusion(h).numpy()
    np.testing.assert_allclose(one.decision(new), decision, rtol=1e-5, atol=1e-6)
    assert (one.predict(new) == np.array(["no", "yes"])[decision.argmax(axis=1)]).all()
    odds = np.exp(decision[:, 1] - decision[:, 0])
    np.testing.assert_allclose(one.predict_proba(new)[:, 1], odds / (1 + odds), rtol=1e-4)
    columns = one.columns_of(new)
    assert list(columns) == ["prediction", "p_no", "p_yes"]
    known = one.outputs(new, np.where(np.arange(CHUNK + 3) % 2, "yes", "no"))
    assert known.labels[:4].tolist() == [0, 1, 0, 1]
    assert (known.predicted == decision.argmax(axis=1)).all()
    assert repr(one) == "TrainedSplit(3 client(s): Linear -> concat -> Linear, 32 parameters)"


def test_values_have_no_probabilities() -> None:
    one, new = trained(None, 1), features(4)
    np.testing.assert_allclose(one.predict(new), one.decision(new)[:, 0])
    assert list(one.columns_of(new)) == ["prediction"]
    assert one.outputs(new, np.arange(4)).labels.tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(ConfigError, match="have no probabilities"):
        one.predict_proba(new)


def test_new_samples_are_features_by_client_or_named_columns() -> None:
    named = trained(columns={"ann": ("a",), "bob": ("b", "c"), "eve": ("d", "e", "f")})
    X = RNG.standard_normal((4, 7)).astype(np.float32)
    frame = pl.DataFrame(X, schema=["f", "e", "x", "d", "c", "b", "a"], orient="row")
    given = {"ann": X[:, [6]], "bob": X[:, [5, 4]], "eve": X[:, [3, 1, 0]]}
    decision = named.decision(given)
    np.testing.assert_allclose(named.decision(frame), decision)
    np.testing.assert_allclose(
        named.decision(mtcd.VerticalDataset(given, np.array([0, 1, 0, 1]))), decision
    )
    table = mtcd.split(
        np.hstack([*given.values()]),
        np.array([0, 1, 0, 1]),
        clients=dict(zip(SIZES, ([0], [1, 2], [3, 4, 5]), strict=True)),
    )
    np.testing.assert_allclose(named.decision(table), decision)
    for wrong, says in (
        (X, "the features of each client, by its name"),
        ({"ann": given["ann"]}, "no features of client 'bob'"),
        ({**given, "eve": given["eve"][:2]}, "different numbers of new samples"),
        (
            {**given, "bob": given["eve"]},
            r"'bob' was trained on samples of shape \(2,\), .* of shape \(3,\)",
        ),
    ):
        with pytest.raises(DataError, match=says):
            named.decision(wrong)
    with pytest.raises(DataError, match="by its name"):
        trained().decision(frame)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(
    ("columns", "said"),
    [(None, "'bob'"), ({"ann": ("a",), "bob": ("b", "c"), "eve": tuple("def")}, "'c'")],
)
def test_new_samples_that_are_no_numbers_are_refused(value: float, columns: Any, said: str) -> None:
    """A network makes NaN of them, and the first class of NaN."""
    one, new = trained(columns=columns), features(3)
    new["bob"][1, 1] = value
    with pytest.raises(DataError, match=said):
        one.predict(new)


def test_columns_of_new_samples_are_prepared_as_in_training() -> None:
    frame = pl.DataFrame({"a": [1.0, 2.0, 4.0, 9.0], "b": ["x", "y", "x", "y"]})
    table = mtcd.split(
        frame, np.array([0, 1, 0, 1]), clients={"ann": ["a"], "bob": ["b"]}, prepare="auto"
    )
    given = mtcd.VerticalDataset.from_table(table)
    nets = {client: nn.Linear(size, 2) for client, (size,) in given.shapes.items()}
    one = TrainedSplit(
        nets, nn.Linear(4, 2), "concat", (2, 2), (0, 1), given.shapes, table.preparations
    )
    bare = TrainedSplit(nets, one.fusion, "concat", (2, 2), (0, 1), given.shapes)
    expected = bare.decision(dict(given.features))
    for new in (given, frame, table):
        np.testing.assert_allclose(one.decision(new), expected, rtol=1e-5)


def test_clients_that_share_a_module_are_written_with_a_copy_each(tmp_path: Path) -> None:
    """The format of the file takes no tensor twice."""
    shared = nn.Linear(2, 2)
    shapes = {"ann": (2,), "bob": (2,)}
    one = TrainedSplit(
        {"ann": shared, "bob": shared}, nn.Linear(4, 2), "concat", (2, 2), ("no", "yes"), shapes
    )
    about = one.write(tmp_path)
    model = mtcd.SplitModel({name: nn.Linear(2, 2) for name in shapes}, nn.Linear(4, 2))
    again = read_trained(tmp_path, about, model)
    new = {name: np.ones((3, 2), np.float32) for name in shapes}
    assert (again.decision(new) == one.decision(new)).all()


@pytest.mark.parametrize(
    "columns", [None, {"ann": ("a",), "bob": ("b", "c"), "eve": ("d", "e", "f")}]
)
@pytest.mark.parametrize("classes", [None, ("no", "yes")])
def test_a_trained_network_is_read_as_it_was_written(
    tmp_path: Path, classes: Any, columns: Any
) -> None:
    one = trained(classes, columns=columns)
    about = one.write(tmp_path)
    model = mtcd.SplitModel(
        {name: nn.Linear(size, 2) for name, size in SIZES.items()}, nn.Linear(6, 2)
    )
    again = read_trained(tmp_path, about, model)
    new = features(3)
    assert (again.decision(new) == one.decision(new)).all()
    for name in ("clients", "aggregation", "widths", "classes", "shapes", "columns"):
        assert getattr(again, name) == getattr(one, name)
    assert not any(module.training for module in (*again.modules.values(), again.fusion))
    fewer = mtcd.SplitModel({"ann": nn.Linear(1, 2)}, nn.Linear(6, 2))
    with pytest.raises(ConfigError, match="no representation for client 'bob'"):
        read_trained(tmp_path, about, fewer)
    bare = mtcd.SplitModel(model.representations, nn.Linear(6, 2, bias=False))
    with pytest.raises(ConfigError, match="do not fit the modules given: 'fusion/bias'"):
        read_trained(tmp_path, about, bare)
