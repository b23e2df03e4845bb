"""The iterates of a method, and how they are compared with those of its plain version."""

import itertools

import numpy as np

from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.methods.optimal_sync.reference import weights_of_optimal_sync
from mtcd.methods.svfl.reference import svfl
from mtcd.methods.svfl.svfl import SVFL
from mtcd.network.changes import absences
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.testing.references import mtcd as reference
from problems import Case


def iterates(case: Case, method: Method, count: int) -> list[list[np.ndarray]]:
    """The models that the parties hold at the first ``count`` settled moments."""
    parties = method.parties(case.model.problem(case.data), case.network, case.seed)
    moments = itertools.islice(LocalEngine(parties, Ledger()).run(), count)
    return [[theta.copy() for theta in parties.parameters()] for _ in moments]


def plain_iterates(case: Case, method: Method, count: int) -> list[list[np.ndarray]]:
    """Those of the plain version of svfl, stcd, or mtcd."""
    problem, network, seed = case.model.problem(case.data), case.network, case.seed
    if isinstance(method, SVFL):
        return svfl(problem, method, seed, count - 1, absences(network))
    if method.hops is None:
        return [reference.stcd(problem, network, method, seed, S=hops) for hops in range(count)]
    choose = weights_of_optimal_sync if method.combine_rule == "optimal" else None
    return reference.mtcd(problem, network, method, seed, count - 1, choose)


def assert_same(
    ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]], tolerance: float = 1e-10
) -> None:
    assert len(ours) == len(theirs)
    for here, there in zip(ours, theirs, strict=True):
        for a, b in zip(here, there, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
