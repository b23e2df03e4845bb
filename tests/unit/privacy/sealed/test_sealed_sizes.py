"""How many numbers the messages of sealed tours carry: as counted, as planned for, and as they
are."""

from __future__ import annotations

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import DataError
from mtcd.engines.local import LocalEngine
from mtcd.privacy.sealed.payloads import (
    NextTour,
    SealedAnswer,
    SealedEnd,
    SealedKeys,
    SealedRequest,
    SealedToken,
    as_block,
)
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import SERVER, Message, Payload

BYTES = as_block(bytes(40))  # as many as five numbers


@pytest.mark.parametrize(
    ("payload", "numbers"),
    [
        (SealedKeys(1, 0, BYTES), 5),
        (SealedToken(1, 0, np.ones(4), 1.0, 2.0, BYTES), 4 + 2 + 5),
        (SealedToken(1, 0, np.ones(0), 1.0, 2.0, as_block(bytes(41))), 2 + 6),
        (SealedRequest(0, 1, 0, BYTES), 5),
        (SealedAnswer(0, 1, 0, np.ones(3)), 3),
        (SealedEnd(1, BYTES, True, 2.0, 3.0), 5 + 2),
        (NextTour(1), 0),
    ],
    ids=lambda given: type(given).__name__ if isinstance(given, Payload) else str(given),
)
def test_a_message_counts_its_numbers_and_its_bytes_by_eight(
    payload: Payload, numbers: int
) -> None:
    assert payload.floats == numbers


def test_messages_are_as_large_as_planned_for() -> None:
    pytest.importorskip("tenseal")
    data = mtcd.synthetic("logistic", samples=150, features=6, clients=2, seed=3)
    method, network = SealedTours(depth=2), mtcd.make_network("path", data.clients)
    parties = method.parties(mtcd.Glm("logistic", l2=1.0).problem(data), network, 0)
    seen: dict[str, list[int]] = {}
    for party in (*parties.clients, parties.server):
        receive = party.receive

        def noted(message: Message, receive=receive):
            route = "down" if message.sender == SERVER else "up" if message.to == SERVER else "hop"
            seen.setdefault(f"{type(message.payload).__name__} {route}", []).append(
                message.payload.floats
            )
            return receive(message)

        party.receive = noted  # type: ignore[method-assign]
    for told in LocalEngine(parties, Ledger()).run():
        if told.hop == 1:
            break
    planned = method.messages(network, 0, 150, 1).sizes
    assert np.mean(seen["SealedRequest up"]) == pytest.approx(planned.uplink, rel=0.02)
    assert np.mean(seen["SealedToken down"]) == pytest.approx(planned.downlink, rel=0.02)
    assert np.mean(seen["SealedToken hop"]) == pytest.approx(planned.hop, rel=0.02)


@pytest.mark.parametrize("samples", [150, 5000, 20_000, 60_000])
def test_a_ciphertext_of_the_largest_size_is_accepted_and_not_many_times_that(samples: int) -> None:
    network = mtcd.make_network("path", ["a", "b", "c"])
    method = SealedTours(depth=2)
    bound = method.messages(network, 0, samples, 1).bounds("run")
    sent = 8 * method.messages(network, 0, samples, 1).sizes.hop
    assert sent <= bound.limits["sealed_bytes"] <= 5 * sent


def test_a_training_is_refused_whose_columns_single_out_rows() -> None:
    X = np.random.default_rng(0).standard_normal((60, 4))
    X[:, 2] = np.arange(60) == 7
    data, model = (
        mtcd.split(X, np.arange(60) % 2, {"a": [0, 1], "b": [2, 3]}),
        mtcd.Glm("logistic", l2=1.0),
    )
    with pytest.raises(
        DataError, match="Column 1 of client 1 differs from its usual value in 1 rows only"
    ):
        mtcd.train(data, model, "path", SealedTours(scheme="clear"), mtcd.Stop(iterations=1))


@pytest.mark.parametrize(("server", "ratio"), [(True, 1.0), (True, 10.0), (False, 10.0)])
def test_the_cost_of_a_tour_is_that_of_its_messages(server: bool, ratio: float) -> None:
    """On a path of three, with the labels at one end: four hops; without a server, ways of one and
    of two hops."""
    network, costs = mtcd.make_network("path", ["a", "b", "c"]), Costs(ratio)
    found = SealedTours(server=server).prices(network, 1).iteration(costs)
    hop, with_server = costs.between_clients(1.0), costs.with_server(1.0)
    # three requests and one for the sum over labels, as many answers, the token down and up
    if server:
        assert found == pytest.approx(4 * hop + (4 + 4 + 1 + 1) * with_server)
    else:
        assert found == pytest.approx(4 * hop + (1 + 2) * 2 * hop)
