"""The invariant: at all times, a token equals the aggregate of what the clients hold for it."""

from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hand_made_clients import arriving, client_of
from mtcd.core.errors import WireError
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.optimal_sync.parties import OptimalClient
from mtcd.methods.optimal_sync.tally import SyncTally
from mtcd.methods.tours.instruction import Instruction, instruct, instruction_of, products_of
from mtcd.models.trees.gains import known_gains, record
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.extensions import check_slots
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import Payload
from mtcd.protocol.model import Gains
from mtcd.protocol.party import MONITOR, SERVER, Message, Parties, Progress
from mtcd.protocol.token import Token
from mtcd.training.plateau import Windows
from problems import ALL, Case, cases, mtcd_settings


def deliver(
    parties: Parties, deliveries: int, check: Callable[[list[Token]], None]
) -> list[Progress]:
    """Deliver messages one by one, in an order of its own (last in, first out among tokens), and
    check each time."""
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
    # where optimal sync combines copies, a penalty that is not smooth is known up to a bound
    only_bounded = method.combine_rule == "optimal" and problem.nonsmooth

    def check(tokens: list[Token]) -> None:
        for token in tokens:
            rows = batches.rows(token.t)
            held = [client.copy_for(token) for client in parties.clients]
            aggregate = sum(
                client.model.represent(theta, rows)
                for client, theta in zip(parties.clients, held, strict=True)
            )
            penalty = sum(
                client.model.penalty(theta)
                for client, theta in zip(parties.clients, held, strict=True)
            )
            np.testing.assert_allclose(token.aggregate, aggregate, atol=1e-9)
            if only_bounded:
                assert token.penalty >= penalty - 1e-9
            else:
                np.testing.assert_allclose(token.penalty, penalty, atol=1e-9)

    told = deliver(parties, deliveries, check)
    assert told


@given(st.data())
@settings(max_examples=200)
def test_every_token_is_the_aggregate_of_what_the_clients_hold_for_it(data: st.DataObject) -> None:
    case = data.draw(cases())
    check_invariant(case, data.draw(mtcd_settings(case, ALL)), deliveries=60)


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
    seen = 0

    def check(tokens: list[Token]) -> None:
        nonlocal seen
        if len(tokens) != server.plan.tokens or any(token.hop or token.t == 0 for token in tokens):
            return
        seen += 1
        rows = server.plan.batches.rows(server.t)
        thetas = [client.parameters() for client in parties.clients]
        aggregate = sum(
            client.model.represent(theta, rows)
            for client, theta in zip(parties.clients, thetas, strict=True)
        )
        penalty = sum(
            client.model.penalty(theta)
            for client, theta in zip(parties.clients, thetas, strict=True)
        )
        np.testing.assert_allclose(server.aggregate, aggregate, atol=1e-10)
        np.testing.assert_allclose(server.penalty, penalty, atol=1e-10)

    deliver(parties, 4 * server.plan.tokens * (method.hops or 1) + 4 * case.network.size, check)
    assert seen


@pytest.mark.parametrize("combine", ["average", "visitors", "optimal"])
def test_whoever_comes_first_the_copies_combine_to_the_same_number(combine: str) -> None:
    """To the last bit: sums are formed in the order of tokens."""
    found = []
    for order in permutations(range(4)):
        client = client_of(MTCD(4, 3, 3, 0.013, combine=combine))
        for index in order:
            token = arriving(index)
            token.put("tally", SyncTally(np.zeros(4)))
            client.visit(token)
        weights = {0: np.array([0.1, 0.7, 0.3, 0.2])}
        found.append(
            client.after_sync(weights) if isinstance(client, OptimalClient) else client.parameters()
        )
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


def token(index: int = 0, t: int = 0, hop: int = 0, length: int = 2, **others: Any) -> Token:
    return Token(index, t, hop, np.zeros(length), 0.0, **others)


def test_gains_are_compared_for_two_hops_a_client_and_fifty_at_most() -> None:
    for clients, last in ((3, 6), (24, 48), (25, 50), (30, 50)):
        carrying = token(hop=last - 1, slots={"gains": np.full(clients, -2.0)})
        assert known_gains(carrying, 0).awaited
        carrying.hop = last
        assert not known_gains(carrying, 0).awaited


def test_a_gain_of_zero_is_known() -> None:
    carrying = token(slots={"gains": np.array([5.0, 0.0, -1.0])})
    kept = copy(carrying)
    assert known_gains(carrying, 0) == Gains(0.0)
    assert known_gains(carrying, 1) == Gains(5.0)
    record(carrying, 1, Gains(None, 0.5))
    assert known_gains(carrying, 0) == Gains(0.5)
    record(carrying, 1, Gains(None))
    assert carrying.slots["gains"].tolist() == [5.0, -1.0, -1.0]
    assert known_gains(carrying, 0) == Gains(None)
    assert kept.slots["gains"].tolist() == [5.0, 0.0, -1.0], "recovery keeps shallow copies"


