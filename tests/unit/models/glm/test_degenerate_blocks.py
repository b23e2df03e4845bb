"""Local updates of blocks with rows or columns of zeros, against single steps."""

import numpy as np
import pytest

import mtcd
from mtcd.protocol.model import LocalUpdates

RNG = np.random.default_rng(8)


@pytest.mark.parametrize("kind", ["ridge", "logistic"])
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4), (2, 5), (5, 1)])
@pytest.mark.parametrize("zeros", ["none", "row", "column", "all but one", "all"])
def test_many_steps_are_as_many_single_ones(shape: tuple[int, int], zeros: str, kind: str) -> None:
    X = RNG.standard_normal(shape)
    if zeros == "row":
        X[-1] = 0.0
    if zeros == "column":
        X[:, 0] = 0.0
    if zeros.startswith("all"):
        X[1 if zeros == "all but one" else 0 :] = 0.0
    labels = np.arange(shape[0]) % 2
    client = mtcd.Glm(kind, l2=0.3).problem(mtcd.split(X, labels, 1)).client(0)
    majorise = kind != "ridge"
    eta, start = 0.7 / client.smoothness, RNG.standard_normal(shape[1])
    score = RNG.standard_normal(shape[0])
    together, alone = score.copy(), score.copy()
    theta = client.local_update(start, together, LocalUpdates(5, eta, majorise=majorise))
    one_by_one, curvature = start, 0.25 if majorise else 1.0
    # the first step is that on f itself
    slope = client.local_update(start, alone.copy(), LocalUpdates(1, eta))
    gradient = (start - slope) / eta
    for _ in range(5):
        step = -eta * gradient
        gradient = gradient + curvature * X.T @ (X @ step) + 0.3 * step
        one_by_one, alone = one_by_one + step, alone + X @ step
    np.testing.assert_allclose(theta, one_by_one, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12)
