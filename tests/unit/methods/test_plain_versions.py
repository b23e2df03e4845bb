"""The plain versions of the methods beside the parties: settings left out, walks that look back,
clients that leave."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import mtcd
from compared_iterates import assert_same, iterates
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.optimal_sync.reference import weights_of_optimal_sync
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change
from mtcd.testing.references import mtcd as reference
from problems import Case, make_data

RIDGE, LASSO = Glm("ridge", l2=0.5), Glm("linear", l1=0.3)


def problem_of(model: Glm) -> tuple[LinearProblem, mtcd.Network]:
    data = make_data(model, 12, [2, 1, 3], seed=5)
    problem = model.problem(data)
    assert isinstance(problem, LinearProblem)
    return problem, mtcd.make_network("path", data.clients)


def test_without_a_number_of_tokens_there_is_one() -> None:
    problem, network = problem_of(Glm("ridge", l2=0.5))
    one, none = (
        reference.mtcd(problem, network, MTCD(tokens, 4, 2, 0.01), 3, 3) for tokens in (1, None)
    )
    for theta, other in zip(one, none, strict=True):
        np.testing.assert_array_equal(np.concatenate(theta), np.concatenate(other))
    assert np.abs(np.concatenate(one[-1])).max() > 0


def case_of(
    model: Glm,
    network: str,
    widths: tuple[int, ...] = (2, 3, 1, 2, 1),
    changes: tuple[Change, ...] = (),
) -> Case:
    data = make_data(model, 14, list(widths), seed=6)
    return Case(data, model, with_changes(mtcd.make_network(network, data.clients), changes), 4)


LEAVE = (Change(6, leave=["c0", "c1"]), Change(12, join=["c0", "c1"]))


@pytest.mark.parametrize("rule", ["cluster", "optimal"])
def test_a_token_whose_clients_have_all_left_waits(rule: str) -> None:
    case = case_of(RIDGE, "path", changes=LEAVE)
    method = MTCD(None, 3, 2, 0.02, clusters=[["c0", "c1"], ["c2", "c3", "c4"]], combine=rule)
    problem = RIDGE.problem(case.data)
    choose = weights_of_optimal_sync if rule == "optimal" else None
    plain = reference.mtcd(problem, case.network, method, case.seed, 7, choose)
    assert_same(iterates(case, method, 8), plain, 1e-6)
    still = [np.array_equal(before[0], after[0]) for before, after in pairwise(plain)]
    assert still[2:4] == [True, True]
    assert not still[4]


def test_a_token_is_rounded_between_clients_only() -> None:
    problem = RIDGE.problem(case_of(RIDGE, "path").data)
    sent: list[np.ndarray] = []

    def rounded(Z: np.ndarray) -> np.ndarray:
        sent.append(Z)
        return np.round(Z, 1)

    f, theta, way = reference.Objective(problem, None), reference.zeros(problem), [1, 1, 0, 0]
    new, Z, k = reference.token_roaming(
        theta, f.token(theta), 0, f, 4, 2, 0.01, lambda s, k: way[s], rounded
    )
    assert len(sent) == 2
    assert k == 0
    steps = np.zeros(2)
    for _ in range(2):  # the first visit, by hand
        steps = steps - 0.01 * (
            problem.blocks[0].T @ (problem.blocks[0] @ steps - problem.labels) + 0.5 * steps
        )
    np.testing.assert_allclose(sent[0], problem.blocks[0] @ steps)
    assert 0 < np.abs(Z - f.token(new)).max() <= 0.1 + 1e-9  # two roundings
    assert not theta[0].any()


def test_a_plain_objective_is_that_of_its_batch() -> None:
    """N/B times the loss of the batch: the mean of its gradients over batches is that of all
    samples."""
    problem = RIDGE.problem(case_of(RIDGE, "path").data)
    theta = [np.ones(block.shape[1]) for block in problem.blocks]
    whole = reference.Objective(problem, None)
    halves = [reference.Objective(problem, np.arange(n, 14, 2)) for n in (0, 1)]
    one, *two = (f.step(1, theta[1], f.token(theta), 0.1) - theta[1] for f in (whole, *halves))
    np.testing.assert_allclose(np.mean(two, axis=0), one)
