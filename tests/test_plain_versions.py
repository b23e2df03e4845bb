"""The plain versions of the methods, where settings are left out or penalties are missing."""

from itertools import islice

import numpy as np
import pytest

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.ledger.ledger import Ledger
from mtcd.methods import reference
from mtcd.methods.dcpa import DCPA
from mtcd.methods.mtcd import MTCD
from mtcd.methods.reference_dcpa import dcpa
from mtcd.model.linear import Glm, LinearProblem
from problems import make_data


def problem_of(model: Glm) -> tuple[LinearProblem, mtcd.Network]:
    data = make_data(model, 12, [2, 1, 3], seed=5)
    problem = model.problem(data)
    assert isinstance(problem, LinearProblem)
    return problem, mtcd.make_network("path", data.clients)


def test_without_a_number_of_tokens_there_is_one() -> None:
    problem, network = problem_of(Glm("ridge", l2=0.5))
    one, none = (reference.mtcd(problem, network, MTCD(tokens, 4, 2, 0.01), 3, 3) for tokens in (1, None))
    for theta, other in zip(one, none, strict=True):
        np.testing.assert_array_equal(np.concatenate(theta), np.concatenate(other))
    assert np.abs(np.concatenate(one[-1])).max() > 0


@pytest.mark.parametrize("variant", ["A", "B"])
@pytest.mark.parametrize(
    "model",
    [Glm("linear"), Glm("linear", l1=0.2), Glm("linear", l2=0.3), Glm("linear", l2=0.3, intercept=True)],
    ids=["none", "l1", "l2", "l2 but for the intercept"],
)
def test_dcpa_extrapolates_where_the_penalty_is_not_strongly_convex(model: Glm, variant: str) -> None:
    problem, network = problem_of(model)
    method = DCPA(0.02, 0.03, 0.1 if variant == "A" else None, variant)
    plain = dcpa(problem, network, method, 6)
    told = islice(LocalEngine(method.parties(problem, network, 0), Ledger()).run(), 7)
    for progress, theta in zip(told, plain, strict=True):
        assert progress.parameters is not None
        np.testing.assert_allclose(np.concatenate(progress.parameters), np.concatenate(theta), rtol=1e-8, atol=1e-10)
