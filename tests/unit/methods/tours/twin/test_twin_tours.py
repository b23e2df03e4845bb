"""Twin tours: against the recipe in plain NumPy, on all losses, and the settings they refuse."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.methods import subspace
from mtcd.methods.tours.survey import steps_in_words
from mtcd.methods.tours.twin import home
from mtcd.methods.tours.twin.home import CURVED, Home, Tour
from mtcd.methods.tours.twin.slots import order_of, products_of, second_of
from mtcd.models.losses.squared import Squared
from mtcd.protocol.party import MONITOR
from mtcd.protocol.token import Token
from problems import make_data

TWIN = mtcd.STCD(walk="tour", acceleration="twin")
SIZES = [3, 2, 4, 3]
PATH = [0, 1, 2, 3, 2, 1, 0]
"""A tour from the first client of a path, with the visit at which it ends."""


class PlainTwin:
    """The recipe on all blocks at once, of a loss with one output."""

    def __init__(self, problem, l2: float, depth: int) -> None:
        self.blocks = [np.asarray(X) for X in problem.blocks]
        self.loss, self.y, self.l2, self.depth = problem.loss, problem.labels, l2, depth
        self.theta = [np.zeros(X.shape[1]) for X in self.blocks]
        largest = [self.smoothness(k) for k in range(len(self.blocks))]
        self.first = self.reach = 0.01 / sum(largest)
        self.ways: list[list[np.ndarray]] = []
        self.tours = 0

    def smoothness(self, k: int) -> float:
        return self.loss.curvature * np.linalg.norm(self.blocks[k], 2) ** 2 + self.l2

    def token(self, theta) -> np.ndarray:
        return sum(X @ part for X, part in zip(self.blocks, theta, strict=True))

    def f(self, theta) -> float:
        penalty = self.l2 / 2 * sum(float(part @ part) for part in theta)
        return self.loss.value(self.token(theta), self.y) + penalty

    def solve(self, theta, k: int) -> None:
        """Newton steps on the block, halved until f does not rise."""
        X = self.blocks[k]
        for _ in range(3):
            z, start = self.token(theta), theta[k]
            g = X.T @ self.loss.gradient(z, self.y) + self.l2 * start
            bend = self.loss.hessian_product(z, self.y, np.ones_like(z))
            bend = np.maximum(bend, 1e-3 * self.loss.curvature)
            step = -np.linalg.solve(X.T @ (bend[:, None] * X) + self.l2 * np.eye(len(g)), g)
            value, share = self.f(theta), 1.0
            theta[k] = start + step
            while self.f(theta) > value * (1 + 1e-14) and share > 1e-9:
                share /= 2
                theta[k] = start + share * step

    def short(self, theta, k: int) -> None:
        """Steps on the upper bound of f, which add up to the reach."""
        X, L = self.blocks[k], self.smoothness(k)
        count = max(1, int(np.ceil(self.reach * L)))
        eta = min(self.reach / count, 1 / L)
        z, start = self.token(theta), theta[k]
        g = X.T @ self.loss.gradient(z, self.y) + self.l2 * start
        M = self.loss.curvature * X.T @ X + self.l2 * np.eye(len(g))
        step = np.zeros_like(g)
        for _ in range(count):
            step = step - eta * (g + M @ step)
        theta[k] = start + step

    def tour(self) -> None:
        solved, short = list(self.theta), list(self.theta)
        seen: set[int] = set()
        for place, k in enumerate(PATH):
            # two updates of every client: at its first and at its last visit
            for _ in range((k not in seen) + (k not in PATH[place + 1 :])):
                self.solve(solved, k)
                self.short(short, k)
            seen.add(k)
        for end in (solved, short):
            self.ways.append([a - b for a, b in zip(end, self.theta, strict=True)])
        if not self.tours:
            self.choose()
        self.tours += 1
        w = self.lowest()
        for c, way in zip(w, self.ways, strict=True):
            self.theta = [part + c * step for part, step in zip(self.theta, way, strict=True)]
        self.ways = self.ways[-self.depth :]

    def choose(self) -> None:
        """L from the curvature along the short direction, which is a multiple of the gradient."""
        way = self.ways[-1]
        z = self.token(self.theta)
        slope = self.loss.gradient(z, self.y) @ self.token(way)
        slope += self.l2 * sum(a @ b for a, b in zip(self.theta, way, strict=True))
        moved = -2 * self.first * slope
        bend = self.l2 * sum(float(step @ step) for step in way)
        change = self.token(way)
        self.reach = 0.1 * moved / (self.loss.curvature * change @ change + bend)

    def lowest(self) -> np.ndarray:
        """The weights with which f is least: Newton's method in an orthonormal basis."""
        D = np.stack([np.concatenate(way) for way in self.ways], axis=1)
        X, start = np.hstack(self.blocks), np.concatenate(self.theta)
        size = np.linalg.norm(D, axis=0)
        basis, sigma, V = np.linalg.svd(D / size, full_matrices=False)
        keep = sigma > 1e-7 * sigma[0]
        basis, back = basis[:, keep], (V[keep].T / sigma[keep]) / size[:, None]
        u = np.zeros(keep.sum())
        for _ in range(50):
            theta = start + basis @ u
            z = X @ theta
            g = basis.T @ (X.T @ self.loss.gradient(z, self.y) + self.l2 * theta)
            U = X @ basis
            bend = self.loss.hessian_product(z, self.y, np.ones_like(z))
            H = U.T @ (bend[:, None] * U) + self.l2 * np.eye(len(u))
            u = u - np.linalg.solve(H, g)
        return back @ u


