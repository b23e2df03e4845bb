"""Reliable parties with a given recovery policy, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.federation.recovery.wait import Wait
from mtcd.protocol.party import SERVER, Message, Parties


def waiting_party(number: int, parties: Parties, journal: Journal) -> ReliableParty:
    party: Any = parties.server if number == SERVER else parties.clients[number]
    return ReliableParty(
        number, party, Wait(), journal, parties.opening, len(parties.clients)
    ).resume()


def iteration_party(
    number: int,
    party: Any,
    journal: Journal,
    opening: Iterable[Message] = (),
    clients: int = 5,
    network: Any = None,
) -> ReliableParty:
    """Of the server or a client of mtcd."""
    policy = IterationServer(party) if number == SERVER else IterationClient(party, network)
    return ReliableParty(number, party, policy, journal, opening, clients).resume()