@pytest.mark.parametrize(
    ("gains", "field"),
    [
        ([0.5, -1.0, 0.0], None),
        ([0.5, -2.0, 0.0], None),
        ([0.5, -3.0, 0.0], "gains"),
        ([0.5, -1.5, 0.0], "gains"),
        ([0.5, -0.5, 0.0], "gains"),
        ([0.5, 0.0], "gains"),
    ],
)
def test_gains_on_the_wire_are_one_for_each_client(gains: list[float], field: str | None) -> None:
    bounds = Bounds("a run", 3, frozenset(), (2,), tokens=1).with_slots("gains", gains=3)
    assert refused(token(slots={"gains": np.array(gains)}), bounds) == field


def refused(carried: Payload, bounds: Bounds) -> str | None:
    """The field for which it is refused."""
    try:
        check_slots(carried, bounds)
    except WireError as error:
        return error.field
    return None


@pytest.mark.parametrize(
    ("instruction", "products", "floats"),
    [
        (Instruction(0), 0, 0),
        (Instruction(4, (0.5, 0.25, 0.25), keep=3), 0, 3),
        (Instruction(4, (0.5, 0.5), keep=3, starts=True), 7, 9),
        (Instruction(4, (0.5, 0.5), keep=0, starts=True, stepsize=0.5), 1, 4),
        (Instruction(4, keep=3, starts=True, survey=True), 13, 13),
        (Instruction(4, keep=3, survey=True), 0, 0),
        (Instruction(4, stepsize=0.5), 0, 1),
    ],
)
def test_numbers_that_a_token_carries_for_an_instruction(
    instruction: Instruction, products: int, floats: int
) -> None:
    """With ``starts``, two products with each snapshot and one more; a survey has six numbers."""
    assert (instruction.products, instruction.floats) == (products, floats - products)
    carrying = token()
    instruct(carrying, instruction)
    bounds = Bounds("a run", 3, frozenset(), (2,), tokens=1).with_slots("tour", snapshots=3)
    assert refused(carrying, bounds) is None
    assert carrying.floats == 2 + floats
    carrying.put("products", np.zeros(products + 1))
    assert refused(carrying, bounds) == "products"


def test_a_new_instruction_takes_the_place_of_the_last_one_and_of_its_products_only() -> None:
    carrying = token(slots={"gains": np.ones(3)})
    instruct(carrying, Instruction(1, keep=1, starts=True))
    products_of(carrying)[:] = 7.0
    instruct(carrying, Instruction(2, keep=1, starts=True))
    assert products_of(carrying).tolist() == [0.0, 0.0, 0.0]
    instruct(carrying, Instruction(3))
    assert set(carrying.slots) == {"gains", "tour"}
    assert instruction_of(token()) == Instruction(0)


def test_a_negative_stepsize_is_refused_also_minus_zero() -> None:
    bounds = Bounds("a run", 3, frozenset(), (2,), tokens=1).with_slots("tour", snapshots=3)
    for stepsize in (-0.0, -0.5):
        carrying = token(slots={"tour": Instruction(4, stepsize=stepsize)})
        assert refused(carrying, bounds) == "tour.stepsize"
    assert refused(token(slots={"tour": Instruction(4, stepsize=0.0)}), bounds) is None


def test_with_optimal_sync_a_token_carries_weights_products_and_visited_clients() -> None:
    bounds = Bounds("a run", 5, frozenset(), (2,), tokens=3).with_slots("past", "tally", past=5)
    tally, past = SyncTally(np.zeros(3), visited={0, 4}), {1: np.ones(3), 3: np.ones(3)}
    carrying = token(0, 4, slots={"past": past, "tally": tally})
    assert refused(carrying, bounds) is None
    assert carrying.floats == 2 + 2 * 3 + 3 + 1 + 2
    assert refused(replace(carrying, t=3), bounds) == "past"
    short = token(0, 4, slots={"past": past, "tally": SyncTally(np.zeros(2))})
    assert refused(short, bounds) == "tally.products"


def test_a_token_has_twice_the_numbers_with_the_change_of_the_combined_aggregate() -> None:
    change, gains = {"sync_change": np.zeros(7)}, {"gains": np.zeros(3)}
    assert token(length=7, slots=gains).floats == 10
    assert token(length=7, slots=gains | change).floats == 17
    # a transport changes the change as it does the aggregate
    assert token(length=7, slots=gains | change).wide_floats == 3
    plain = token()
    assert (plain.sync_penalty, plain.previous, plain.slots) == (0.0, -1, {})


def test_a_slot_is_replaced_and_never_changed_in_a_copy() -> None:
    carrying = token(slots={"gains": np.ones(3)})
    kept = copy(carrying)
    carrying.put("windows", Windows(1, 0.5))
    assert set(carrying.slots) == {"gains", "windows"}
    assert set(kept.slots) == {"gains"}
