"""The recovery policy of a party, by what the party declares (``Party.recovery``)."""

from __future__ import annotations

from functools import partial
from typing import Any

from mtcd.core import features
from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.federation.recovery.lone_token import LoneToken
from mtcd.federation.recovery.uploads import MakeUploads
from mtcd.federation.recovery.wait import InStep, Wait
from mtcd.network.topology import Network
from mtcd.protocol.party import SERVER, Parties, Party, Recovery

POLICIES = "mtcd.recovery"
"""The group in which features register their policies, by the name of the ``Recovery`` that their
parties declare: functions of the number of a party, the party, and what takes the place of
``Uploads``."""


def make_reliable_party(
    number: int, parties: Parties, journal: Journal, network: Network
) -> ReliableParty:
    """One of the parties, a client by its number or SERVER, resumed from its journal."""
    party = parties.server if number == SERVER else parties.clients[number]
    assert party is not None
    has_server = parties.server is not None
    policy = choose_policy(number, party, has_server, network)
    neighbours = None
    if not has_server and not network.changes:
        neighbours = frozenset(network.neighbours[number])
    return ReliableParty(
        number, party, policy, journal, parties.opening, len(parties.clients), neighbours
    ).resume()


def choose_policy(number: int, party: Any, has_server: bool, network: Network) -> RecoveryPolicy:
    """The policy of a party. Its class is checked by its constructor's types, not here: the party
    declares its kind.

    Visits can be undone only where the members stay the same: on a network that changes, the
    parties wait.
    """
    kind: Recovery = party.recovery
    if kind is Recovery.WAIT or (network.changes and kind is Recovery.RESTART):
        return Wait()

    if kind is Recovery.IN_STEP:
        return InStep(party.wrapped)

    uploads = _own_uploads(party)
    homes = features.parts(POLICIES)
    if kind.name in homes:
        made: Any = features.load(homes[kind.name])
        return made(number, party.wrapped, uploads)  # type: ignore[no-any-return]

    if number == SERVER:
        return IterationServer(party.wrapped, uploads)

    client = party.wrapped
    if has_server:
        return IterationClient(client, network)
    return LoneToken(client, network)


def _own_uploads(party: Party) -> MakeUploads | None:
    """What takes the place of ``Uploads`` at a server that alone can read them; None: nothing."""
    if party.uploads_recovery is None:
        return None

    make: Any = features.load(party.uploads_recovery)
    return partial(make, party=party)
