"""f* against scikit-learn, CVXPY and the optimality conditions, and its cache."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.models.glm.optimum import optimum as optimum_module
from mtcd.models.glm.optimum import solver_newton, solver_steps
from mtcd.models.glm.optimum.optimum import Optimum, cached_optimum, optimum
from mtcd.models.glm.optimum.solver_problem import ScaledProblem
from mtcd.models.glm.penalty import Penalty
from mtcd.models.losses import Loss
from mtcd.models.losses.huber import Huber
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.multinomial import Multinomial
from mtcd.models.losses.squared import Squared
from mtcd.models.losses.squared_hinge import SquaredHinge


def standardised(X: Any) -> Any:
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def data(loss: Loss, rows: int | None = None) -> tuple[Any, Any]:
    """Bundled data that suits the loss, its labels encoded."""
    load = {Squared: load_diabetes, Huber: load_diabetes, Multinomial: load_wine}
    X, labels = load.get(type(loss), load_breast_cancer)(return_X_y=True)
    y = loss.encode(labels)[0]
    scale = y.std() if y.ndim == 1 and len(np.unique(y)) > 2 else 1.0
    return standardised(X)[:rows], y[:rows] / scale


def solve(
    X: Any,
    y: Any,
    loss: Loss,
    penalty: Penalty,
    clients: int = 3,
    intercept: bool = False,
    sparse: bool = False,
) -> Optimum:
    """The optimum over blocks of neighbouring columns; the last client holds the intercept."""
    if intercept:
        X = np.column_stack([X, np.ones(len(X))])
    blocks: list[Any] = [np.asfortranarray(part) for part in np.array_split(X, clients, axis=1)]
    if sparse:
        blocks = [sp.csr_array(block) for block in blocks]
    penalties = [Penalty(penalty.l1, penalty.l2)] * (clients - 1)
    return optimum(
        blocks, y, loss, [*penalties, Penalty(penalty.l1, penalty.l2, free=int(intercept))]
    )


def objective(
    X: Any, y: Any, loss: Loss, penalty: Penalty, theta: Any, intercept: Any = 0.0
) -> float:
    return loss.value(X @ theta + intercept, y) + penalty.value(theta)


def check(found: Optimum, reference: float, rel: float = 1e-9) -> None:
    assert found.value == pytest.approx(reference, rel=rel)
    assert found.value <= reference * (1 + 1e-11)  # nobody may do better than the optimum
    assert found.gap <= 1e-11 * found.value


@pytest.fixture
def closed_form_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The general solver would hide a mistake in the closed form."""
    monkeypatch.delattr(optimum_module, "minimise")


@pytest.mark.usefixtures("closed_form_only")
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("rows", [None, 8], ids=["tall", "wide"])
@pytest.mark.parametrize("sparse", [False, True])
def test_ridge(intercept: bool, rows: int | None, sparse: bool) -> None:
    X, y = data(Squared(), rows)
    penalty, X, y = Penalty(l2=0.7), X + 1.0, y + 3.0  # not centred: the intercept must matter
    model = Ridge(alpha=0.7, fit_intercept=intercept, solver="svd").fit(X, y)
    found = solve(X, y, Squared(), penalty, intercept=intercept, sparse=sparse)
    check(found, objective(X, y, Squared(), penalty, model.coef_, model.intercept_), rel=1e-11)
    coefficients = [*model.coef_, model.intercept_] if intercept else model.coef_
    np.testing.assert_allclose(np.concatenate(found.parameters), coefficients, atol=1e-8)


@pytest.mark.usefixtures("closed_form_only")
def test_ridge_with_an_intercept_at_every_client() -> None:
    """Unpenalised columns that are the same leave their coefficients open, not the value."""
    X, y = data(Squared())
    blocks = [np.column_stack([part, np.ones(len(X))]) for part in np.array_split(X, 3, axis=1)]
    model = Ridge(alpha=2.0, solver="svd").fit(X, y)
    for size in (1, 40):  # primal, then dual
        wide = [
            np.repeat(block, size, axis=1)[:, : size * (block.shape[1] - 1) + 1] for block in blocks
        ]
        found = optimum(wide, y, Squared(), [Penalty(l2=2.0 * size, free=1)] * 3)
        check(
            found,
            objective(X, y, Squared(), Penalty(l2=2.0), model.coef_, model.intercept_),
            rel=1e-11,
        )


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("l1", "l2"), [(20.0, 0.0), (0.5, 0.0), (5.0, 30.0)])
def test_lasso_and_elastic_net(l1: float, l2: float, intercept: bool) -> None:
    X, y = data(Squared())
    y, settings = y + 1.0, {"fit_intercept": intercept, "tol": 1e-13, "max_iter": 1_000_000}
    model = Lasso(alpha=l1 / len(y), **settings)
    if l2:
        model = ElasticNet(alpha=(l1 + l2) / len(y), l1_ratio=l1 / (l1 + l2), **settings)
    model.fit(X, y)
    penalty = Penalty(l1, l2)
    found = solve(X, y, Squared(), penalty, intercept=intercept)
    check(found, objective(X, y, Squared(), penalty, model.coef_, model.intercept_))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l2", [0.01, 1.0])
