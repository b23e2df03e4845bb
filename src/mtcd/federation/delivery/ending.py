"""The moment at which a training ends, and what a party then holds."""

from __future__ import annotations

from typing import Any

from mtcd.federation.delivery.envelopes import End
from mtcd.methods.hosting import TokenHost
from mtcd.methods.optimal_parties import OptimalClient
from mtcd.methods.svfl import SVFLServer
from mtcd.methods.token_parties import TokenServer
from mtcd.protocol.party import Part, Party


def end_at(report: Any, status: str, party: Party) -> End:
    """The end at a moment that the monitor is told of: progress, a lone token, or one's part of it."""
    if isinstance(report, Part):
        return End(status, 0, report.iteration)
    return End(status, report.t, report.hop, getattr(party, "past", {}))


def end_now(party: Party, status: str) -> End | None:
    """The end at the last sync, whatever is under way; only a server knows of it."""
    if isinstance(party, TokenServer):
        return End(status, party.t, party.t * (party.plan.hops or 1), getattr(party, "past", {}))
    return End(status, party.round, party.round) if isinstance(party, SVFLServer) else None


def adopt_end(party: Party, end: End) -> None:
    """Hold the model of that moment."""
    if isinstance(party, OptimalClient):
        party.adopt(end.t, end.past)
    elif isinstance(party, TokenHost) and party.t != end.t:
        party.settle(end.t)
