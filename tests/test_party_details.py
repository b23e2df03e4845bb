"""Single decisions of parties, by hand: where a training starts, and what a client holds between syncs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.errors import ConfigError
from mtcd.ledger.ledger import Ledger
from mtcd.methods.method import Method
from mtcd.network.topology import make_network
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token
from mtcd.protocol.tracer import TraceLog, Tracer
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 12, [2, 1, 3], seed=3)
NETWORK = make_network("path", DATA.clients)
METHODS: list[Method] = [
    mtcd.STCD(stepsize=0.01),
    mtcd.MTCD(2, 3, stepsize=0.01),
    mtcd.MTCD(2, 3, stepsize=0.01, combine="optimal"),
    mtcd.SVFL(stepsize=0.01),
]


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.describe())
def test_a_training_starts_with_messages_of_its_server_or_of_parties_to_themselves(method: Method, warm: bool) -> None:
    """Or to the server, or the monitor: no link between clients is used before the first visit."""
    problem = MODELS[0].problem(DATA)
    if warm:
        problem = replace(problem, start=tuple(np.ones(block.shape[1]) for block in DATA.blocks))
    opening = method.parties(problem, NETWORK, 0).opening
    assert opening
    for message in opening:
        assert message.sender == SERVER or message.to in (message.sender, SERVER, MONITOR)


def test_copies_whose_sync_is_not_known_do_not_count() -> None:
    """Of optimal sync: a client that has no weights for its copies keeps the parameters from before the visits."""
    parties: Any = METHODS[2].parties(MODELS[0].problem(DATA), NETWORK, 0)
    client = parties.clients[0]
    before = client.theta[0].copy()
    client.copies = {0: (before + 1.0, 0.0), 1: (before + 3.0, 0.0)}
    np.testing.assert_array_equal(client.after_sync({}), before)
    np.testing.assert_array_equal(client.after_sync({client.t + 1: np.ones(2)}), before)
    np.testing.assert_allclose(client.after_sync({client.t: np.array([0.5, 2.0])}), before + 0.5 + 6.0)
    client.copies = {}
    np.testing.assert_array_equal(client.after_sync({client.t: np.ones(2)}), before)


def test_logs_of_several_processes_are_replayed_in_the_order_of_iterations_hops_and_tokens() -> None:
    rng, messages = np.random.default_rng(0), []
    at = [0, 1]
    for t in range(5):
        for hop in range(1, 4):
            for index in range(2):
                to = int(rng.integers(3))
                messages.append(Message(at[index], to, Token(index, t, hop, np.zeros(2), 0.0), 2, 2))
                at[index] = to
    ledger = Ledger()
    direct = Tracer(3, 3, ledger)
    for message in messages:
        ledger.hops += 1
        direct.see(message)
    logs = [TraceLog() for _ in range(3)]
    for message in messages:
        logs[message.sender].see(message)
    total = Ledger()
    replayed = Tracer(3, 3, total)
    replayed.replay([log.take() for log in logs])
    assert replayed.state() == direct.state()
    assert replayed.total == len(messages) == total.hops
    assert [log.take() for log in logs] == [[], [], []]


def test_masks_need_three_clients_and_no_more() -> None:
    method = mtcd.SVFL(stepsize=0.01).masked()
    method.check_network(NETWORK)
    with pytest.raises(ConfigError, match="at least 3 clients"):
        method.check_network(make_network("path", ["a", "b"]))
