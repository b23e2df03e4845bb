"""Counts of one process, for its metrics: plain numbers that the loop adds to, and that another
thread may read.

Links, RPC and journal count always, as adding to a number takes less than a microsecond. The keys
of all counts are known from the start, so that a reader in another thread never meets a dictionary
that grows.
"""

from __future__ import annotations

from collections.abc import Iterable

from mtcd.core.errors import MtcdError, WireError
from mtcd.federation.connections.refusals import REASONS as CONNECTION_REASONS
from mtcd.federation.delivery.durations import Durations

SEAL, CONTENT, DATA = "seal", "content", "data"
_REASONS = {  # by the field of a WireError
    "sender": "sender",
    "receiver": "sender",
    "kind": "kind",
    "run": "run",
    "agreement": "run",
    "version": "version",
}
_SEALING = ("sealed", "locked", "signature", "certificate")
REASONS = (*dict.fromkeys(_REASONS.values()), SEAL, CONTENT, DATA)
"""Why a message is refused: a fixed set, whatever others send."""


def reason_of(error: MtcdError) -> str:
    """The reason of a refusal, one of ``REASONS``.

    >>> reason_of(WireError("the signature of 'b'", "does not fit")), reason_of(WireError("hop", "is negative"))
    ('seal', 'content')
    """
    if not isinstance(error, WireError):
        return DATA
    # First the seal: its errors name the field too, such as the signature of a kind.
    if any(word in error.field for word in _SEALING):
        return SEAL
    return _REASONS.get(error.field, CONTENT)


class Counters:
    """The counts of one party, or of the server."""

    def __init__(self, peers: Iterable[str]) -> None:
        names = tuple(peers)
        self.sent_bytes = dict.fromkeys(names, 0)
        """By peer: the bytes of requests and answers, without what TLS and the frames add."""
        self.received_bytes = dict.fromkeys(names, 0)
        self.refused = dict.fromkeys(REASONS, 0)
        self.refused_connections = dict.fromkeys(CONNECTION_REASONS, 0)
        self.commits = Durations()
