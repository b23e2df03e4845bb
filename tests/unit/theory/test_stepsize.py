"""What the theorems' step size rests on: the smoothness of mini-batches, against all batches there
are."""

from itertools import combinations

import numpy as np
import pytest

import mtcd
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.theory.stepsize import descent_limit, primal_dual_limit, stability_limit, theorem_limit


def sigma(X: np.ndarray) -> float:
    return float(np.linalg.svd(X, compute_uv=False)[0] ** 2)


@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_no_batch_is_more_curved_than_the_bound_which_some_reach(kind: str) -> None:
    """A batch of B samples stands for all N, so it counts N/B times."""
    rng, N, l2, curvature = np.random.default_rng(0), 6, 0.3, 0.25 if kind == "logistic" else 1.0
    alone = np.diag([3.0, *np.full(N - 1, 0.1)])  # one sample has all the curvature there is
    same = np.tile(rng.standard_normal(N), (N, 1))
    for X in (rng.standard_normal((N, N)), alone, same):
        data = mtcd.split(X, np.arange(N) % 2, {"a": [0, 1], "b": range(2, N)})
        smoothness = BlockSmoothness(mtcd.Glm(kind, l2=l2).problem(data))
        for B in range(1, N + 1):
            worst = (
                max(N / B * curvature * sigma(X[list(rows)]) for rows in combinations(range(N), B))
                + l2
            )
            bound = smoothness.batch(B)
            assert bound >= worst * (1 - 1e-9)
            if X is alone or X is same:
                assert bound == pytest.approx(worst, rel=1e-6)
            assert theorem_limit(smoothness, 3, 5, B).value == pytest.approx(
                1 / (2 * bound * 3 * 5)
            )
        assert theorem_limit(smoothness, 3, 5).value == pytest.approx(
            1 / (2 * smoothness.overall * 3 * 5)
        )


@pytest.mark.parametrize("l2", [0.0, 0.7])
def test_primal_dual_steps_are_half_of_what_they_can_bear(l2: float) -> None:
    """1/mu_w = l2 + 2 mu_y |X_k|^2, for the mu_y that is given, or for mu_y = mu_w."""
    X = np.random.default_rng(1).standard_normal((9, 5))
    data = mtcd.split(X, X[:, 0], {"a": [0, 1], "b": [2, 3, 4]})
    smoothness = BlockSmoothness(mtcd.Glm("linear", l2=l2).problem(data))
    norm = max(sigma(X[:, :2]), sigma(X[:, 2:]))
    given, equal = primal_dual_limit(smoothness, 0.3), primal_dual_limit(smoothness, None)
    assert given.value == pytest.approx(1 / (l2 + 2 * 0.3 * norm), rel=1e-6)
    assert 1 / equal.value == pytest.approx(l2 + 2 * equal.value * norm, rel=1e-6)
    assert [given.proven, equal.proven] == [False, False]
    assert descent_limit(smoothness).value == pytest.approx(1 / (norm + l2), rel=1e-6)
    assert stability_limit(smoothness) == pytest.approx(2 / (norm + l2), rel=1e-6)


def test_auto_steps_are_those_with_which_no_visit_raises_f_where_that_is_known() -> None:
    X = np.random.default_rng(2).standard_normal((9, 5))
    data = mtcd.split(X, X[:, 0], {"a": [0, 1], "b": [2, 3, 4]})
    smoothness = BlockSmoothness(mtcd.Glm("ridge").problem(data))
    descent, limit = descent_limit(smoothness).value, theorem_limit(smoothness, 4, 1).value
    for tokens, averaged in ((1, False), (2, True)):
        rule = mtcd.MTCD(tokens, 4).stepsize_rules(smoothness).auto
        assert rule.value == descent
        assert ("nor does the average" in rule.reason) == averaged
    assert mtcd.MTCD(1, 4, combine="visitors").stepsize_rules(smoothness).auto.value == descent
    assert mtcd.MTCD(2, 4, combine="visitors").stepsize_rules(
        smoothness
    ).auto.value == pytest.approx(limit)
    small = mtcd.MTCD(2, 4, batch=3).stepsize_rules(smoothness).auto
    assert small.value == pytest.approx(theorem_limit(smoothness, 4, 1, 3).value)


