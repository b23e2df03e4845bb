"""What every engine must keep: the order of deliveries does not matter, and floats are what is carried."""

import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.engines.local import LocalEngine
from mtcd.ledger.ledger import Ledger
from mtcd.methods.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.svfl import SVFL
from mtcd.methods.tree_cg import TreeCG
from mtcd.network.topology import make_network
from mtcd.protocol.accounting import record
from mtcd.protocol.party import MONITOR, SERVER, Cast, Message
from problems import ALL, MODELS, Case, cases, make_data, mtcd_settings

Pick = Callable[[list[Message]], int]


def outcome(case: Case, method: Method, pick: Pick, moments: int) -> tuple[list[np.ndarray], Ledger]:
    """Parameters and ledger at the given settled moment, when ``pick`` chooses what is delivered next."""
    cast, ledger = method.cast(case.model.problem(case.data), case.network, case.seed), Ledger()
    waiting: list[Message] = []
    outgoing, seen = cast.opening, 0
    while True:
        for message in outgoing:
            if message.to == MONITOR:
                seen += 1
                if seen == moments:
                    return cast.parameters(), ledger
            else:
                record(message, ledger)
                waiting.append(message)
        message = waiting.pop(pick(waiting))
        party = cast.server if message.to == SERVER else cast.clients[message.to]
        outgoing = party.receive(message)


@given(st.data())
@settings(max_examples=60)
def test_the_order_of_deliveries_does_not_matter(data: st.DataObject) -> None:
    case = data.draw(cases())
    method = data.draw(st.one_of(mtcd_settings(case, ALL), st.builds(SVFL, st.integers(1, 3), st.just(1e-3))))
    shuffled = random.Random(case.seed)
    orders: list[Pick] = [lambda w: 0, lambda w: len(w) - 1, lambda w: shuffled.randrange(len(w))]
    first, *others = [outcome(case, method, pick, 5) for pick in orders]
    rule = method.combine_rule if isinstance(method, MTCD) else ""
    problem = case.model.problem(case.data)
    tolerance = 1e-12 if rule == "visitors" else 0.0  # it adds up changes in the order of the visits
    for thetas, ledger in others:
        assert ledger == first[1]
        if rule == "optimal":  # so does this, and where f is flat, rounding decides on the weights
            assert problem.evaluate(thetas) == pytest.approx(problem.evaluate(first[0]), rel=1e-4)
            continue
        for ours, theirs in zip(thetas, first[0], strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance / 10)


def carried(payload: Any) -> int:
    """How many array entries there are in a payload."""
    if isinstance(payload, np.ndarray):
        return payload.size
    if is_dataclass(payload):
        return sum(carried(getattr(payload, field.name)) for field in fields(payload))
    return sum(carried(part) for part in payload) if isinstance(payload, tuple) else 0


@pytest.mark.parametrize("model", [MODELS[0], MODELS[7]], ids=lambda m: m.kind)
@pytest.mark.parametrize(
    "method",
    [
        STCD(stepsize=1e-3),
        SVFL(stepsize=1e-3),
        SVFL(stepsize=1e-3, batch=4),
        DCPA(stepsize=1e-3),
        TreeCG(),
        *(
            MTCD(tokens=2, hops=3, stepsize=1e-3, combine=combine, batch=batch)
            for combine in ("average", "cluster", "visitors")
            for batch in (None, 4)
        ),
    ],
    ids=lambda m: m.describe(),
)
def test_the_floats_of_a_message_are_those_that_it_carries(model, method: Method) -> None:
    if isinstance(method, DCPA) and model.kind == "multinomial":
        pytest.skip("dcpa has no multinomial models")
    data = make_data(model, 12, [2, 1, 3, 2], seed=3)
    cast = method.cast(model.problem(data), make_network("cycle", data.clients), 0)
    outgoing, waiting, checked = cast.opening, [], 0
    for _ in range(40):
        for message in outgoing:
            if message.to != MONITOR:
                waiting.append(message)
                if message.to != message.sender:
                    assert message.floats == carried(message.payload)
                    checked += bool(message.floats)
        message = waiting.pop(0)
        outgoing = (cast.server if message.to == SERVER else cast.clients[message.to]).receive(message)
    assert checked > 5


def test_an_engine_with_nothing_to_deliver_comes_to_an_end() -> None:
    assert list(LocalEngine(Cast([], None, []), Ledger()).run()) == []