def test_logistic_l2(l2: float, intercept: bool, sparse: bool) -> None:
    X, y = data(Logistic())
    model = LogisticRegression(
        C=1 / l2, tol=1e-12, solver="newton-cholesky", max_iter=1000, fit_intercept=intercept
    )
    model.fit(X, y)
    found = solve(X, y, Logistic(), Penalty(l2=l2), intercept=intercept, sparse=sparse)
    check(found, objective(X, y, Logistic(), Penalty(l2=l2), model.coef_[0], model.intercept_))


def test_multinomial_l2_with_intercept() -> None:
    X, labels = load_digits(return_X_y=True)
    X, y = X / 16.0, Multinomial().encode(labels)[0]
    model = LogisticRegression(C=0.5, tol=1e-8, solver="newton-cg", max_iter=1000).fit(X, labels)
    found = solve(X, y, Multinomial(), Penalty(l2=2.0), intercept=True)
    check(found, objective(X, y, Multinomial(), Penalty(l2=2.0), model.coef_.T, model.intercept_))
    assert found.parameters[0].shape == (22, 10)


def test_squared_hinge_l2() -> None:
    X, y = data(SquaredHinge())
    model = LinearSVC(C=2.0, dual=False, fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y)
    found = solve(X, y, SquaredHinge(), Penalty(l2=0.5))
    check(found, objective(X, y, SquaredHinge(), Penalty(l2=0.5), model.coef_[0]), rel=1e-8)


def convex_loss(loss: Loss, z: Any, y: Any) -> Any:
    """The loss in CVXPY's words."""
    if isinstance(loss, Squared):
        return 0.5 * cp.sum_squares(z - y)
    if isinstance(loss, Huber):
        return 0.5 * cp.sum(cp.huber(z - y, loss.delta))
    if isinstance(loss, Logistic):
        return cp.sum(cp.logistic(z)) - y @ z
    if isinstance(loss, SquaredHinge):
        return cp.sum_squares(cp.pos(1 - cp.multiply(y, z)))
    return cp.sum(cp.log_sum_exp(z, axis=1)) - cp.sum(cp.multiply(y, z))


LOSSES = [Squared(), Huber(0.3), Logistic(), SquaredHinge(), Multinomial()]
PENALTIES = [Penalty(l1=2.0), Penalty(l1=0.05), Penalty(l2=0.5), Penalty(l1=0.5, l2=0.5)]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: f"l1={p.l1},l2={p.l2}")
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_against_cvxpy_with_intercept(loss: Loss, penalty: Penalty, sparse: bool) -> None:
    X, y = data(loss)
    keep = np.random.default_rng(0).choice(len(X), 120, replace=False)
    X, y = X[keep, :10], y[keep] + (0.5 if isinstance(loss, Huber) else 0.0)
    found = solve(X, y, loss, penalty, intercept=True, sparse=sparse)
    theta, b = cp.Variable((10, *y.shape[1:])), cp.Variable((1, *y.shape[1:]))
    z = X @ theta + np.ones((len(X), 1)) @ b
    cost = (
        convex_loss(loss, z, y)
        + penalty.l1 * cp.sum(cp.abs(theta))
        + penalty.l2 / 2 * cp.sum_squares(theta)
    )
    cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)
    check(found, objective(X, y, loss, penalty, theta.value, b.value[0]), rel=1e-7)
    check_conditions(X, y, loss, penalty, found)


def check_conditions(X: Any, y: Any, loss: Loss, penalty: Penalty, found: Optimum) -> None:
    """0 in gradient + l1 * d|theta|, on every coordinate, and a zero gradient of the intercept."""
    theta = np.concatenate(found.parameters)
    whole = np.column_stack([X, np.ones(len(X))])
    gradient = whole.T @ loss.gradient(whole @ theta, y)
    np.testing.assert_allclose(gradient[-1], 0.0, atol=1e-5)
    gradient, theta = gradient[:-1] + penalty.l2 * theta[:-1], theta[:-1]
    assert (np.abs(gradient) <= penalty.l1 + 1e-5).all()
    np.testing.assert_allclose(
        gradient[theta != 0], (-penalty.l1 * np.sign(theta))[theta != 0], atol=1e-5
    )