@pytest.mark.parametrize("clients", [1, 2, 5])
def test_ridge_is_as_curved_as_its_gram_matrix_and_the_penalty(clients: int) -> None:
    """L = lambda_max(X^T X) + l2 for the loss |X theta - y|^2/2, however many clients hold the
    columns."""
    X = np.random.default_rng(0).standard_normal((12, 5))
    problem = mtcd.Glm("ridge", l2=0.7).problem(mtcd.split(X, X[:, 0], clients))
    found = BlockSmoothness(problem)
    scale = problem.loss.curvature
    assert found.overall == pytest.approx(
        scale * np.linalg.eigvalsh(X.T @ X)[-1] + found.l2, rel=1e-3
    )
    grams = [np.linalg.eigvalsh(part.T @ part)[-1] for part in problem.blocks]
    assert found.blocks == pytest.approx(scale * np.array(grams) + found.l2, rel=1e-3)


@pytest.mark.parametrize(
    ("method", "beyond"),
    [
        (mtcd.MTCD(tokens=2, hops=3, combine="average"), None),
        (mtcd.MTCD(tokens=2, hops=3, combine="visitors"), "combine: visitors"),
        (mtcd.MTCD(tokens=1, hops=3, combine="visitors"), None),
        (mtcd.MTCD(tokens=2, hops=3, combine="cluster"), None),
    ],
    ids=lambda value: value.describe() if isinstance(value, mtcd.MTCD) else "",
)
def test_the_limit_says_which_settings_the_theorems_do_not_cover(
    method: mtcd.MTCD, beyond: str | None
) -> None:
    smoothness = BlockSmoothness(
        mtcd.Glm("ridge").problem(mtcd.split(np.eye(4), np.arange(4.0), 2))
    )
    rule = method.stepsize_rules(smoothness).limit
    assert rule.proven == (beyond is None)
    assert ("rule of thumb" in rule.reason) == (beyond is not None)
    assert beyond is None or beyond in rule.reason


@pytest.mark.parametrize("weighted", [False, True])
def test_the_largest_norm_of_a_block_knows_neither_curvature_nor_penalty_nor_weights(
    weighted: bool,
) -> None:
    X = np.random.default_rng(3).standard_normal((9, 5))
    y = np.array([0, 1, 1, 1, 1, 1, 1, 1, 0])
    data = mtcd.split(X, y, {"a": [0, 1], "b": [2, 3, 4]})
    model = mtcd.Glm("logistic", l2=0.7, class_weight={0: 9.0, 1: 1.0} if weighted else None)
    smoothness = BlockSmoothness(model.problem(data))
    assert smoothness.norm == pytest.approx(max(sigma(X[:, :2]), sigma(X[:, 2:])), rel=1e-6)


@pytest.mark.parametrize("l1", [0.0, 0.1])
@pytest.mark.parametrize("beyond", [[], ["momentum"]])
def test_the_rule_says_what_it_rests_on_and_whether_it_is_proven(
    l1: float, beyond: list[str]
) -> None:
    X = np.random.default_rng(4).standard_normal((8, 3))
    data = mtcd.split(X, X[:, 0], {"a": [0], "b": [1, 2]})
    smoothness = BlockSmoothness(mtcd.Glm("linear", l1=l1, l2=0.2).problem(data))
    for batch in (None, 2):
        rule = theorem_limit(smoothness, 4, 3, batch, beyond)
        named = [*(["l1"] if l1 else []), *beyond]
        assert rule.proven == (not named)
        assert ("rule of thumb" in rule.reason) == bool(named)
        assert (f"they do not cover {' and '.join(named)})" in rule.reason) == bool(named)
        assert ("L, of a mini-batch at worst, =" in rule.reason) == (batch is not None)
        assert rule.reason.endswith(f"= {smoothness.batch(batch):.4g}, S = 4, Q = 3")
