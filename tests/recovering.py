"""Reliable parties with a given recovery policy, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.federation.recovery.wait import Wait
from mtcd.protocol.party import SERVER, Cast, Message


def waiting_party(number: int, cast: Cast, journal: Journal) -> ReliableParty:
    party: Any = cast.server if number == SERVER else cast.clients[number]
    return ReliableParty(number, party, Wait(), journal, cast.opening, len(cast.clients)).resume()


def iteration_party(
    number: int, party: Any, journal: Journal, opening: Iterable[Message] = (), clients: int = 5, network: Any = None
) -> ReliableParty:
    """Of the server or a client of mtcd."""
    policy = IterationServer(party) if number == SERVER else IterationClient(party, network)
    return ReliableParty(number, party, policy, journal, opening, clients).resume()
