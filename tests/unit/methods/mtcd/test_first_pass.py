"""The first pass of a lone token that starts from given parameters."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.models.glm.model import LinearProblem
from mtcd.network.walks import NOWHERE
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.testing.references import mtcd as reference
from problems import make_data

MODEL = mtcd.Glm("ridge", l2=0.5)
DATA = make_data(MODEL, 14, [2, 3, 1, 2], seed=6)


def warm() -> LinearProblem:
    """A problem that starts from random parameters."""
    problem, rng = MODEL.problem(DATA), np.random.default_rng(3)
    return replace(
        problem, start=tuple(rng.standard_normal(block.shape[1]) for block in problem.blocks)
    )


@pytest.mark.parametrize(("network", "hops"), [("path", 4), ("star", 4), ("cycle", 3)])
def test_a_first_pass_adds_every_client_once(network: str, hops: int) -> None:
    """It ends where training starts. On the path and on the star some client is passed twice."""
    problem, links, ledger = warm(), mtcd.make_network(network, DATA.clients), Ledger()
    method = STCD(2, 1e-3, start="c1")
    parties = method.parties(problem, links, 0)
    (first,) = parties.opening
    token = first.payload
    assert first.to == first.sender
    assert (token.index, token.t, token.hop, token.penalty, token.previous) == (
        0,
        0,
        -hops - 1,
        0.0,
        NOWHERE,
    )
    assert not token.aggregate.any()
    run = LocalEngine(parties, ledger).run()
    told = next(run)
    assert told.hop == 0
    assert ledger.messages()["client_client"] == hops
    start = [problem.client(k).initial() for k in range(4)]
    np.testing.assert_allclose(told.aggregate, problem.aggregate(start))
    assert told.penalty == pytest.approx(sum(0.5 * theta @ theta / 2 for theta in start))
    assert [one.hop for one in islice(run, 3)] == [1, 2, 3]
    plain = reference.stcd(problem, links, method, 0, 3)
    np.testing.assert_allclose(np.concatenate(parties.parameters()), np.concatenate(plain))
