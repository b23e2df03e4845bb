"""How many numbers the messages of sealed tours carry: as counted, as planned for, and as they
are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import DataError, WireError
from mtcd.engines.local import LocalEngine
from mtcd.network.topology import Network
from mtcd.privacy.sealed.payloads import (
    NextTour,
    SealedAnswer,
    SealedEnd,
    SealedKeys,
    SealedRequest,
    SealedToken,
    as_block,
)
from mtcd.privacy.sealed.plan import beside
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.ledger.costs import Costs, Sizes
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


CLEAR, ALONE = (
    SealedTours(scheme="clear", depth=2),
    SealedTours(scheme="clear", depth=2, server=False),
)


def network_of(kind: str = "path", clients: int = 3) -> Network:
    return mtcd.make_network(kind, [f"p{k}" for k in range(clients)])


def test_the_sums_beside_g_are_those_of_theta_the_latest_move_and_the_change() -> None:
    """With M moves: theta with itself and them, the latest move with all, the change with theta,
    itself and all."""
    for depth in (1, 2, 20):
        assert beside(depth) == (1 + depth) + depth + (2 + depth)
        assert SealedTours(depth=depth).token_numbers(100) == 100 + beside(depth)


def test_the_cost_of_a_tour_by_numbers() -> None:
    """A path of four, the labels at its second client: six hops; the ways to it have 1, 1 and 2
    links."""
    costs, sizes, network = (
        Costs(ratio=10.0, per="float"),
        Sizes(uplink=7.0, downlink=100.0, hop=1000.0),
        network_of(),
    )
    assert CLEAR.prices(network, 1).iteration(costs, sizes) == pytest.approx(
        4 * 100 + 4 * 7 + 4 * 1 + 7 + 100
    )
    longer = network_of(clients=4)
    assert replace(ALONE, holder=1).prices(longer, 1).iteration(costs, sizes) == pytest.approx(
        600 + 4 * (0.7 + 0.1)
    )


@pytest.mark.parametrize(
    ("samples", "request_", "token"),
    [
        # a request is one polynomial with two primes of seven bytes each, without a byte;
        # a token has two polynomials, three primes of seven bytes each
        (150, 8192 * (14 - 1), 2 * 8192 * 3 * 7),
        (20_000, 8192 * (14 - 1), 3 * 2 * 8192 * 3 * 7),  # three ciphertexts
    ],
)
def test_the_bytes_of_messages(samples: int, request_: int, token: int) -> None:
    assert SealedTours().messages(network_of(), 0, samples, 1).sizes == Sizes(
        request_ / 8, token / 16, token / 8
    )


def test_the_bounds_of_messages() -> None:
    """A mebibyte is two polynomials of degree 16384 with four primes of eight bytes each."""
    network, method = network_of(), SealedTours(depth=2)
    for numbers, ciphertexts in ((150, 1), (8191, 1), (8192, 2), (16384, 3)):
        bound = method.messages(network, 0, numbers - beside(2), 1).bounds("run")
        assert bound.limits["sealed_bytes"] == ciphertexts * 2**20 + 4096
    limits = bound.limits
    assert (bound.tokens, limits["snapshots"], limits["past"], bound.hops) == (1, 3, 3, 4)
    assert limits["products"] == 16384  # as many columns as the largest ring has room for
    # 5.5 MiB are the keys of the largest ring
    assert 5.5 * 2**20 < limits["sealed_keys"] < 11 * 2**20
    assert SealedEnd in bound.kinds
    alone = replace(method, server=False).messages(network, 0, 150, 1).bounds("run")
    assert bound.kinds - alone.kinds == {SealedEnd}
    assert (bound.server, alone.server) == (True, False)


@pytest.mark.parametrize(
    ("scale", "stretch", "valid"), [(0.5, 0.25, True), (0.0, 1.0, False), (1.0, 0.0, False)]
)
def test_scales_of_tokens_are_positive(scale: float, stretch: float, valid: bool) -> None:
    token = SealedToken(1, 0, np.zeros(0), stretch, scale, np.zeros(8, np.uint8))
    bounds: Any = Bounds("run", 3, frozenset(), (40,))
    if valid:
        token.check(bounds)
        assert token.index == 0
    else:
        with pytest.raises(WireError, match="is not positive"):
            token.check(bounds)
