"""A few fixed cases of every method against its plain twin: in milliseconds, before the many random
ones elsewhere."""

import pytest

from compared_iterates import assert_same, iterates
from compared_tours import check_against_reference
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.reference import svfl as plain_svfl
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tours import reference as reference_tours
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.testing.references import mtcd as reference
from problems import MODELS, Case, make_data

SPARSE = Glm("logistic", l1=0.02, l2=0.1, intercept=True)
CLUSTERS = [["c0", "c1", "c2"], ["c3", "c4"]]


def fixed_case(model: Glm = MODELS[0]) -> Case:
    """Five clients in a cycle; no two blocks have the same width."""
    data = make_data(model, 17, [3, 1, 2, 5, 4], seed=4)
    return Case(data, model, make_network("cycle", data.clients), seed=6)


@pytest.mark.parametrize("model", [MODELS[0], SPARSE], ids=["ridge", "sparse"])
@pytest.mark.parametrize(
    "method",
    [
        MTCD(2, 4, 3, 3e-3),
        MTCD(2, 3, 2, 3e-3, batch=5),
        MTCD(3, 3, 1, 3e-3, combine="visitors", start=["c1", "c3", {"c0": 1.0, "c4": 2.0}]),
        MTCD(None, 5, 2, 3e-3, clusters=CLUSTERS, walk="tour"),
        MTCD(None, 4, 2, 3e-3, clusters=CLUSTERS, batch=4),
    ],
    ids=lambda method: method.describe(),
)
def test_mtcd(method: MTCD, model: Glm) -> None:
    case = fixed_case(model)
    expected = reference.mtcd(case.model.problem(case.data), case.network, method, case.seed, T=5)
    assert_same(iterates(case, method, 6), expected)


@pytest.mark.parametrize("walk", ["lazy", "tour", "random-tour", "non-backtracking", "metropolis"])
def test_stcd(walk: str) -> None:
    case, method = fixed_case(SPARSE), STCD(2, 3e-3, walk=walk)
    expected = reference.stcd(case.model.problem(case.data), case.network, method, case.seed, S=25)
    assert_same(iterates(case, method, 26)[-1:], [expected])


@pytest.mark.parametrize("batch", [None, 5])
def test_svfl(batch: int | None) -> None:
    case, method = fixed_case(SPARSE), SVFL(3, 2e-3, batch)
    assert_same(
        iterates(case, method, 6),
        plain_svfl(case.model.problem(case.data), method, case.seed, rounds=5),
    )


@pytest.mark.parametrize("kind", ["conjugate", "momentum", "anderson"])
@pytest.mark.parametrize("server", [False, True])
def test_accelerated_tours(kind: str, server: bool) -> None:
    case, settings = (
        fixed_case(Glm("logistic", l2=0.1)),
        {"walk": "tour", "acceleration": kind, "depth": 2},
    )
    if server:
        method, plain = (
            MTCD(None, 6, 2, 3e-3, clusters=CLUSTERS, **settings),
            reference_tours.accelerated_mtcd,
        )
    else:
        method, plain = STCD(2, 3e-3, **settings), reference_tours.accelerated_stcd
    check_against_reference(case, method, plain)