@pytest.mark.parametrize("depth", [4, 80])
@pytest.mark.parametrize("kind", ["ridge", "logistic"])
def test_first_tours_are_those_of_the_recipe(
    kind: str, depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subspace, "EXACT", 1e-15)  # the last step of a mix, which mixes leave out
    model = mtcd.Glm(kind, l2=0.5)
    data = make_data(model, 60, SIZES, seed=4)
    method = replace(TWIN, start="c0", depth=depth)
    plain = PlainTwin(model.problem(data), 0.5, min(depth, 15))
    for tours in range(1, 5):
        plain.tour()
        # f is known again when all have been visited: three once, the last of the path twice
        run = mtcd.train(data, model, "path", method, mtcd.Stop(iterations=6 * tours + 4))
        expected = list(plain.theta)
        for k in (0, 1, 2, 3, 3):
            plain.solve(expected, k)
        assert run.final.objective == pytest.approx(plain.f(expected), rel=1e-10)
        np.testing.assert_allclose(run.coefficients, np.concatenate(expected), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("network", ["path", "star", "cycle", "complete"])
@pytest.mark.parametrize("kind", ["ridge", "logistic", "multinomial", "huber", "squared-hinge"])
def test_all_losses_reach_their_optimum(kind: str, network: str) -> None:
    model = mtcd.Glm(kind, l2=0.3, intercept=True)
    run = mtcd.train(
        make_data(model, 50, SIZES, seed=4),
        model,
        network,
        TWIN,
        mtcd.Stop(gap=1e-9, iterations=1500),
    )
    assert run.status == "converged"


@pytest.mark.parametrize("shape", [(20, [9, 8, 12]), (30, [1, 1, 1]), (12, [30])])
def test_wide_and_narrow_blocks_reach_their_optimum(shape: tuple[int, list[int]]) -> None:
    model = mtcd.Glm("ridge", l2=0.1)
    network = "path" if len(shape[1]) > 1 else []
    run = mtcd.train(
        make_data(model, *shape, seed=1), model, network, TWIN, mtcd.Stop(gap=1e-8, iterations=3000)
    )
    assert run.status == "converged"


def test_no_reported_objective_is_above_the_last() -> None:
    model = mtcd.Glm("logistic", l2=0.01)
    run = mtcd.train(
        make_data(model, 50, SIZES, seed=2), model, "path", TWIN, mtcd.Stop(iterations=200)
    )
    values = np.array(run.history["objective"])
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert run.final.objective == pytest.approx(values[-1])


def test_beyond_the_optimum_nothing_drifts() -> None:
    """After hundreds of tours at the optimum the models are still those of the token."""
    model = mtcd.Glm("ridge", l2=0.1)
    data = make_data(model, 40, SIZES, seed=2)
    run = mtcd.train(data, model, "path", TWIN, mtcd.Stop(iterations=2000))
    X, y = np.hstack(data.blocks), data.labels
    expected = np.linalg.solve(X.T @ X + 0.1 * np.eye(12), X.T @ y)
    np.testing.assert_allclose(run.coefficients, expected, rtol=1e-7, atol=1e-9)
    last = run.history.rows[-1].objective
    assert model.problem(data).evaluate(list(run.parameters.values())) == pytest.approx(
        last, rel=1e-12
    )


def test_a_hop_has_two_aggregates_the_order_and_the_products() -> None:
    model = mtcd.Glm("ridge", l2=0.5)
    data = make_data(model, 40, SIZES, seed=2)
    run = mtcd.train(data, model, "path", replace(TWIN, start="c0"), mtcd.Stop(iterations=18))
    # of the first tour: the reach, 5 products, a survey of 6; then 2 weights and 6 products more
    first, second, third = 80 + 1 + 5 + 6, 80 + 1 + 2 + 5 + 6, 80 + 1 + 4 + 5 + 12
    sent = np.cumsum([first] * 6 + [second] * 6 + [third] * 6)
    rows = run.history.rows[1:]
    assert [row.iteration for row in rows] == [4, 5, 6, 10, 11, 12, 16, 17, 18]
    assert [row.floats["client_client"] for row in rows] == [
        sent[row.iteration - 1] for row in rows
    ]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ConfigError, match="walk: tour"):
        mtcd.STCD(acceleration="twin")
    with pytest.raises(ConfigError, match="one token without a server"):
        mtcd.MTCD(acceleration="twin", walk="tour", clusters="auto")
    with pytest.raises(ConfigError, match="one token without a server"):
        mtcd.SVFL(acceleration="twin")
    for transport in ("float32", "delta32"):
        with pytest.raises(ConfigError, match=f"{transport} rounds"):
            mtcd.STCD(acceleration="twin", walk="tour", transport=transport)
    for name, value in (("stepsize", 0.1), ("local_updates", 3), ("local_solver", "newton")):
        with pytest.raises(ConfigError, match=f"leave method.{name} out"):
            mtcd.STCD(acceleration="twin", walk="tour", **{name: value})

    data, stop = mtcd.synthetic("logistic", samples=20, features=4, clients=2), mtcd.Stop(epochs=1)
    with pytest.raises(ConfigError, match="use momentum with l1"):
        mtcd.train(data, mtcd.Glm("logistic", l1=1.0), "path", TWIN, stop)
    privacy = mtcd.Privacy("sealed")
    with pytest.raises(ConfigError, match="leave method.acceleration out"):
        mtcd.train(data, mtcd.Glm("logistic", l2=1.0), "path", TWIN, stop, privacy=privacy)


