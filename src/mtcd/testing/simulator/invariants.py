"""Invariants of the journals of all parties, up or down."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.protocol.party import SERVER
from mtcd.protocol.token import Token
from mtcd.testing.simulator.world import World

PRECISION = 1e-9
"""Rounding that adds up over the visits of a run."""


def the_token(world: World) -> tuple[Token, list[Array]]:
    """The lone token that counts and is still to be processed, and what the clients hold for it."""
    terms: dict[int, int] = {}
    for journal in world.journals.values():
        terms |= journal.last()["terms"]
    parties = {k: world.from_journal(k) for k in world.numbers}
    for party in parties.values():
        # parties that are behind would still count tokens of terms that are over
        party.policy.learn_terms(terms)

    # copies of a token may be in several outboxes; one counts, in the newest term, not yet processed
    tokens: list[Token] = []
    newest = max(terms, default=0)
    for party in parties.values():
        for envelope in party.outbox.values():
            payload = envelope.message.payload
            if not isinstance(payload, Token) or envelope.term != newest:
                continue
            if not parties[envelope.to].is_duplicate(envelope):
                tokens.append(payload)
    assert len(tokens) == 1, f"{len(tokens)} tokens count"
    clients: list[Any] = [parties[k].party for k in world.numbers]
    return tokens[0], [client.parameters() for client in clients]


def check_lone_token(world: World, problem: Any) -> Token:
    """One token counts, and it is the aggregate of what all clients hold. Returns it."""
    token, held = the_token(world)
    _check(problem, held, token.aggregate, token.penalty)
    return token


def at_last_sync(world: World) -> list[Array]:
    """theta_k^t of all clients, where t is the iteration of the server."""
    server = world.journals[SERVER].last()
    t, held = server["party"]["t"], []
    for k in world.numbers:
        if k != SERVER:
            reliable: Any = world.from_journal(k)
            reliable.policy.learn_terms(server["terms"])  # as it does with every envelope
            client = reliable.party
            if client.t < t:
                reliable.policy.roll_back()

            # theta^t, or from the iteration before, what becomes theta^t with the sync
            found = client.combined
            if client.t == t:
                found = client.theta
            held.append(found[0])
    return held


def check_server(world: World, problem: Any) -> None:
    """Z^t is the aggregate of theta^t (MTCD, full batch)."""
    server = world.journals[SERVER].last()["party"]
    _check(problem, at_last_sync(world), server["aggregate"], server["penalty"])


def _check(problem: Any, held: list[Array], aggregate: Array, penalty: float) -> None:
    np.testing.assert_allclose(problem.aggregate(held), aggregate, rtol=0, atol=PRECISION)
    penalties = sum(problem.client(k).penalty(theta) for k, theta in enumerate(held))
    np.testing.assert_allclose(penalty, penalties, rtol=0, atol=PRECISION)
