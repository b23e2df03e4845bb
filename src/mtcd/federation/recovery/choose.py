"""Which custody a party needs, by what it trains."""

from __future__ import annotations

from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.gathering import BatchIterationServer, RoundClientParty, RoundServer
from mtcd.federation.recovery.in_step import InStepClient
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.federation.recovery.lone_token import LoneTokenClient
from mtcd.methods.dcpa import DCPAClient
from mtcd.methods.svfl import SVFLClient, SVFLServer
from mtcd.methods.token_parties import TokenClient, TokenServer
from mtcd.network.topology import Network
from mtcd.protocol.party import SERVER, Cast, Party


def make_reliable_party(number: int, cast: Cast, journal: Journal, network: Network) -> ReliableParty:
    """The reliable of one party of the cast: a client by its number, or SERVER.

    Where tokens can be made anew, or an upload be replaced by the one before, training goes on without those who stay
    away. The others wait for them: see ``waits_for``.
    """
    party = cast.server if number == SERVER else cast.clients[number]
    assert party is not None
    rest = journal, cast.opening, len(cast.clients)
    if isinstance(party, DCPAClient):
        return _among_neighbours(InStepClient(number, party, *rest), network)
    if isinstance(party, SVFLServer):
        return RoundServer(number, party, *rest)
    if isinstance(party, SVFLClient):
        return RoundClientParty(number, party, *rest)
    if network.changes or not all(map(_can_start_anew, cast.clients)):
        reliable = ReliableParty(number, party, *rest)
        return reliable if cast.server is not None or network.changes else _among_neighbours(reliable, network)
    if isinstance(party, TokenServer):
        role = IterationServer if party.plan.tokens_return else BatchIterationServer
        return role(number, party, *rest, network)
    if cast.server is not None:
        assert isinstance(party, TokenClient)
        return IterationClient(number, party, *rest, network)
    assert isinstance(party, TokenClient)
    return LoneTokenClient(number, party, journal, cast.opening, network)


def _among_neighbours(reliable: ReliableParty, network: Network) -> ReliableParty:
    reliable.near = frozenset(network.neighbours[reliable.number])
    return reliable


def _can_start_anew(party: Party) -> bool:
    """Whether a visit can be undone: those who remember earlier tours or syncs would have to undo these too."""
    return type(party) is TokenClient
