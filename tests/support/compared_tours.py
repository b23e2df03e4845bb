"""Accelerated tours beside their plain version."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import strategies as st

from mtcd.engines.local import LocalEngine
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.tours.reference import accelerated_mtcd, accelerated_stcd
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import MONITOR, SERVER, Parties, Progress
from mtcd.protocol.token import Token
from problems import Case


def at_sync(case: Case, Q: int, depth: int, kind: str, data: st.DataObject) -> MTCD:
    """A token per cluster, with hops enough for every tour."""
    pieces = len(case.network.components)
    tokens = data.draw(st.integers(pieces, case.network.size))
    hops = 2 * case.network.size + data.draw(st.integers(0, 3))
    settings = {"combine": "cluster", "walk": "tour", "acceleration": kind, "depth": depth}
    return MTCD(tokens, hops, Q, 1e-3, **settings)


def ends_of_tours(case: Case, method: MTCD, parties: Parties) -> Iterator[Progress]:
    """What is told at the ends of tours, or at syncs: without a server, more is told on the way."""
    problem = case.model.problem(case.data)
    roaming = method.plan(problem.samples, problem.outputs, case.network, case.seed).roaming
    for told in LocalEngine(parties, Ledger()).run():
        if method.hops is not None or roaming.ends_tour(told.hop):
            yield told


def check_against_reference(case: Case, method: MTCD, apart: float = 1e-4) -> None:
    problem = case.model.problem(case.data)
    plain = accelerated_stcd if method.hops is None else accelerated_mtcd
    expected = plain(problem, case.network, method, case.seed, 9)
    assert len(expected) == 10
    parties = method.parties(problem, case.network, case.seed)
    for told, theta in zip(ends_of_tours(case, method, parties), expected, strict=False):
        ours = [client.parameters() for client in parties.clients]
        # weights of 1e5 and more enlarge rounding: only some digits can agree
        assert problem.evaluate(ours) == pytest.approx(problem.evaluate(theta), rel=1e-5)
        for one, other in zip(ours, theta, strict=True):
            np.testing.assert_allclose(one, other, rtol=10 * apart, atol=apart)
        assert problem.fit.objective(told.aggregate, told.penalty) == pytest.approx(
            problem.evaluate(ours), rel=1e-7, abs=1e-8
        )


def check_invariant(case: Case, method: MTCD, drift: float = 1e-6) -> None:
    problem = case.model.problem(case.data)
    parties = method.parties(problem, case.network, case.seed)
    waiting = [message for message in parties.opening if message.to != MONITOR]
    for _ in range(150):
        message = waiting.pop(0)
        token: Token = message.payload
        held = problem.aggregate([client.copy_for(token) for client in parties.clients])
        size = 1 + np.abs(held).max()  # extrapolation enlarges rounding
        np.testing.assert_allclose(token.aggregate, held, atol=drift * size)
        party = parties.server if message.to == SERVER else parties.clients[message.to]
        waiting += [after for after in party.receive(message) if after.to != MONITOR]
