"""What the first tour chooses of step sizes and depths, from a survey of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.methods.optimal_weights import Along
from mtcd.methods.tours.survey import SOLVED, Survey
from mtcd.models.glm.fit import LabelFit
from mtcd.models.losses import LOSSES

N, D, L2 = 40, 5, 0.3


RNG = np.random.default_rng(11)


X = RNG.standard_normal((N, D))


def surveyed(
    X: np.ndarray, clients: int, first: float = 1e-6, l2: float = 0.0
) -> tuple[tuple[float, float, int], float]:
    """What a survey of these columns chooses, and L: the curvature of f along its gradient."""
    y = np.random.default_rng(0).standard_normal(len(X))
    problem = mtcd.Glm("ridge", l2=l2).problem(mtcd.split(X, y, 1))
    gradient, first = X.T @ -y, 1e-6
    step = -2 * first * gradient  # two updates of every client
    shape = Along.of(
        problem.fit, np.zeros(len(X)), [X @ step], np.zeros(1), np.array([[l2 * step @ step]])
    )
    blocks = np.array_split(X, clients, axis=1)
    squares, norms = (
        [np.linalg.norm(block, order) ** 2 for block in blocks] for order in ("fro", 2)
    )
    spread = sum(b.shape[1] * n / s for b, n, s in zip(blocks, norms, squares, strict=True))
    survey = Survey(clients, X.shape[1], sum(squares), sum(norms), spread)
    found = survey.choose(shape, first, problem.loss.curvature)
    assert found is not None
    direction = gradient / np.linalg.norm(gradient)
    return found, float(np.sum((X @ direction) ** 2)) + l2


@pytest.mark.parametrize("l2", [0.0, 5.0])
@pytest.mark.parametrize(
    ("kind", "features", "factor", "depth"),
    [
        ("independent", 40, 3.0, 10),
        ("independent", 400, 0.01, 10),
        ("common", 40, 1.0, 20),
        ("common", 400, 0.1, 20),
        ("within", 40, 30.0, 20),
        ("within", 400, 30.0, 20),
    ],
)
def test_the_step_that_a_survey_chooses(
    kind: str, features: int, factor: float, depth: int, l2: float
) -> None:
    rng = np.random.default_rng(7)
    table, clients = rng.standard_normal((200, features)), 8
    if kind == "common":
        table += 3.0 * rng.standard_normal((200, 1))
    if kind == "within":
        table += 3.0 * np.repeat(rng.standard_normal((200, clients)), features // clients, axis=1)
    (step, plain, stored), L = surveyed(table, clients, l2)
    assert step / plain == pytest.approx(factor)
    assert stored == depth
    assert plain == pytest.approx(1 / L, rel=1e-6)


@pytest.mark.parametrize("features", [50, 200, 800])
def test_columns_are_related_where_the_gradient_sees_twice_what_it_could_of_independent_ones(
    features: int,
) -> None:
    rng = np.random.default_rng(9)
    independent, labels = (
        rng.standard_normal((200, features)),
        np.random.default_rng(0).standard_normal((200, 1)),
    )
    common = rng.standard_normal((200, 1)) + labels  # so that the gradient sees it
    largest = np.linalg.norm(independent, 2) ** 2 / (independent**2).sum()
    found, ratios = [], []
    for share in np.geomspace(0.02, 4.0, 30):
        table = independent + share * common
        (_, _, depth), L = surveyed(table, 5, 0.0)
        ratio = L / (largest * (table**2).sum())
        ratios.append(ratio)
        if not 1.8 < ratio < 2.2:  # far enough from the limit
            found.append((ratio > 2, depth == 20))
    assert all(related == many for related, many in found)
    assert ratios[0] < 1
    assert ratios[-1] > 3
    assert any(1.3 < ratio < 1.8 for ratio in ratios)


def along_a_tour(norm: float) -> Along:
    """A first tour of steps of 1/4, for which |X g|^2 / |g|^2 is ``norm``."""
    fit = LabelFit(LOSSES["ridge"](), np.array([1.0, 0.0, 0.0, 0.0]))
    moved = 2.0 * 0.25 * 1.0 * norm / 2.0  # two updates of 0.25 along a slope of norm/2
    changes = np.zeros((4, 2))
    changes[0, 1] = norm / 2.0
    assert changes[0, 1] ** 2 / moved == norm
    changes[:, 0] = [8.0, 1.0, 2.0, -3.0]  # an earlier start, which tells nothing
    bend = np.array([[7.0, 5.0], [5.0, 3.0 * moved]])
    return Along(fit, np.zeros(4), changes, np.array([0.5, 0.0]), bend)


def survey_of(
    norm: float, columns: float, squares: float, norms: float, spread: float, clients: float = 4.0
) -> Any:
    """What is chosen: the step by 1/L, and the depth."""
    found = Survey(clients, columns, squares, norms, spread).choose(along_a_tour(norm), 0.25, 2.0)
    assert found[1] == pytest.approx(1.0 / (2.0 * norm + 3.0))
    return round(found[0] / found[1], 9), found[2]


def test_blocks_decide_where_columns_are_half_again_as_alike_within_as_across() -> None:
    """Across: norm / (norms / clients) = 1; within: spread / clients."""
    wanted = {5.75: (3.0, 10), 6.0: (3.0, 10), 6.25: (30.0, 10)}
    assert {spread: survey_of(4.0, 1.0, 4.0, 16.0, spread) for spread in wanted} == wanted


@pytest.mark.parametrize(("clients", "limit"), [(4.0, 1.5), (8.0, 2.0), (16.0, 4.0)])
def test_blocks_do_not_decide_where_a_quarter_of_the_clients_share_what_they_have(
    clients: float, limit: float
) -> None:
    for across, factor in ((limit - 0.25, 30.0), (limit, 3.0), (limit + 0.25, 3.0)):
        norms = 4.0 * clients / across
        assert survey_of(4.0, 1.0, 4.0, norms, 100.0 * clients, clients) == (factor, 10), across


def test_columns_are_related_above_twice_what_independent_ones_could_have() -> None:
    """Four columns of four samples: independent ones have up to squares / 4 * (1 + 1)^2 =
    squares."""
    wanted = {1.75: (1.0, 20), 2.0: (3.0, 10), 2.25: (3.0, 10)}
    assert {squares: survey_of(4.0, 4.0, squares, 16.0, 4.0) for squares in wanted} == wanted


@pytest.mark.parametrize(
    ("clients", "spread", "factor"),
    [(20.0, 1.4, 10.0), (20.0, 1.2, 1.0), (15.0, 1.4, 1.0)],
)
def test_between_blocks_and_factors_where_a_few_clients_are_alike(
    clients: float, spread: float, factor: float
) -> None:
    """Across: norm / (norms / clients) = 4, less than a quarter of 20 clients, but not of 15."""
    found = survey_of(4.0, 4.0, 1.0, clients, spread * clients, clients)
    assert found == (factor, 20)


@pytest.mark.parametrize(("uneven", "factor"), [(2.9, 3.0), (3.1, SOLVED)])
def test_blocks_are_solved_where_scales_differ(uneven: float, factor: float) -> None:
    """Four columns with a mean square of 25, of which the geometric mean is a share."""
    logs = 4.0 * np.log(25.0 / uneven)
    survey = Survey(4.0, 4.0, 100.0, 16.0, 4.0, logs)
    step, least, _ = survey.choose(along_a_tour(4.0), 0.25, 2.0)
    assert step / least == pytest.approx(factor)
    # with more columns than samples what is outside the row space would be corrected slowly
    wide = Survey(4.0, 5.0, 125.0, 16.0, 4.0, 5.0 * np.log(25.0 / uneven))
    step, least, _ = wide.choose(along_a_tour(4.0), 0.25, 2.0)
    assert step / least == pytest.approx(0.01)


def test_nothing_is_chosen_from_columns_of_zeros() -> None:
    assert Survey(4.0, 4.0, 0.0, 16.0, 4.0).choose(along_a_tour(4.0), 0.25, 2.0) is None
    assert Survey(4.0, 4.0, 0.5, 16.0, 4.0).choose(along_a_tour(4.0), 0.25, 2.0) is not None


def test_there_are_wide_tables_from_more_columns_than_samples() -> None:
    assert survey_of(4.0, 4.0, 100.0, 16.0, 4.0) == (3.0, 10)
    assert survey_of(4.0, 5.0, 100.0, 16.0, 4.0) == (0.01, 10)
    assert survey_of(4.0, 5.0, 1.0, 16.0, 4.0) == (0.1, 20)
    assert survey_of(4.0, 4.0, 1.0, 16.0, 4.0) == (1.0, 20)