@pytest.mark.parametrize("loss", [Squared(), Huber(0.3)], ids=["squared", "huber"])
def test_no_penalty(loss: Loss) -> None:
    X, y = data(loss)
    found = solve(X, y, loss, Penalty(), intercept=True)
    if isinstance(loss, Squared):
        residual = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y)[1][0]
        check(found, 0.5 * residual, rel=1e-11)
    check_conditions(X, y, loss, Penalty(), found)


def test_a_different_penalty_at_every_client() -> None:
    X, y = data(Logistic())
    X, penalties = X[:, :9], [Penalty(l1=3.0), Penalty(l2=0.5), Penalty(l1=1.0, l2=2.0, free=1)]
    found = optimum(np.split(X, 3, axis=1), y, Logistic(), penalties)
    theta = [cp.Variable(3) for _ in range(3)]
    kept = [part[:2] if p.free else part for part, p in zip(theta, penalties, strict=True)]
    cost = convex_loss(Logistic(), X @ cp.hstack(theta), y)
    cost += sum(
        p.l1 * cp.norm1(t) + p.l2 / 2 * cp.sum_squares(t)
        for t, p in zip(kept, penalties, strict=True)
    )
    cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)
    value = Logistic().value(X @ np.concatenate([t.value for t in theta]), y)
    value += sum(p.value(t.value) for t, p in zip(theta, penalties, strict=True))
    check(found, value, rel=1e-7)


def test_a_penalty_so_large_that_nothing_is_left() -> None:
    X, y = data(Logistic())
    found = solve(X, y, Logistic(), Penalty(l1=1e6))
    assert found.value == pytest.approx(len(y) * np.log(2.0), rel=1e-14)
    assert not np.concatenate(found.parameters).any()


@pytest.mark.parametrize("penalty", [Penalty(l1=0.5), Penalty(l1=0.02), Penalty(l2=0.1)])
def test_badly_scaled_features(penalty: Penalty) -> None:
    """Raw breast cancer columns range from 1e-3 to 1e3. Different splits must find the same
    value."""
    X, labels = load_breast_cancer(return_X_y=True)
    y = Logistic().encode(labels)[0]
    values = [solve(X, y, Logistic(), penalty, clients=k, intercept=True).value for k in (1, 7)]
    assert values[0] == pytest.approx(values[1], rel=1e-11)
    assert values[0] < 0.2 * len(y)


@pytest.mark.parametrize("penalty", [Penalty(l1=1.0), Penalty(l2=1.0), Penalty(l1=0.5, l2=0.5)])
def test_paths_for_large_models_agree_with_the_direct_one(
    monkeypatch: pytest.MonkeyPatch, penalty: Penalty
) -> None:
    X, y = data(Logistic())
    X = standardised(
        X @ np.random.default_rng(0).standard_normal((30, 30))
        + 10 * np.random.default_rng(1).random(X.shape)
    )
    direct = solve(X, y, Logistic(), penalty, intercept=True)
    monkeypatch.setattr(solver_steps, "DIRECT", 2)
    assert solve(X, y, Logistic(), penalty, intercept=True).value == pytest.approx(
        direct.value, rel=1e-11
    )


def test_many_columns_with_l1_grow_the_working_set() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 1200))
    y = np.sign(X[:, :5].sum(axis=1) + rng.standard_normal(150))
    found = solve(X, y, SquaredHinge(), Penalty(l1=0.5), clients=40)
    model = LinearSVC(
        penalty="l1", C=2.0, dual=False, fit_intercept=False, tol=1e-10, max_iter=1_000_000
    )
    model.fit(X, y)
    check(found, objective(X, y, SquaredHinge(), Penalty(l1=0.5), model.coef_[0]), rel=1e-8)
    assert 101 < np.count_nonzero(np.concatenate(found.parameters)) < 150


def test_dense_and_sparse_blocks_mix() -> None:
    X, y = data(Logistic())
    blocks = [X[:, :10], sp.csr_array(X[:, 10:])]
    for penalty in (Penalty(l1=0.5), Penalty(l2=0.5)):
        mixed = optimum(blocks, y, Logistic(), [penalty] * 2).value
        assert mixed == pytest.approx(solve(X, y, Logistic(), penalty).value, rel=1e-12)


