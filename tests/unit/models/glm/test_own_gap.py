"""The parts of the gap that parties tell the operator, against the optimum."""

import numpy as np
import pytest

from mtcd.models.glm.model import Glm
from mtcd.models.glm.optimum.optimum import optimum
from own_parts import own_parts
from problems import MODELS, make_data


@pytest.mark.parametrize(
    "model", [MODELS[0], MODELS[4], MODELS[6], MODELS[8], MODELS[9]], ids=lambda m: m.kind
)
def test_parts_of_the_gap_bound_it_and_vanish_at_the_optimum(model: Glm) -> None:
    data = make_data(model, 15, [2, 1, 3], seed=8)
    parts, problem = own_parts(data, model), model.problem(data)
    best = optimum(problem.blocks, problem.labels, problem.loss, problem.penalties)
    rng = np.random.default_rng(0)
    thetas = [rng.standard_normal(theta.shape) * 0.3 for theta in best.parameters]
    for share in (1.0, 0.1, 0.01, 0.0):
        now = [share * a + (1 - share) * b for a, b in zip(thetas, best.parameters, strict=True)]
        aggregate = problem.aggregate(now)
        told = [part.gap_part(theta, aggregate) for part, theta in zip(parts, now, strict=True)]
        gap = problem.evaluate(now) - best.value
        assert min(told) >= -1e-12
        assert sum(told) >= gap - 1e-9
    assert sum(told) == pytest.approx(0.0, abs=1e-5)


def test_an_intercept_has_no_bound() -> None:
    data = make_data(MODELS[3], 15, [2, 1, 3], seed=8)
    first, second, _ = own_parts(data, MODELS[3])
    assert first.gap_part(np.zeros(3), np.zeros(15)) is None
    assert second.gap_part(np.zeros(1), np.zeros(15)) is not None
