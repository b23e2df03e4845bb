"""Blocks solved by Newton's method on f, against closed forms and the solver of scipy."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.models.glm import newton
from mtcd.models.glm.client import LinearClient
from mtcd.models.glm.penalty import Penalty
from mtcd.protocol.model import LocalUpdates

SOLVED = LocalUpdates(20, 0.0, newton=True)
SHAPES = [(30, 4), (12, 25), (10, 10), (9, 1)]


def client_of(
    kind: str, shape: tuple[int, int], l2: float = 0.5, free: int = 0, sparse: bool = False
) -> LinearClient:
    """One client whose columns are in different units."""
    rng = np.random.default_rng([*shape, len(kind)])
    X = rng.standard_normal(shape) * np.exp(rng.uniform(-2, 2, shape[1]))
    y = X @ rng.standard_normal(shape[1]) + rng.standard_normal(shape[0])
    if kind in ("logistic", "squared-hinge"):
        y = (y > 0).astype(float)
    if kind == "multinomial":
        y = np.digitize(y, [-1.0, 1.0]).astype(float)
    problem = mtcd.Glm(kind, l2=l2).problem(mtcd.split(X, y, clients=1))
    block = csr_array(X) if sparse else X
    return LinearClient(block, problem.labels, problem.loss, Penalty(l2=l2, free=free))


def other_clients(client: LinearClient) -> np.ndarray:
    """What others have added to the token."""
    return np.random.default_rng(5).standard_normal(client.y.shape)


def lowest(client: LinearClient, others: np.ndarray) -> float:
    """f at the minimum over the block, by a solver of scipy."""
    shape = client.initial().shape

    def f(flat: np.ndarray) -> tuple[float, np.ndarray]:
        theta = flat.reshape(shape)
        z = others + client.X @ theta
        value = client.fit.objective(z, client.penalty(theta))
        return value, client.gradient(theta, client.fit.gradient(z)).ravel()

    found = minimize(
        f,
        np.zeros(shape).ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 100_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-10},
    )
    return float(found.fun)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("free", [0, 1])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["ridge", "logistic", "huber", "squared-hinge", "multinomial"])
def test_the_minimum_is_that_of_scipy(
    kind: str, shape: tuple[int, int], free: int, sparse: bool
) -> None:
    client = client_of(kind, shape, free=free, sparse=sparse)
    others = other_clients(client)
    z = others.copy()
    theta = client.local_update(client.initial(), z, SOLVED)
    np.testing.assert_allclose(z, others + client.X @ theta, rtol=1e-9, atol=1e-9)
    value = client.fit.objective(z, client.penalty(theta))
    expected = lowest(client, others)
    assert value <= expected + 1e-7 * abs(expected)


@pytest.mark.parametrize("free", [0, 2])
@pytest.mark.parametrize("shape", [(30, 6), (6, 30)])
def test_one_step_solves_least_squares(shape: tuple[int, int], free: int) -> None:
    client = client_of("ridge", shape, l2=0.3, free=free)
    others = other_clients(client)
    weights = np.full(shape[1], 0.3)
    weights[shape[1] - free :] = 0.0
    z = others.copy()
    theta = client.local_update(client.initial(), z, LocalUpdates(1, 0.0, newton=True))
    H = client.X.T @ client.X + np.diag(weights)
    expected = np.linalg.solve(H, client.X.T @ (client.y - others))
    np.testing.assert_allclose(theta, expected, rtol=1e-7, atol=1e-8)


def test_a_wide_block_without_a_penalty_takes_the_shortest_solution() -> None:
    client = client_of("ridge", (6, 20), l2=0.0)
    z = np.zeros(6)
    theta = client.local_update(client.initial(), z, SOLVED)
    np.testing.assert_allclose(theta, np.linalg.pinv(client.X) @ client.y, rtol=1e-6, atol=1e-9)


def test_columns_that_are_equal_share_their_coefficient() -> None:
    x = np.random.default_rng(0).standard_normal(12)
    problem = mtcd.Glm("linear", l2=0.0).problem(mtcd.split(np.stack([x, x], 1), 3 * x, 1))
    z = np.zeros(12)
    theta = problem.client(0).local_update(np.zeros(2), z, SOLVED)
    np.testing.assert_allclose(theta, [1.5, 1.5])


def test_a_column_of_zeros_stays_at_zero() -> None:
    X = np.stack([np.zeros(8), np.arange(8.0)], 1)
    problem = mtcd.Glm("logistic", l2=0.0).problem(mtcd.split(X, np.arange(8) % 2, 1))
    theta = problem.client(0).local_update(np.zeros(2), np.zeros(8), SOLVED)
    assert theta[0] == 0.0
    assert theta[1] != 0.0


@pytest.mark.parametrize("kind", ["logistic", "huber", "squared-hinge", "multinomial"])
@pytest.mark.parametrize("shape", SHAPES)
def test_no_step_raises_f(kind: str, shape: tuple[int, int]) -> None:
    """Also far from the minimum, where second derivatives are near 0."""
    client = client_of(kind, shape, l2=1e-3)
    z = 30.0 * other_clients(client)
    theta, values = client.initial(), []
    for _ in range(15):
        values.append(client.fit.objective(z, client.penalty(theta)))
        theta = client.local_update(theta, z, LocalUpdates(1, 0.0, newton=True))
    assert (np.diff(values) <= 1e-12 * abs(values[0])).all()
    assert values[-1] < values[0]


def test_weights_count_as_equal_samples() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((10, 3)), np.arange(10) % 2
    times = np.array([1, 2, 3, 1, 1, 2, 1, 4, 1, 1])
    model = mtcd.Glm("logistic", l2=1.0)
    weighted = model.problem(mtcd.split(X, y, 1, weights=times.astype(float))).client(0)
    repeated = model.problem(mtcd.split(np.repeat(X, times, 0), np.repeat(y, times), 1)).client(0)
    theta = weighted.local_update(np.zeros(3), np.zeros(10), SOLVED)
    expected = repeated.local_update(np.zeros(3), np.zeros(times.sum()), SOLVED)
    np.testing.assert_allclose(theta, expected, rtol=1e-6)


@pytest.mark.parametrize("kind", ["ridge", "logistic", "multinomial"])
@pytest.mark.parametrize("shape", [(30, 4), (12, 25)])
def test_large_blocks_have_the_same_minimum(
    kind: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are solved by conjugate gradients."""
    found = []
    for largest in (newton.LARGEST_SYSTEM, 1):
        monkeypatch.setattr(newton, "LARGEST_SYSTEM", largest)
        client = client_of(kind, shape)
        z = other_clients(client)
        client.local_update(client.initial(), z, SOLVED)
        found.append(z)
    np.testing.assert_allclose(found[0], found[1], rtol=1e-4, atol=1e-5)


