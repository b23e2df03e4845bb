"""The invariant: at all times, a token equals the aggregate of what the clients hold for it."""

from collections import deque
from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.token_parties import TokenServer
from mtcd.protocol.batches import Batches
from mtcd.protocol.party import MONITOR, SERVER, Cast, Message, Progress
from mtcd.protocol.token import Token
from problems import Case, cases, mtcd_settings


def deliver(cast: Cast, deliveries: int, check: Callable[[list[Token]], None]) -> list[Progress]:
    """Deliver messages one by one, in an order of its own (last in, first out among tokens), and check each time."""
    waiting: deque[Message] = deque()
    told: list[Progress] = []
    outgoing = cast.opening
    for _ in range(deliveries):
        for message in outgoing:
            (told.append(message.payload) if message.to == MONITOR else waiting.append(message))
        check([message.payload for message in waiting if isinstance(message.payload, Token)])
        message = waiting.pop()
        party = cast.server if message.to == SERVER else cast.clients[message.to]
        outgoing = party.receive(message)
    return told


def check_invariant(case: Case, method: MTCD, deliveries: int) -> None:
    problem = case.model.problem(case.data)
    cast = method.cast(problem, case.network, case.seed)
    batches = Batches(case.data.samples, method.batch, case.seed)

    def check(tokens: list[Token]) -> None:
        for token in tokens:
            rows = batches.rows(token.t)
            held = [client.copy_for(token) for client in cast.clients]
            aggregate = sum(
                client.model.represent(theta, rows) for client, theta in zip(cast.clients, held, strict=True)
            )
            penalty = sum(client.model.penalty(theta) for client, theta in zip(cast.clients, held, strict=True))
            np.testing.assert_allclose(token.aggregate, aggregate, atol=1e-10)
            np.testing.assert_allclose(token.penalty, penalty, atol=1e-10)

    told = deliver(cast, deliveries, check)
    assert told


@given(st.data())
@settings(max_examples=120)
def test_every_token_is_the_aggregate_of_what_the_clients_hold_for_it(data: st.DataObject) -> None:
    case = data.draw(cases())
    check_invariant(case, data.draw(mtcd_settings(case)), deliveries=60)


@given(cases(connected=True), st.integers(1, 4))
@settings(max_examples=40)
def test_so_is_the_lone_token_of_stcd(case: Case, local_updates: int) -> None:
    check_invariant(case, STCD(local_updates, 2e-3), deliveries=40)


@given(st.data())
@settings(max_examples=80)
def test_the_synced_token_is_the_aggregate_of_the_combined_models(data: st.DataObject) -> None:
    case = data.draw(cases())
    method = data.draw(mtcd_settings(case))
    problem = case.model.problem(case.data)
    cast = method.cast(problem, case.network, case.seed)
    server = cast.server
    assert isinstance(server, TokenServer)
    seen = 0

    def check(tokens: list[Token]) -> None:
        nonlocal seen
        if len(tokens) != server.plan.tokens or any(token.hop or token.t == 0 for token in tokens):
            return
        seen += 1
        rows = server.plan.batches.rows(server.t)
        thetas = [client.parameters() for client in cast.clients]
        aggregate = sum(client.model.represent(theta, rows) for client, theta in zip(cast.clients, thetas, strict=True))
        penalty = sum(client.model.penalty(theta) for client, theta in zip(cast.clients, thetas, strict=True))
        np.testing.assert_allclose(server.aggregate, aggregate, atol=1e-10)
        np.testing.assert_allclose(server.penalty, penalty, atol=1e-10)

    deliver(cast, 4 * server.plan.tokens * (method.hops or 1) + 4 * case.network.size, check)
    assert seen