def parties(model: mtcd.Glm, samples: int, sizes: list[int], **settings):
    """The parties of a path, whose tour starts at the first client."""
    data = make_data(model, samples, sizes, seed=3)
    method = replace(TWIN, start="c0", **settings).with_stepsize(1e-4)
    return method.parties(model.problem(data), mtcd.make_network("path", data.clients), 0)


def toured(made, tours: int) -> Token:
    """The token at the home client, as many tours later."""
    message = made.opening[-1]
    for _ in range(tours * 2 * (len(made.clients) - 1) + 1):
        [message] = [one for one in made.clients[message.to].receive(message) if one.to != MONITOR]
    token = message.payload
    assert isinstance(token, Token)
    return token


def test_the_token_is_that_of_the_models_at_every_moment() -> None:
    made = parties(mtcd.Glm("logistic", l2=0.5), 30, SIZES)
    message = made.opening[-1]
    for _ in range(40):
        [message] = [one for one in made.clients[message.to].receive(message) if one.to != MONITOR]
        token = message.payload
        copies = [client.copy_for(token) for client in made.clients]
        models = [client.model for client in made.clients]
        expected = sum(model.represent(theta) for model, theta in zip(models, copies, strict=True))
        np.testing.assert_allclose(token.aggregate, expected, atol=1e-10)
        tour = order_of(token).tour
        shorts = [
            client.short if client.tour == tour else theta
            for client, theta in zip(made.clients, copies, strict=True)
        ]
        expected = sum(model.represent(theta) for model, theta in zip(models, shorts, strict=True))
        np.testing.assert_allclose(second_of(token), expected, atol=1e-10)


def test_short_steps_are_alone_where_columns_are_many_and_the_penalty_is_weak() -> None:
    """Ridge with d > N: theta has to stay in the row space of X. Classes, scales and a penalty that
    is not weak need both."""
    wide = [20, 20, 20]
    lone = toured(parties(mtcd.Glm("ridge", l2=1e-3), 20, wide), 3)
    assert not order_of(lone).solves
    assert order_of(lone).keep == 3
    assert lone.floats == 20 + 3 + 1 + len(products_of(lone))
    assert "twin_second" not in lone.slots
    for model, samples in (
        (mtcd.Glm("ridge", l2=10.0), 20),
        (mtcd.Glm("ridge", l2=1e-3), 90),
        (mtcd.Glm("logistic", l2=1e-3), 20),
    ):
        assert order_of(toured(parties(model, samples, wide), 3)).solves


