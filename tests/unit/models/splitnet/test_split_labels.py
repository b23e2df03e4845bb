"""Losses, labels and outputs of split networks."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from mtcd.core.errors import ConfigError, DataError
from mtcd.models.splitnet.labels import (
    check_outputs,
    class_probabilities,
    decide,
    encode,
    find_loss,
    split_outputs,
    squared,
)


def test_outputs_as_probabilities_of_classes() -> None:
    two, three = np.array([0.3, -2.0]), np.array([[0.0, 1.0, -1.0], [5.0, 5.0, 2.0]])
    sigmoid = 1 / (1 + np.exp(-two))
    for one_output in (two, two[:, None]):
        np.testing.assert_allclose(
            class_probabilities(one_output), np.column_stack([1 - sigmoid, sigmoid])
        )
    np.testing.assert_allclose(
        class_probabilities(three), np.exp(three) / np.exp(three).sum(axis=1, keepdims=True)
    )
    np.testing.assert_allclose(class_probabilities(three[:, :2]).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("loss", "labels", "expected"),
    [
        (None, np.array([0, 1]), (functional.cross_entropy, True)),
        (None, np.array(["a", "b"]), (functional.cross_entropy, True)),
        (None, np.arange(50.0), (functional.cross_entropy, True)),
        (None, np.arange(51.0), (squared, False)),
        (None, np.array([0.0, 1.0, 0.5]), (squared, False)),
        ("squared", np.array([0.0, 1.0]), (squared, False)),
        ("squared", np.array([0, 1]), (squared, False)),
        ("cross-entropy", np.array([0.0, 1.0]), (functional.cross_entropy, True)),
        (functional.mse_loss, np.array([0, 1]), (functional.mse_loss, True)),
        (functional.mse_loss, np.array([0.0, 1.0]), (functional.mse_loss, False)),
    ],
)
def test_whole_numbers_are_classes_unless_there_are_many(
    loss: Any, labels: Any, expected: Any
) -> None:
    assert find_loss(loss, labels) == expected


def test_labels_are_numbered_by_class_and_an_unknown_one_is_told() -> None:
    assert encode(np.array(["b", "a", "c"]), ("a", "b", "c")).tolist() == [1, 0, 2]
    values = encode(np.array([0.5, 2.0]), None)
    assert (values.tolist(), values.dtype) == ([0.5, 2.0], torch.float32)
    with pytest.raises(DataError, match="row 3 is 'd', which no training sample has: a, b"):
        encode(np.array(["b", "a", "d", "e"]), ("a", "b"))


def test_outputs_decide_on_a_class_or_are_values() -> None:
    one, two = torch.tensor([[-1.0], [0.0], [0.5]]), torch.tensor([[0.0, 1.0], [3.0, 2.0]])
    assert decide(one, ("a", "b")).tolist() == [0, 0, 1]
    assert decide(two, ("a", "b")).tolist() == [1, 0]
    for values in (one, one[:, 0]):
        assert decide(values, None).tolist() == [-1.0, 0.0, 0.5]
    assert torch.equal(decide(two, None), two)
    assert squared(one, torch.tensor([1.0, 0.0, 0.5])).item() == pytest.approx(4 / 3)


def test_outputs_with_known_labels() -> None:
    values = split_outputs(torch.tensor([[1.5], [-2.0]]), np.array([1, 3]), None)
    assert (values.labels.tolist(), values.predicted.tolist()) == ([1.0, 3.0], [1.5, -2.0])
    assert values.labels.dtype == values.decision.dtype == float
    classes = split_outputs(torch.tensor([[1.5, 2.0], [1.0, 0.0]]), np.array([1, 1]), ("a", "b"))
    assert (classes.labels.tolist(), classes.predicted.tolist()) == ([1, 1], [1, 0])


@pytest.mark.parametrize("shape", [(3,), (2,), (2, 3, 1), (2, 1)])
def test_outputs_of_other_shapes_than_one_row_for_each_sample_are_refused(
    shape: tuple[int, ...],
) -> None:
    with pytest.raises(ConfigError, match="fusion module"):
        check_outputs(torch.zeros(shape), 2, ("a", "b", "c"), functional.cross_entropy)
    check_outputs(torch.zeros(2, 3), 2, ("a", "b", "c"), functional.cross_entropy)
    with pytest.raises(ConfigError, match=r"outputs of shape \(4, 5\): make it give 3"):
        check_outputs(torch.zeros(2, 4, 5), 2, ("a", "b", "c"), functional.cross_entropy)
    check_outputs(torch.zeros(2), 2, None, squared)
    for wrong, got in ((torch.zeros(3), r"\(3,\)"), ("no", "str")):
        with pytest.raises(ConfigError, match=f"a row of outputs for every sample, but gave {got}"):
            check_outputs(wrong, 2, None, squared)
