"""Each method beside its plain version, on small fixed problems: quick, where other files draw
many."""

import itertools

import numpy as np
import pytest

import mtcd
from compared_tours import check_against_reference
from mtcd.engines.local import LocalEngine
from mtcd.methods.method import resolve_stepsize
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.tours import reference as reference_tours
from mtcd.methods.tree_cg.reference import tree_cg
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.network.topology import make_network
from mtcd.protocol.ledger.ledger import Ledger
from problems import Case, make_data

RIDGE, LOGISTIC = mtcd.Glm("ridge", l2=0.5), mtcd.Glm("logistic", l2=0.5)


def small(model: mtcd.Glm, network: str) -> Case:
    data = make_data(model, 14, [2, 3, 1, 2], seed=6)
    return Case(data, model, make_network(network, data.clients), 4)


@pytest.mark.parametrize("network", ["path", "cycle"])
@pytest.mark.parametrize("model", [RIDGE, LOGISTIC], ids=["ridge", "logistic"])
def test_conjugate_tours_that_choose_their_steps(model: mtcd.Glm, network: str) -> None:
    case = small(model, network)
    method = resolve_stepsize(
        STCD(walk="tour", acceleration="conjugate"), BlockSmoothness(model.problem(case.data))
    )[0]
    assert method.adaptive
    check_against_reference(case, method, reference_tours.accelerated_stcd, 1e-3)


@pytest.mark.parametrize("kind", ["anderson", "momentum", "conjugate"])
@pytest.mark.parametrize("model", [RIDGE, LOGISTIC], ids=["ridge", "logistic"])
def test_tours_of_two_clusters(model: mtcd.Glm, kind: str) -> None:
    case = small(model, "path")
    clusters = [["c0", "c1"], ["c2", "c3"]]
    method = MTCD(None, 2, 2, 0.02, clusters=clusters, walk="tour", acceleration=kind)
    check_against_reference(case, method, reference_tours.accelerated_mtcd, 1e-3)


@pytest.mark.parametrize("model", [RIDGE, LOGISTIC], ids=["ridge", "logistic"])
def test_conjugate_gradients_on_a_tree(model: mtcd.Glm) -> None:
    case = small(model, "star")
    problem = model.problem(case.data)
    parties = mtcd.TreeCG().parties(problem, case.network, case.seed)
    expected = tree_cg(problem, 8)
    for told, theta in zip(
        itertools.islice(LocalEngine(parties, Ledger()).run(), 9), expected, strict=True
    ):
        for ours, theirs in zip(told.parameters, theta, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)
    if model is RIDGE:  # as many iterations as columns
        X = np.hstack(case.data.blocks)
        best = np.linalg.solve(X.T @ X + 0.5 * np.eye(8), X.T @ case.data.labels)
        np.testing.assert_allclose(np.concatenate(expected[-1]), best, rtol=1e-6)