@pytest.mark.parametrize("loss", [Squared(), Huber(), Logistic(), SquaredHinge(), Multinomial()])
def test_a_perfect_fit_has_no_relative_gap(loss: Loss) -> None:
    X = np.random.default_rng(0).standard_normal((20, 30))
    y = loss.encode(np.arange(20) % 2)[0]
    with pytest.raises(ConfigError, match="Add an l2 or l1 penalty"):
        solve(X, y, loss, Penalty())


@pytest.mark.parametrize("penalty", [Penalty(), Penalty(l1=0.5), Penalty(l2=0.5)])
def test_labels_that_are_all_0_are_fitted_perfectly_from_the_start(penalty: Penalty) -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    for loss in (Squared(), Huber()):
        with pytest.raises(ConfigError, match="Add an l2 or l1 penalty"):
            solve(X, np.zeros(20), loss, penalty)


def test_partly_separable_classes_have_no_optimum() -> None:
    """The first column is unpenalised and separates some of the samples: its best value is
    infinite."""
    rng = np.random.default_rng(0)
    X = np.column_stack([np.repeat([1.0, 0.0], 30), rng.standard_normal(60)])
    y = np.where(X[:, 0] > 0, 1.0, rng.integers(0, 2, 60))
    with pytest.raises(ConfigError, match="lies at infinity"):
        solve(X, y, Logistic(), Penalty(), clients=2)
    with pytest.raises(ConfigError, match="lies at infinity"):
        optimum([X[:, :1], X[:, 1:]], y, Logistic(), [Penalty(), Penalty(l1=0.1)])


def test_ridge_with_a_penalty_lost_in_rounding() -> None:
    """Two equal columns and l2 = 1e-13: the closed form breaks down, the general solver does
    not."""
    X, y = data(Squared())
    found = solve(np.column_stack([X, X + 1e6]), y, Squared(), Penalty(l2=1e-13), intercept=True)
    residual = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y)[1][0]
    assert found.value == pytest.approx(0.5 * residual, rel=1e-8)


def test_an_optimum_that_cannot_be_certified_is_not_returned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = data(Logistic())
    monkeypatch.setattr(solver_newton, "ROUNDS", 2)
    with pytest.raises(MtcdError, match="could not be computed"):
        solve(X, y, Logistic(), Penalty(l2=1.0))


def test_one_penalty_per_block() -> None:
    with pytest.raises(ConfigError, match="one per block"):
        optimum([np.eye(2)], np.ones(2), Squared(), [])


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MTCD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def refuse() -> float:
    raise AssertionError("computed although it is cached")


def test_cache_computes_once_per_key(cache: Path) -> None:
    assert cached_optimum("a", lambda: 1.0 / 3.0) == 1.0 / 3.0
    assert cached_optimum("a", refuse) == 1.0 / 3.0
    assert cached_optimum("b", lambda: 2.0) == 2.0
    assert len(list(cache.iterdir())) == 2  # and no temporary file is left


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[1]",
        '{"value": 3.0}',
        '{"key": "a", "value": NaN}',
        '{"key": "a", "value": "x"}',
        b"\xff",
    ],
)
def test_a_spoilt_cache_is_computed_anew_and_mended(cache: Path, content: str | bytes) -> None:
    cached_optimum("a", lambda: 1.5)
    (file,) = cache.iterdir()
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert cached_optimum("a", lambda: 2.5) == 2.5
    assert json.loads(file.read_text())["value"] == 2.5


def test_a_cache_that_cannot_be_written_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("MTCD_CACHE", str(tmp_path / "file" / "cache"))
    assert cached_optimum("a", lambda: 1.5) == 1.5
    monkeypatch.setenv("MTCD_CACHE", str(tmp_path / "other"))
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    assert cached_optimum("a", lambda: 1.5) == 1.5
    assert list((tmp_path / "other").iterdir()) == []


def test_infinite_values_are_not_kept(cache: Path) -> None:
    assert cached_optimum("a", lambda: float("inf")) == float("inf")
    assert cached_optimum("a", lambda: 1.0) == 1.0


def test_cache_folder_falls_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTCD_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    cached_optimum("a", lambda: 1.0)
    assert len(list((tmp_path / "xdg" / "mtcd").iterdir())) == 1
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    cached_optimum("a", lambda: 1.0)
    assert len(list((tmp_path / ".cache" / "mtcd").iterdir())) == 1


