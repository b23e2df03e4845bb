"""What a client says of its block, against plain linear algebra."""

import numpy as np
import pytest
import scipy.sparse as sp

import mtcd
from mtcd.models.glm.client import ANY, MOST_STEPS

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
    logs = np.log(np.linalg.norm(scaled, axis=0) ** 2).sum()
    exact = [1.0, 4.0, squares, norm, 4 * norm / squares, logs]
    np.testing.assert_allclose(found, exact, rtol=1e-6)
    curvature = (0.25 if kind == "logistic" else 1.0) * (1.0 if weights is None else weights.max())
    assert problem.client(0).smoothness == pytest.approx(curvature * norm + 0.7, rel=1e-6)


def test_the_survey_of_a_block_of_zeros() -> None:
    problem = mtcd.Glm("ridge", l2=0.7).problem(
        mtcd.split(np.zeros((3, 2)), np.arange(3), {"a": [0], "b": [1]})
    )
    assert problem.client(1).survey().tolist() == [1.0, 1.0, 0.0, 0.0, 1.0, 0.0]


def test_columns_of_zeros_count_as_the_mean_of_the_block() -> None:
    X = np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 0.0]])
    problem = mtcd.Glm("ridge", l2=0.7).problem(mtcd.split(X, np.arange(3), {"a": [0, 1]}))
    expected = np.log(25.0) + np.log(25.0 / 2)
    assert problem.client(0).survey()[-1] == pytest.approx(expected, rel=1e-12)


def test_only_steps_in_closed_form_may_be_very_many() -> None:
    data = mtcd.split(X, LABELS, {"a": range(4)})
    ridge = mtcd.Glm("ridge", l2=0.7).problem(data).client(0)
    logistic = mtcd.Glm("logistic", l2=0.7).problem(data).client(0)
    assert ridge.most_steps(False) == ridge.most_steps(True) == logistic.most_steps(True) == ANY
    assert logistic.most_steps(False) == MOST_STEPS
    lasso = mtcd.Glm("linear", l1=0.7).problem(data).client(0)
    assert lasso.most_steps(True) == MOST_STEPS
