"""Local updates: the squared loss's shortcuts against plain steps, and plain steps against the
definition."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from mtcd.models.glm import client as steps_module
from mtcd.models.glm.client import bound_steps, make_steps, plain_steps, summed_powers
from mtcd.models.glm.model import LinearClient
from mtcd.models.glm.penalty import Penalty
from mtcd.models.glm.screening import ScreenedSteps
from mtcd.models.losses.huber import Huber
from mtcd.models.losses.logistic import Logistic
from mtcd.models.losses.multinomial import Multinomial
from mtcd.models.losses.squared import Squared
from mtcd.models.losses.squared_hinge import SquaredHinge
from mtcd.models.sample_weights.weighted import Weighted
from mtcd.protocol.model import LocalUpdates

PENALTIES = [
    Penalty(),
    Penalty(l2=0.7),
    Penalty(l1=0.4),
    Penalty(l1=0.2, l2=0.3),
    Penalty(l2=1.5, free=1),
    Penalty(l1=0.3, l2=0.1, free=2),
]


def block(shape: tuple[int, int], sparse: bool, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal(shape)
    y, theta, z = (
        rng.standard_normal(shape[0]),
        rng.standard_normal(shape[1]),
        rng.standard_normal(shape[0]),
    )
    return (
        (sp.csr_array(X * (rng.random(shape) < 0.5)) if sparse else np.asfortranarray(X)),
        y,
        theta,
        z,
    )


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", [(30, 5), (6, 6), (5, 17), (9, 1)])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("Q", "eta"), [(2, 1e-2), (7, 3e-3), (50, 1e-2), (4, 0.3)])
def test_the_squared_loss_at_once_is_the_same_as_step_by_step(
    penalty, shape, sparse, Q, eta
) -> None:
    X, y, theta, z = block(shape, sparse)
    quick_z, plain_z, before = z.copy(), z.copy(), theta.copy()
    quick = make_steps(X, y, Squared(), penalty, Q, eta)(theta, quick_z)
    plain = plain_steps(X, y, Squared(), penalty, theta, plain_z, Q, eta)
    size = max(1.0, np.abs(plain).max())
    np.testing.assert_allclose(quick, plain, rtol=1e-9, atol=1e-10 * size)
    np.testing.assert_allclose(quick_z, plain_z, rtol=1e-9, atol=1e-9 * size)
    assert np.array_equal(theta, before), "the old parameters must stay: other copies point at them"


@pytest.mark.parametrize("scale", [1e-7, 1e7])
def test_the_unit_of_the_columns_does_not_matter(scale: float) -> None:
    """In another unit the coefficients are in the inverse one; here a row of a wide block also
    depends on another."""
    X, y, theta, z = block((5, 17), sparse=False)
    X[4], z[4] = X[3], z[3]
    penalty, Q, eta = Penalty(l2=0.7 * scale**2), 6, 1e-2 / scale**2
    plain_z = z.copy()
    plain = plain_steps(X, y, Squared(), Penalty(l2=0.7), theta, plain_z, Q, 1e-2)
    moved = make_steps(X * scale, y, Squared(), penalty, Q, eta)(theta / scale, z)
    np.testing.assert_allclose(moved * scale, plain, rtol=1e-9)
    np.testing.assert_allclose(z, plain_z, rtol=1e-9)


@given(st.floats(0, 1e3), st.integers(1, 200), st.floats(1e-9, 1e-3))
def test_summed_powers_against_the_sum(eigenvalue: float, Q: int, eta: float) -> None:
    expected = eta * sum((1 - eta * eigenvalue) ** q for q in range(Q))
    np.testing.assert_allclose(
        summed_powers(np.array([eigenvalue]), Q, eta), [expected], rtol=1e-10
    )


@pytest.mark.parametrize(
    "eigenvalue", [1e-15, 1e-12, 1e-9, 1e-6, 1e-3, 1.0, 400.0, 499.0, 600.0, 1200.0, 1500.0]
)
@pytest.mark.parametrize("Q", [1, 2, 50])
def test_summed_powers_lose_no_digits(eigenvalue: float, Q: int) -> None:
    """Against exact fractions, also where the terms nearly cancel."""
    eta = 1e-3
    factor = 1 - Fraction(eta) * Fraction(eigenvalue)
    expected = float(Fraction(eta) * sum(factor**q for q in range(Q)))
    np.testing.assert_allclose(
        summed_powers(np.array([eigenvalue]), Q, eta), [expected], rtol=1e-13
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_a_step_is_a_proximal_gradient_step_on_the_batch(sparse: bool) -> None:
    X, _, theta, z = block((12, 4), sparse)
    y = (z > 0).astype(float)
    penalty, eta, scale = Penalty(l1=0.3, l2=0.2), 0.05, 2.5
    gradient = scale * (X.T @ (1 / (1 + np.exp(-z)) - y)) + 0.2 * theta
    moved = theta - eta * gradient
    expected = np.sign(moved) * np.maximum(np.abs(moved) - eta * 0.3, 0)
    kept = z.copy()
    new = plain_steps(X, y, Logistic(), penalty, theta, z, 1, eta, scale)
    np.testing.assert_allclose(new, expected, atol=1e-14)
    np.testing.assert_allclose(z - kept, X @ (expected - theta), atol=1e-13)


def test_a_block_at_rest_is_left_alone() -> None:
    """A heavy l1 keeps theta at 0: the remaining steps are skipped, and nothing changes."""
    X, y, _, z = block((12, 4), False)
    kept = z.copy()
    new = plain_steps(
        X, (y > 0).astype(float), Logistic(), Penalty(l1=1e3), np.zeros(4), z, 50, 0.1
    )
    assert not new.any()
    assert np.array_equal(z, kept)


@given(
    st.sampled_from([Logistic(), Huber(0.5), SquaredHinge()]),
    st.sampled_from(
        [Penalty(l1=0.02), Penalty(l1=2.0), Penalty(l1=6.0, l2=0.3), Penalty(l1=1.0, free=1)]
    ),
    st.sampled_from([(40, 30), (12, 60), (25, 3)]),
    st.booleans(),
    st.integers(0, 10_000),
)
def test_looking_only_at_columns_that_can_move_changes_nothing(
    loss, penalty, shape, sparse, seed
) -> None:
    X, y, theta, z = block(shape, sparse, seed)
    X = X @ np.diag([0.0] + [1.0] * (shape[1] - 1))  # an empty column
    X = sp.csr_array(X) if sparse else np.asfortranarray(X)
    labels = np.sign(y) if isinstance(loss, SquaredHinge) else (y > 0).astype(float)
    theta[np.random.default_rng(seed).random(len(theta)) < 0.7] = 0
    for Q, eta in ((2, 1e-3), (25, 1e-2)):
        quick_z, plain_z, before = z.copy(), z.copy(), theta.copy()
        quick = make_steps(X, labels, loss, penalty, Q, eta)(theta, quick_z)
        plain = plain_steps(X, labels, loss, penalty, theta, plain_z, Q, eta)
        np.testing.assert_allclose(quick, plain, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(quick_z, plain_z, rtol=1e-9, atol=1e-10)
        assert np.array_equal(theta, before)


class Looking(ScreenedSteps):
    """Notes which columns are included."""

    def __init__(self, *given) -> None:
        super().__init__(*given)
        self.looks = []

    def _screen(self, *given):
        columns, reach = super()._screen(*given)
        self.looks.append(columns.tolist())
        return columns, reach


def test_columns_are_looked_at_again_when_the_slope_has_moved_too_far() -> None:
    """Long steps from far away: what was screened out at first must still come in."""
    X, y, _, z = block((40, 60), False, 3)
    labels = (y > 0).astype(float)
    quick_z, plain_z, penalty = z.copy(), z.copy(), Penalty(l1=4.0)
    steps = Looking(X, labels, Logistic(), penalty, 300, 0.02)
    quick = steps(np.zeros(60), quick_z)
    plain = plain_steps(X, labels, Logistic(), penalty, np.zeros(60), plain_z, 300, 0.02)
    np.testing.assert_allclose(quick, plain, rtol=1e-9, atol=1e-11)
    assert len(steps.looks) > 1
    assert min(map(len, steps.looks)) < 40


def test_steps_are_prepared_anew_for_other_settings() -> None:
    X, y, theta, z = block((12, 4), False)
    client = LinearClient(X, y, Squared(), Penalty(l2=0.7))
    for Q, eta in ((3, 1e-2), (5, 1e-2), (5, 2e-2), (3, 1e-2)):
        ours, plain_z = z.copy(), z.copy()
        plain = plain_steps(X, y, Squared(), Penalty(l2=0.7), theta, plain_z, Q, eta)
        np.testing.assert_allclose(
            client.local_update(theta, ours, LocalUpdates(Q, eta)), plain, rtol=1e-9
        )
        np.testing.assert_allclose(ours, plain_z, rtol=1e-9)
    client = LinearClient(X, (y > 0).astype(float), Logistic(), Penalty(l2=0.7))
    by_gradient, by_bound = (
        client.local_update(theta, z.copy(), LocalUpdates(9, 0.2, None, way))
        for way in (False, True)
    )
    assert np.abs(by_gradient - by_bound).max() > 1e-3


def quadratic_bound(X, y, loss, penalty, theta, z, Q, eta):
    """Q plain steps on l(z_0) + l'(z_0)(z - z_0) + c/2 |z - z_0|^2, written from the definition."""
    start, z = z.copy(), z.copy()
    for _ in range(Q):
        gradient = X.T @ (loss.gradient(start, y) + loss.curvature * (z - start))
        penalised = slice(0, len(theta) - penalty.free)
        gradient[penalised] += penalty.l2 * theta[penalised]
        new = theta - eta * gradient
        new[penalised] = np.sign(new[penalised]) * np.maximum(
            np.abs(new[penalised]) - eta * penalty.l1, 0
        )
        z, theta = z + X @ (new - theta), new
    return theta, z


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("shape", [(30, 5), (5, 17)])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("largest", [0, 100])
@pytest.mark.parametrize("loss", [Logistic(), Huber(0.7), SquaredHinge(), Multinomial(), Squared()])
def test_majorised_steps_are_steps_on_the_upper_bound(
    loss, penalty, shape, sparse, largest, monkeypatch
) -> None:
    """By the Gram matrix, and for blocks too large for one."""
    monkeypatch.setattr(steps_module, "LARGEST_GRAM", largest)
    X, y, theta, z = block(shape, sparse)
    labels = np.sign(y) if isinstance(loss, SquaredHinge) else (y > 0).astype(float)
    if isinstance(loss, Multinomial):
        rng = np.random.default_rng(1)
        labels, theta, z = (
            np.eye(3)[rng.integers(3, size=len(y))],
            np.outer(theta, [1.0, -1.0, 0.5]),
            np.outer(z, [1, 0, 2]),
        )
    for Q, eta in ((2, 1e-2), (9, 3e-3)):
        quick_z, before = z.copy().astype(float), theta.copy()
        quick = make_steps(X, labels, loss, penalty, Q, eta, majorise=True)(theta, quick_z)
        expected, expected_z = quadratic_bound(
            X, labels, loss, penalty, theta, z.astype(float), Q, eta
        )
        np.testing.assert_allclose(quick, expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(quick_z, expected_z, rtol=1e-9, atol=1e-9)
        assert np.array_equal(theta, before)


def test_steps_on_the_upper_bound_one_after_the_other() -> None:
    X, y, theta, z = block((5, 17), False)
    labels, penalty, kept = (y > 0).astype(float), Penalty(l1=0.2, l2=0.3, free=2), z.copy()
    new = bound_steps(X, labels, Logistic(), penalty, theta, z, 4, 0.05)
    expected, expected_z = quadratic_bound(X, labels, Logistic(), penalty, theta, kept, 4, 0.05)
    np.testing.assert_allclose(new, expected, rtol=1e-12)
    np.testing.assert_allclose(z, expected_z, rtol=1e-12)


@pytest.mark.parametrize("shape", [(12, 4), (4, 12)])
def test_weights_of_samples_count_in_many_steps_at_once(shape) -> None:
    X, y, theta, z = block(shape, False)
    loss, plain_z = Weighted(Squared(), np.linspace(0.2, 3.0, shape[0])), z.copy()
    quick = make_steps(X, y, loss, Penalty(l2=0.7), 6, 1e-2)(theta, z)
    plain = plain_steps(X, y, loss, Penalty(l2=0.7), theta, plain_z, 6, 1e-2)
    np.testing.assert_allclose(quick, plain, rtol=1e-9)
    np.testing.assert_allclose(z, plain_z, rtol=1e-9)


@given(
    st.sampled_from([Logistic(), Huber(0.7), SquaredHinge()]),
    st.integers(2, 500),
    st.integers(0, 1000),
)
def test_majorised_steps_never_raise_the_objective(loss, Q, seed) -> None:
    X, y, theta, z = block((20, 6), False, seed)
    labels = np.sign(y) if isinstance(loss, SquaredHinge) else (y > 0).astype(float)
    client = LinearClient(X, labels, loss, Penalty(l2=0.4))
    before = loss.value(z, labels) + client.penalty(theta)
    new = client.local_update(theta, z, LocalUpdates(Q, 1.0 / client.smoothness, majorise=True))
    assert loss.value(z, labels) + client.penalty(new) <= before + 1e-9 * abs(before)


@pytest.mark.parametrize(
    ("loss", "penalty", "shape", "Q", "way"),
    [
        (Squared(), Penalty(l2=0.3), (30, 5), 4, "closed_steps"),
        (Squared(), Penalty(l2=0.3), (6, 6), 2, "closed_steps"),
        (Squared(), Penalty(l1=0.3), (30, 5), 4, "gram_steps"),
        (Squared(), Penalty(l2=0.3), (5, 30), 4, "wide_steps"),
        (Squared(), Penalty(l2=0.3, free=1), (5, 30), 4, "plain_steps"),
        (Squared(), Penalty(l1=0.3), (5, 30), 4, "ScreenedSteps"),
        (Squared(), Penalty(l2=0.3), (30, 5), 1, "plain_steps"),
        (Logistic(), Penalty(l1=0.3), (30, 5), 4, "ScreenedSteps"),
        (Logistic(), Penalty(l1=0.3), (30, 5), 1, "plain_steps"),
        (Logistic(), Penalty(l2=0.3), (30, 5), 4, "plain_steps"),
        (Logistic(), Penalty(l1=0.3), (30, 5), 2, "ScreenedSteps"),
        (Logistic(), Penalty(l2=0.3), (30, 5), -4, "closed_steps"),
        (Logistic(), Penalty(l2=0.3, free=1), (5, 30), -2, "bound_steps"),
        (Logistic(), Penalty(l1=0.3), (5, 30), -2, "bound_steps"),
        (Logistic(), Penalty(l2=0.3), (30, 5), -1, "plain_steps"),
        (Squared(), Penalty(l1=0.3), (5, 30), -4, "ScreenedSteps"),
    ],
)
def test_steps_take_the_quickest_way(loss, penalty, shape, Q, way, monkeypatch) -> None:
    """A negative Q: so many majorised steps."""
    X, y, theta, z = block(shape, False)
    taken = []
    for name in (
        "closed_steps",
        "gram_steps",
        "wide_steps",
        "plain_steps",
        "bound_steps",
        "ScreenedSteps",
    ):
        exact = getattr(steps_module, name)

        def took(*given, n=name, e=exact, **named):
            taken.append(n)
            return e(*given, **named)

        monkeypatch.setattr(steps_module, name, took)
    make_steps(X, (y > 0).astype(float), loss, penalty, abs(Q), 1e-3, majorise=Q < 0)(theta, z)
    assert taken == [way]


def test_a_column_comes_in_as_soon_as_the_slope_has_moved_by_its_reach() -> None:
    """The worst case: the slope l'(z) moves almost along the column that was screened out, the
    nearest one outside."""
    X, y = np.zeros((6, 6)), np.array([3 * np.sqrt(10.0), 0.0, 0.5, 0.5, 0.5, 0.5])
    X[:2, 0] = 1.0, 3.0  # moves, and takes the slope along the last column
    X[2:, 1:5] = np.eye(4)  # 0.5 below l1: these fill the places that are included for safety
    X[1, 5] = 1.0  # 1 below l1
    penalty = Penalty(l1=1.0)
    screened = ScreenedSteps(X, y, Squared(), penalty, 60, 0.01)
    columns, reach = screened._screen(np.zeros(6), X.T @ -y)
    assert columns.tolist() == [0, 1, 2, 3, 4]
    assert reach == 1.0
    for Q in (5, 10, 60):
        quick_z, plain_z = np.zeros(6), np.zeros(6)
        quick = ScreenedSteps(X, y, Squared(), penalty, Q, 0.01)(np.zeros(6), quick_z)
        plain = plain_steps(X, y, Squared(), penalty, np.zeros(6), plain_z, Q, 0.01)
        np.testing.assert_allclose(quick, plain, rtol=1e-12)
        np.testing.assert_allclose(quick_z, plain_z, rtol=1e-12)
    assert plain[5] != 0


def test_columns_are_looked_at_again_when_the_slope_has_moved_by_just_the_reach() -> None:
    """The first step moves the slope by 1, and the column outside is 1 below l1."""
    X, y = np.eye(6), np.array([3.0, 0.5, 0.5, 0.5, 0.5, 0.0])
    steps = Looking(X, y, Squared(), Penalty(l1=1.0), 2, 0.5)
    theta = steps(np.zeros(6), np.zeros(6))
    assert steps.looks[0] == [0, 1, 2, 3, 4]
    assert len(steps.looks) == 2
    assert theta.tolist() == [1.5, 0.0, 0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("slope", [1.0, 1.25])
def test_every_column_whose_gradient_reaches_l1_is_included(slope: float) -> None:
    """Ten of twenty; then a share of spare ones, here one, and four more."""
    X, y = np.eye(20), np.where(np.arange(20) % 2, slope, 0.05 * np.arange(20))
    columns, reach = Looking(X, y, Squared(), Penalty(l1=1.0), 2, 0.5)._screen(np.zeros(20), -y)
    assert columns.tolist() == [1, 3, 5, 7, 9, *range(10, 20)]
    assert reach == pytest.approx(0.6)
    five = slice(0, 5)  # as many as one that moves, and four more
    steps = Looking(X[:, five], X[:, 0], Squared(), Penalty(l1=0.5), 2, 0.5)
    steps(np.zeros(5), np.zeros(20))
    assert steps.looks == [[0, 1, 2, 3, 4]]


def test_a_block_at_rest_is_screened_once() -> None:
    X, y, _, z = block((12, 7), False)
    kept = z.copy()
    steps = Looking(X, (y > 0).astype(float), Logistic(), Penalty(l1=1e3), 50, 0.1)
    assert not steps(np.zeros(7), z).any()
    assert np.array_equal(z, kept)
    assert len(steps.looks) == 1