def test_there_they_are_the_faster_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    model = mtcd.Glm("ridge", l2=0.1)
    data = make_data(model, 40, [40, 40, 40], seed=3)
    hops = []
    for weak in (home.WEAK, 0.0):
        monkeypatch.setattr(home, "WEAK", weak)
        run = mtcd.train(data, model, "path", TWIN, mtcd.Stop(gap=1e-6, iterations=4000))
        assert run.status == "converged"
        hops.append(run.final.iteration)
    assert hops[0] < hops[1]


def note_of(run: mtcd.Run, acceleration: str) -> str:
    [note] = [note for note in run.notes if note.startswith(acceleration)]
    return note


def test_a_run_says_which_steps_were_chosen() -> None:
    model = mtcd.Glm("logistic", l2=0.5)
    data = make_data(model, 60, SIZES, seed=4)
    run = mtcd.train(data, model, "path", TWIN, mtcd.Stop(iterations=30))
    assert "solves its blocks" in note_of(run, "Twin")
    first = mtcd.train(data, model, "path", TWIN, mtcd.Stop(iterations=4))
    assert not any(note.startswith("Twin") for note in first.notes)
    wide = mtcd.Glm("ridge", l2=1e-3)
    columns = make_data(wide, 20, [20, 20, 20], seed=3)
    run = mtcd.train(columns, wide, "path", TWIN, mtcd.Stop(iterations=30))
    assert "short steps alone" in note_of(run, "Twin")


def test_conjugate_tours_say_so_too() -> None:
    conjugate = mtcd.STCD(walk="tour", acceleration="conjugate", local_solver="majorise")
    model, stop = mtcd.Glm("logistic", l2=0.5), mtcd.Stop(iterations=30)
    data = make_data(model, 60, SIZES, seed=4)
    run = mtcd.train(data, model, "path", conjugate, stop)
    assert "local step" in note_of(run, "Conjugate")
    assert "acceleration: twin" in note_of(run, "Conjugate")
    given = mtcd.train(data, model, "path", replace(conjugate, stepsize=1e-3), stop)
    assert not any(note.startswith("Conjugate") for note in given.notes)

    X = np.hstack(data.blocks) * np.exp(np.linspace(-4, 4, 12))
    scaled = mtcd.split(X, data.labels, clients=4)
    run = mtcd.train(scaled, model, "path", conjugate, stop)
    assert "blocks are solved" in note_of(run, "Conjugate")


@pytest.mark.parametrize(
    ("reach", "said"),
    [(1e-9, "one local step"), (2.5, "3 to 10 local steps"), (1e12, "blocks are solved")],
)
def test_steps_are_counted_at_their_largest(reach: float, said: str) -> None:
    smoothness = SimpleNamespace(blocks=np.array([1.0, 4.0]))
    assert steps_in_words(reach, smoothness) == said


def test_depth_is_the_number_of_directions() -> None:
    token = toured(parties(mtcd.Glm("ridge", l2=0.5), 60, SIZES, depth=6), 8)
    assert order_of(token).keep == 6
    assert len(order_of(token).weights) == 8
    few = toured(parties(mtcd.Glm("ridge", l2=0.5), 20, SIZES), 8)
    assert order_of(few).keep == 5  # a quarter of the samples


def test_a_change_that_is_rounding_gets_no_weight() -> None:
    """At the optimum of least squares both ends of a tour are its start, but for rounding."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal(20)

    class Fit:
        curvature = 1.0
        scaled = staticmethod(lambda A: A)
        objective = staticmethod(lambda z, penalty: Squared().value(z, y) + penalty)
        gradient = staticmethod(lambda z: z - y)
        hessian_product = staticmethod(lambda z, v: v)

    at_home = Home(10, y, Fit(), 1, 1e-3)
    at_home.surveying = False
    ends = (y + 1e-15 * rng.standard_normal(20), y + 1e-15 * rng.standard_normal(20))
    order, z = at_home.end_tour(Tour(ends, np.zeros(5)))
    assert np.abs(order.weights).max() <= 1.0
    np.testing.assert_allclose(z, y, atol=1e-13)
    assert 0.5 < CURVED < 1.0
