"""Linear estimators say if they end before the optimum; the estimate of the gap against the optimum
itself."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge

import mtcd
from mtcd import MTCDClassifier, MTCDRegressor
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.models.glm.optimum.optimum import optimum
from mtcd.models.glm.optimum.remaining_gap import remaining_gap
from problems import MODELS, make_data


def loans(samples: int = 1500, columns: int = 12) -> tuple[Any, Any]:
    """Columns like those of loans: amounts beside shares, of sizes from 1e-2 to 1e5, some nearly
    alike."""
    rng = np.random.default_rng(7)
    base = rng.standard_normal((samples, columns))
    base[:, 1::2] = base[:, ::2] + 0.05 * base[:, 1::2]  # bills of months in a row
    sizes = np.logspace(-2, 5, columns)
    score = base @ rng.standard_normal(columns)
    return np.exp(0.3 * base) * sizes + sizes, score + rng.logistic(size=samples)


def true_gap(estimator: Any, X: Any, y: Any) -> float:
    """The relative gap of an estimator with an l2 penalty of 1 to that of scikit-learn."""

    def objective(one: Any) -> float:
        coefficients, scores = np.ravel(one.coef_), X @ np.ravel(one.coef_) + one.intercept_
        losses = (
            np.logaddexp(0, scores) - y * scores
            if hasattr(one, "classes_")
            else 0.5 * (y - scores) ** 2
        )
        return float(losses.sum() + 0.5 * coefficients @ coefficients)

    if hasattr(estimator, "classes_"):
        best = LogisticRegression(C=1.0, tol=1e-12, max_iter=1000, solver="newton-cholesky")
    else:
        best = Ridge(alpha=1.0, solver="cholesky")
    least = objective(best.fit(X, y))
    return (objective(estimator) - least) / least


def said_gap(warning: Any) -> float:
    found = re.search(r"about (\S+) \(relatively\) above", str(warning.message))
    return float(found[1])


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_a_plateau_above_the_optimum_is_told_with_its_gap(kind: str) -> None:
    X, target = loans()
    X = X / X.std(axis=0) * np.logspace(-2, 5, X.shape[1])
    y = (target > np.median(target)).astype(float) if kind == "classes" else target
    estimator = MTCDClassifier(tol=1e-5) if kind == "classes" else MTCDRegressor(tol=1e-5)
    # a first-order method, which such columns slow down
    estimator.set_params(method=mtcd.STCD(local_updates=5, walk="tour"))
    with pytest.warns(
        ConvergenceWarning, match="stopped on a plateau after .* iterations.*StandardScaler"
    ) as caught:
        estimator.fit(X, y)
    assert estimator.run_.status == "plateau"
    gap = true_gap(estimator, X, y)
    assert gap > 1e-3
    assert said_gap(caught[0]) == pytest.approx(gap, rel=0.1)
    assert caught[0].filename == __file__, "the warning names the line that called fit"


@pytest.mark.parametrize(
    "estimator", [MTCDClassifier(), MTCDRegressor(), MTCDRegressor(loss="huber", l1=1.0)]
)
def test_the_limit_on_iterations_is_told(estimator: Any) -> None:
    X, target = loans()
    y = (target > 0).astype(float) if isinstance(estimator, MTCDClassifier) else target
    with pytest.warns(
        ConvergenceWarning, match="ended at its limit after .* iterations.*increase max_iter"
    ):
        estimator.set_params(max_iter=12).fit(X, y)


@pytest.mark.parametrize("kind", ["classes", "values"])
def test_the_default_method_arrives_on_columns_in_raw_units(kind: str) -> None:
    """Tours see the scales of columns, and solve blocks: no warning, and at the optimum."""
    X, target = loans(600)
    y = (target > np.median(target)).astype(float) if kind == "classes" else target
    estimator = MTCDClassifier() if kind == "classes" else MTCDRegressor()
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        estimator.fit(X, y)
    assert true_gap(estimator, X, y) < 1e-5


@pytest.mark.parametrize("tol", [1e-8, 1e-4])
def test_columns_of_one_size_give_no_warning(tol: float) -> None:
    X, target = loans(300)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MTCDClassifier(tol=tol).fit(X, target > 0)
        MTCDClassifier(tol=tol, loss="squared-hinge").fit(X, target > 0)
        MTCDClassifier(tol=tol).fit(sp.csr_matrix(X), np.digitize(target, [-1, 1]))
        MTCDRegressor(tol=tol).fit(X, target, sample_weight=np.arange(len(target)))
        MTCDRegressor(tol=tol, loss="huber", l2=0.0).fit(X, target)
        MTCDRegressor(tol=tol, l1=20.0, l2=0.0).fit(X, target)


def test_a_perfect_fit_gives_no_warning_even_at_the_limit() -> None:
    X, _ = loans(200)
    X = X[:, ::2] / X[:, ::2].std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = MTCDRegressor(l2=0.0, tol=0.0, max_iter=80).fit(X, X @ np.arange(6.0) + 1)
    # with tol=0, rounding decides whether f still falls
    assert fitted.run_.status in ("iterations", "plateau")
    np.testing.assert_allclose(fitted.coef_, np.arange(6.0), atol=1e-6)


def test_trees_count_their_hops_and_do_not_converge() -> None:
    X, target = loans(300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mtcd.TreesRegressor(max_iter=2).fit(X, target)


def at_shares(problem: LinearProblem, shares: tuple[float, ...]) -> list[tuple[float, list[Any]]]:
    """The relative gap, and the parameters, at points on the way from a random one to the
    optimum."""
    best = optimum(problem.blocks, problem.labels, problem.loss, problem.penalties)
    rng = np.random.default_rng(1)
    away = [rng.standard_normal(theta.shape) for theta in best.parameters]
    found = []
    for share in shares:
        theta = [to + share * by for to, by in zip(best.parameters, away, strict=True)]
        found.append(((problem.evaluate(theta) - best.value) / best.value, theta))
    return found


# the classes of the model without a penalty are separable, so that no parameters attain the least
# objective
@pytest.mark.parametrize(
    "model", [model for model in MODELS if model.l1 or model.l2_weight], ids=lambda m: m.kind
)
def test_the_estimate_is_the_gap_to_the_optimum(model: Glm) -> None:
    problem = model.problem(make_data(model, 40, [2, 1, 3], seed=8))
    given = (problem.blocks, problem.labels, problem.loss, problem.penalties)
    for gap, theta in at_shares(problem, (0.3, 0.03, 3e-3)):
        assert remaining_gap(*given, theta, 1e-9) == pytest.approx(gap, rel=0.3, abs=1e-9)
    [(_, theta)] = at_shares(problem, (0.0,))
    assert remaining_gap(*given, theta, 1e-9) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("l1", [0.0, 0.5])
def test_of_many_columns_the_estimate_takes_no_hessian(
    monkeypatch: pytest.MonkeyPatch, l1: float
) -> None:
    model = Glm("logistic", l1=l1, l2=0.1, intercept=True)
    problem = model.problem(make_data(model, 60, [4, 3, 5], seed=2))
    found = at_shares(problem, (0.3, 0.01))
    monkeypatch.setattr("mtcd.models.glm.optimum.remaining_gap.DIRECT", 0)
    monkeypatch.setattr("mtcd.models.glm.optimum.solver_steps.hessian_of", None)
    for gap, theta in found:
        estimate = remaining_gap(
            problem.blocks, problem.labels, problem.loss, problem.penalties, theta, 1e-9
        )
        assert estimate == pytest.approx(gap, rel=0.3, abs=1e-8)