def test_huber_with_an_intercept_and_large_features() -> None:
    """The Hessian has flat directions, so that no step is quite undamped."""
    rng = np.random.default_rng(0)
    X = 1000 * rng.normal(size=(100, 12))
    y = X @ rng.normal(size=12) + rng.normal(size=100)
    blocks = [np.c_[X[:, :5], np.ones(100)], X[:, 5:]]
    found = optimum(blocks, y, Huber(1.0), [Penalty(l2=1.0, free=1), Penalty(l2=1.0)]).value
    w, b = cp.Variable(12), cp.Variable()
    f = cp.sum(cp.huber((X / 1000) @ w + b - y, 1.0)) / 2 + cp.sum_squares(w / 1000) / 2
    assert found == pytest.approx(cp.Problem(cp.Minimize(f)).solve(), rel=1e-5)


@pytest.mark.parametrize("seed", [0, 1, 2, 52])
def test_a_search_that_crosses_many_kinks_ends_at_the_minimum(seed: int) -> None:
    """Of 1/2 (u-w)^T H (u-w) + g^T (u-w) + l1 |u|_1, on columns of very different sizes."""
    rng = np.random.default_rng(seed)
    d = int(rng.integers(2, 9))
    A = rng.standard_normal((d + 1, d)) * np.exp(1.5 * rng.standard_normal(d))
    H = A.T @ A + 1e-3 * np.eye(d)
    g = 5 * rng.standard_normal(d)
    l1 = np.full(d, rng.uniform(0.1, 3.0))
    w = 5 * rng.standard_normal(d)
    u = solver_steps._quadratic_lasso(H, g, l1, w)
    slope = H @ (u - w) + g
    moved = u != 0
    np.testing.assert_allclose(slope[moved], -l1[moved] * np.sign(u[moved]), atol=1e-6)
    assert (np.abs(slope[~moved]) <= l1[~moved] + 1e-9).all()


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_the_gap_of_ridge_is_a_share_of_its_value_whatever_the_unit_of_the_labels(
    size: float,
) -> None:
    """Columns that are nearly alike: the first pass leaves more of the gradient."""
    rng = np.random.default_rng(0)
    one = rng.standard_normal((30, 1))
    X = np.hstack([one + 1e-5 * rng.standard_normal((30, 6)), rng.standard_normal((30, 2))])
    found = solve(X, size * rng.standard_normal(30), Squared(), Penalty(l2=1e-9))
    assert 0 <= found.gap <= 1e-12 * found.value


def test_steps_of_large_lasso_problems_find_the_support_and_say_that_they_are_exact() -> None:
    """From 0, a few of them reach what the optimality conditions ask for."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 12))
    y = X[:, :3] @ np.array([2.0, -1.0, 0.5]) + 0.1 * rng.standard_normal(60)
    whole = ScaledProblem.of([X], y, Squared(), [Penalty(l1=3.0)])
    problem = whole.restricted(np.arange(12))
    w, exact = problem.start(), False
    for _ in range(4):
        z = problem.forward(w)
        gradient = problem.gradient(w, z)
        step, exact = solver_steps.newton_step(problem, w, z, gradient, 1e-12, 1e-6, direct=0)
        w = w + step

    assert exact
    slope = problem.gradient(w, problem.forward(w))
    moved = w != 0
    assert 3 <= moved.sum() < 12
    np.testing.assert_allclose(slope[moved], -problem.l1[moved] * np.sign(w[moved]), atol=1e-5)
    assert (np.abs(slope[~moved]) <= problem.l1[~moved]).all()


@pytest.mark.parametrize(("start", "exact"), [(4.5, True), (-0.5, False)])
def test_only_entries_with_a_kink_stop_at_0(
    start: float, exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second entry has no l1: it may change its sign. The minimum is at (4, 1)."""
    penalty = Penalty(l1=1.0, free=1)
    problem = ScaledProblem.of([np.eye(2)], np.array([5.0, 1.0]), Squared(), [penalty])
    ahead = np.array([start, -0.5])
    monkeypatch.setattr(solver_steps, "_proximal_steps", lambda *_: ahead)
    w = np.zeros(2)
    gradient = problem.gradient(w, problem.forward(w))
    step, found = solver_steps.newton_step(
        problem, w, problem.forward(w), gradient, 0.0, 1e-6, direct=0
    )
    assert found == exact
    np.testing.assert_allclose(w + step, [4.0 if exact else 0.0, 1.0], atol=1e-6)
