"""The invariant: at all times, a token equals the aggregate of what the clients hold for it."""

from collections import deque
from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.optimal_parties import OptimalClient
from mtcd.methods.token_parties import TokenClient, TokenServer
from mtcd.model.linear import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.batches import Batches
from mtcd.protocol.party import MONITOR, SERVER, Message, Parties, Progress
from mtcd.protocol.token import Tally, Token
from problems import Case, cases, make_data, mtcd_settings


def deliver(parties: Parties, deliveries: int, check: Callable[[list[Token]], None]) -> list[Progress]:
    """Deliver messages one by one, in an order of its own (last in, first out among tokens), and check each time."""
    waiting: deque[Message] = deque()
    told: list[Progress] = []
    outgoing = parties.opening
    for _ in range(deliveries):
        for message in outgoing:
            (told.append(message.payload) if message.to == MONITOR else waiting.append(message))
        check([message.payload for message in waiting if isinstance(message.payload, Token)])
        message = waiting.pop()
        party = parties.server if message.to == SERVER else parties.clients[message.to]
        outgoing = party.receive(message)
    return told


def check_invariant(case: Case, method: MTCD, deliveries: int) -> None:
    problem = case.model.problem(case.data)
    parties = method.parties(problem, case.network, case.seed)
    batches = Batches(case.data.samples, method.batch, case.seed)

    def check(tokens: list[Token]) -> None:
        for token in tokens:
            rows = batches.rows(token.t)
            held = [client.copy_for(token) for client in parties.clients]
            aggregate = sum(
                client.model.represent(theta, rows) for client, theta in zip(parties.clients, held, strict=True)
            )
            penalty = sum(client.model.penalty(theta) for client, theta in zip(parties.clients, held, strict=True))
            np.testing.assert_allclose(token.aggregate, aggregate, atol=1e-10)
            np.testing.assert_allclose(token.penalty, penalty, atol=1e-10)

    told = deliver(parties, deliveries, check)
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
    parties = method.parties(problem, case.network, case.seed)
    server = parties.server
    assert isinstance(server, TokenServer)
    seen = 0

    def check(tokens: list[Token]) -> None:
        nonlocal seen
        if len(tokens) != server.plan.tokens or any(token.hop or token.t == 0 for token in tokens):
            return
        seen += 1
        rows = server.plan.batches.rows(server.t)
        thetas = [client.parameters() for client in parties.clients]
        aggregate = sum(
            client.model.represent(theta, rows) for client, theta in zip(parties.clients, thetas, strict=True)
        )
        penalty = sum(client.model.penalty(theta) for client, theta in zip(parties.clients, thetas, strict=True))
        np.testing.assert_allclose(server.aggregate, aggregate, atol=1e-10)
        np.testing.assert_allclose(server.penalty, penalty, atol=1e-10)

    deliver(parties, 4 * server.plan.tokens * (method.hops or 1) + 4 * case.network.size, check)
    assert seen


MODEL = Glm("ridge", alpha=0.7)


def client_of(method: MTCD) -> TokenClient:
    """The first of three."""
    data = make_data(MODEL, 12, [3, 2, 2], seed=3)
    client = method.parties(MODEL.problem(data), make_network("complete", data.clients), 7).clients[0]
    assert isinstance(client, TokenClient)
    return client


def arriving(index: int, length: int = 12) -> Token:
    """Each with another aggregate, so that its copy becomes another."""
    return Token(index, 0, 0, np.random.default_rng(index).standard_normal(length), 0.0)


@pytest.mark.parametrize("combine", ["average", "visitors", "optimal"])
def test_whoever_comes_first_the_copies_combine_to_the_same_number(combine: str) -> None:
    """To the last bit: sums are formed in the order of tokens."""
    found = []
    for order in permutations(range(4)):
        client = client_of(MTCD(4, 3, 3, 0.013, combine=combine))
        for index in order:
            token = arriving(index)
            token.tally = Tally(np.zeros(4))
            client.visit(token)
        weights = {0: np.array([0.1, 0.7, 0.3, 0.2])}
        found.append(client.after_sync(weights) if isinstance(client, OptimalClient) else client.parameters())
    assert len({theta.tobytes() for theta in found}) == 1
    assert found[0].any()


def test_who_is_asked_late_tells_of_the_model_from_before_and_keeps_its_copies() -> None:
    """A token of the iteration may be here before the server's question."""
    client = client_of(MTCD(2, 3, 3, 0.01, batch=6))
    client.visit(arriving(0, 6))
    visited = client.parameters()
    assert visited.any()
    assert not client.share(0).payload.representation.any()  # theta_k was 0
    assert np.array_equal(client.parameters(), visited)
    assert client.share(1).payload.representation.any()
