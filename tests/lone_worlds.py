"""Simulated federations with a lone token: who holds what, and links that tell the parties who is gone."""

from __future__ import annotations

import numpy as np
import pytest

from mtcd.federation.delivery.journal import Journal, MemoryJournal
from mtcd.federation.delivery.records import pack
from mtcd.federation.recovery.lone_token import LoneTokenClient
from mtcd.methods.mtcd import STCD
from mtcd.model.linear import Glm
from mtcd.network.topology import Network, make_network
from mtcd.protocol.party import Cast
from mtcd.protocol.token import Token
from problems import make_data
from simulated import Faults, Killed, World

MODEL = Glm("ridge", alpha=0.7)
DATA = make_data(MODEL, 12, [2, 1, 3, 2, 2], seed=3)
PROBLEM = MODEL.problem(DATA)


def lone_world(network: Network | str, seed: int, faults: Faults, walk: str = "lazy") -> World:
    graph = make_network(network, DATA.clients) if isinstance(network, str) else network

    def make(number: int, cast: Cast, journal: Journal) -> LoneTokenClient:
        return LoneTokenClient(number, cast.clients[number], journal, cast.opening, graph)

    method = STCD(stepsize=0.02, local_updates=5, walk=walk)
    return World(lambda: method.cast(PROBLEM, graph, 7), seed, make=make, faults=faults)


def token_and_parameters(world: World) -> tuple[Token, list[np.ndarray]]:
    """The one token that counts and is still to be visited with, and what clients hold, from the journals alone."""
    terms: dict[int, int] = {}
    for journal in world.journals.values():
        terms |= journal.last()["terms"]
    parties, cast = {}, world.cast()
    for k in world.numbers:
        kept = MemoryJournal()
        kept.content = world.journals[k].content
        parties[k] = world.make(k, cast, kept)
        parties[k].learn_terms(terms)
    envelopes = [envelope for reliable in parties.values() for envelope in reliable.outbox.values()]
    tokens = [
        envelope.message.payload
        for envelope in envelopes
        if isinstance(envelope.message.payload, Token)
        and envelope.term == max(terms, default=0)
        and not parties[envelope.to].is_duplicate(envelope)
    ]
    assert len(tokens) == 1
    return tokens[0], [parties[k].party.parameters() for k in world.numbers]


def assert_kept(world: World) -> Token:
    """One token counts, and it is the aggregate of what all hold, living and dead."""
    token, held = token_and_parameters(world)
    np.testing.assert_allclose(token.aggregate, PROBLEM.aggregate(held), rtol=0, atol=1e-9)
    penalty = sum(PROBLEM.client(k).penalty(theta) for k, theta in enumerate(held))
    assert token.penalty == pytest.approx(penalty, abs=1e-9)
    return token


def tell(world: World, who: int, k: int, lost: bool) -> None:
    """A link of ``who`` believes that client k is gone, or there."""
    reliable = world.parties.get(who)
    if reliable is not None and who not in world.hung:
        before = set(reliable.outbox)
        try:
            (reliable.peer_lost if lost else reliable.peer_found)(k)
            world.bag += [pack(reliable.outbox[place]) for place in reliable.outbox if place not in before]
        except Killed:
            world.crash(who, world.time + 5)


def tell_the_truth(world: World, network: Network) -> None:
    """Links notice who is gone, who hangs, and which link is cut; some sooner, some later."""
    for who in list(world.parties):
        for k in network.neighbours[who]:
            gone = k in world.away or k in world.hung or frozenset({who, k}) in world.cuts
            reliable = world.parties.get(who)
            if reliable is not None and gone != (k in reliable.down) and world.random.random() < 0.2:
                tell(world, who, k, gone)
