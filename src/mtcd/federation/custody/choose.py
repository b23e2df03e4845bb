"""Which custody a party needs, by what it trains."""

from __future__ import annotations

from mtcd.federation.custody.absent import BatchServerPostman, RoundsPostman, UploaderPostman
from mtcd.federation.custody.in_step import InStepPostman
from mtcd.federation.custody.journal import Journal
from mtcd.federation.custody.lone_token import LonePostman
from mtcd.federation.custody.postman import Postman
from mtcd.federation.custody.syncs import ServerPostman
from mtcd.federation.custody.visits import ClientPostman
from mtcd.methods.dcpa import DCPAClient
from mtcd.methods.svfl import SVFLClient, SVFLServer
from mtcd.methods.token_parties import TokenClient, TokenServer
from mtcd.network.topology import Network
from mtcd.protocol.party import SERVER, Cast, Party


def make_postman(number: int, cast: Cast, journal: Journal, network: Network) -> Postman:
    """The postman of one party of the cast: a client by its number, or SERVER.

    Where tokens can be made anew, or an upload be replaced by the one before, training goes on without those who stay
    away. The others wait for them: see ``waits_for``.
    """
    party = cast.server if number == SERVER else cast.clients[number]
    assert party is not None
    rest = journal, cast.opening, len(cast.clients)
    if isinstance(party, DCPAClient):
        return _among_neighbours(InStepPostman(number, party, *rest), network)
    if isinstance(party, SVFLServer):
        return RoundsPostman(number, party, *rest)
    if isinstance(party, SVFLClient):
        return UploaderPostman(number, party, *rest)
    if network.changes or not all(map(_can_start_anew, cast.clients)):
        postman = Postman(number, party, *rest)
        return postman if cast.server is not None or network.changes else _among_neighbours(postman, network)
    if isinstance(party, TokenServer):
        role = ServerPostman if party.plan.tokens_return else BatchServerPostman
        return role(number, party, *rest, network)
    if cast.server is not None:
        assert isinstance(party, TokenClient)
        return ClientPostman(number, party, *rest, network)
    assert isinstance(party, TokenClient)
    return LonePostman(number, party, journal, cast.opening, network)


def _among_neighbours(postman: Postman, network: Network) -> Postman:
    postman.near = frozenset(network.neighbours[postman.number])
    return postman


def _can_start_anew(party: Party) -> bool:
    """Whether a visit can be undone: those who remember earlier tours or syncs would have to undo these too."""
    return type(party) is TokenClient
