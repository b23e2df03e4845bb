"""The layer that scales columns, as the first of a network."""

import numpy as np
import torch

from mtcd.models.splitnet.nets.scaling import StandardScaling, scaling_of


def test_columns_have_zero_mean_and_unit_variance_and_constant_ones_are_zero() -> None:
    rows = np.random.default_rng(0).standard_normal((50, 3)).astype(np.float32) * [
        1.0,
        30.0,
        1e-3,
    ] + [0.0, 7.0, -2.0]
    rows = np.column_stack([rows, np.full(50, 3.25), np.zeros(50)]).astype(np.float32)
    layer = scaling_of(rows)
    scaled = layer(torch.as_tensor(rows)).numpy()
    np.testing.assert_allclose(scaled.mean(axis=0), 0.0, atol=1e-3)
    np.testing.assert_allclose(scaled.std(axis=0), [1.0, 1.0, 1.0, 0.0, 0.0], atol=1e-3)
    other = layer(torch.full((1, 5), 4.0)).numpy()[0]
    assert other[3:].tolist() == [0.75, 4.0]  # by how much a new sample differs from the constant


def test_a_new_layer_changes_nothing() -> None:
    rows = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(StandardScaling(3)(rows), rows)