STOP = mtcd.Stop(iterations=5)
DATA = mtcd.synthetic("logistic", samples=120, features=15, clients=5)
METHODS = {
    "stcd": mtcd.STCD(local_solver="newton"),
    "conjugate": mtcd.STCD(walk="tour", acceleration="conjugate", depth=20, local_solver="newton"),
    "momentum": mtcd.STCD(walk="tour", acceleration="momentum", local_solver="newton"),
    "cluster": mtcd.MTCD(clusters=[[0, 1], [2, 3, 4]], hops=6, local_solver="newton", walk="tour"),
    "rounds": mtcd.SVFL(acceleration="conjugate", depth=20, local_solver="newton"),
}


@pytest.mark.parametrize("name", ["stcd", "conjugate", "momentum", "rounds"])
def test_trainings_reach_the_optimum(name: str) -> None:
    run = mtcd.train(
        DATA,
        mtcd.Glm("logistic", l2=1.0),
        "cycle",
        METHODS[name],
        mtcd.Stop(gap=1e-9, iterations=2_000),
    )
    assert run.status == "converged"


def test_the_step_size_has_no_effect() -> None:
    runs = [
        mtcd.train(
            DATA,
            mtcd.Glm("logistic", l2=1.0),
            "cycle",
            mtcd.STCD(local_solver="newton", stepsize=stepsize),
            mtcd.Stop(iterations=20),
        )
        for stepsize in (1e-6, 1e-3)
    ]
    assert np.array_equal(runs[0].coefficients, runs[1].coefficients)


def test_what_it_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="newton needs the full batch"):
        mtcd.MTCD(local_solver="newton", batch=10)
    with pytest.raises(ConfigError, match="newton needs a smooth penalty"):
        mtcd.train(DATA, mtcd.Glm("logistic", l1=1.0), "cycle", METHODS["stcd"], STOP)
    with pytest.raises(ConfigError, match="leave method.local_solver out"):
        mtcd.train(
            DATA,
            mtcd.Glm("logistic", l2=1.0),
            "cycle",
            mtcd.STCD(walk="tour", local_solver="newton"),
            STOP,
            privacy=mtcd.Privacy("sealed"),
        )


def test_a_block_without_columns_stays_as_it_is() -> None:
    client = client_of("logistic", (8, 3))
    empty = LinearClient(client.X[:, :0], client.y, client.fit.loss, Penalty(l2=0.5))
    z = other_clients(client)
    before = z.copy()
    theta = empty.local_update(empty.initial(), z, SOLVED)
    assert theta.shape[0] == 0
    np.testing.assert_array_equal(z, before)
