"""The iterates of a method, and how they are compared with those of its plain version."""

import itertools

import numpy as np

from mtcd.engines.local import LocalEngine
from mtcd.methods.method import Method
from mtcd.protocol.ledger.ledger import Ledger
from problems import Case


def iterates(case: Case, method: Method, count: int) -> list[list[np.ndarray]]:
    """The models that the parties hold at the first ``count`` settled moments."""
    parties = method.parties(case.model.problem(case.data), case.network, case.seed)
    moments = itertools.islice(LocalEngine(parties, Ledger()).run(), count)
    return [[theta.copy() for theta in parties.parameters()] for _ in moments]


def assert_same(
    ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]], tolerance: float = 1e-10
) -> None:
    assert len(ours) == len(theirs)
    for here, there in zip(ours, theirs, strict=True):
        for a, b in zip(here, there, strict=True):
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
