"""What a client says of its block, against plain linear algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

import mtcd
from mtcd.core.errors import DataError
from mtcd.protocol.updates import LocalUpdates

X = np.random.default_rng(5).standard_normal((15, 4)) * [1.0, 3.0, 0.2, 1.0]
LABELS = np.arange(15) % 2


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("kind", "weighted"), [("ridge", False), ("logistic", False), ("logistic", True)]
)
def test_the_survey_of_a_block(kind: str, weighted: bool, sparse: bool) -> None:
    weights = np.linspace(0.5, 2.0, 15) if weighted else None
    data = mtcd.split(sp.csr_array(X) if sparse else X, LABELS, {"a": range(4)}, weights=weights)
    problem = mtcd.Glm(kind, l2=0.7).problem(data)
    # the largest weight is in the curvature
    relative = np.ones(15) if weights is None else weights / weights.max()
    scaled = X * np.sqrt(relative)[:, None]
    norm, squares = np.linalg.norm(scaled, 2) ** 2, np.linalg.norm(scaled) ** 2
    found = problem.client(0).survey()
    np.testing.assert_allclose(found, [1.0, 4.0, squares, norm, 4 * norm / squares], rtol=1e-6)
    curvature = (0.25 if kind == "logistic" else 1.0) * (1.0 if weights is None else weights.max())
    assert problem.client(0).smoothness == pytest.approx(curvature * norm + 0.7, rel=1e-6)


def test_the_survey_of_a_block_of_zeros() -> None:
    problem = mtcd.Glm("ridge", l2=0.7).problem(
        mtcd.split(np.zeros((3, 2)), np.arange(3), {"a": [0], "b": [1]})
    )
    assert problem.client(1).survey().tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]


@pytest.mark.parametrize("samples", [2, 3, 4])
def test_many_steps_on_few_samples_are_as_many_single_ones(samples: int) -> None:
    """Of a block that is wider than tall, of samples that are multiples of one."""
    row = np.random.default_rng(samples).standard_normal(5)
    block = np.outer(np.arange(1.0, samples + 1), row)
    client = (
        mtcd.Glm("ridge", l2=0.3).problem(mtcd.split(block, np.arange(samples) + 1.0, 1)).client(0)
    )
    eta = 0.5 / client.smoothness
    together, alone = np.zeros(samples), np.zeros(samples)
    theta = client.local_update(np.ones(5), together, LocalUpdates(4, eta))
    one_by_one = np.ones(5)
    for _ in range(4):
        one_by_one = client.local_update(one_by_one, alone, LocalUpdates(1, eta))
    np.testing.assert_allclose(theta, one_by_one, rtol=1e-9)
    np.testing.assert_allclose(together, alone, rtol=1e-9, atol=1e-12)


def test_vertical_data_must_be_split_as_the_model_was() -> None:
    data = mtcd.split(X, LABELS, {"a": [0, 1], "b": [2, 3]})
    run = mtcd.train(data, mtcd.Glm("ridge", l2=1.0), "path", mtcd.STCD(), mtcd.Stop(iterations=2))
    np.testing.assert_allclose(run.model.decision(data), run.model.decision(X))
    for other in ({"a": [0, 1], "c": [2, 3]}, {"a": [0, 2], "b": [1, 3]}):
        with pytest.raises(DataError, match="split differently"):
            run.predict(mtcd.split(X, LABELS, other))
