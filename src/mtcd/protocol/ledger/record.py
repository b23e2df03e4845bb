"""Records messages on the ledger, in the same way for every engine.

Apart from the ledger, which the operator's commands add up without loading numerics.
"""

from __future__ import annotations

from mtcd.protocol.ledger.ledger import CLIENT_CLIENT, DOWNLINK, UPLINK, WIDE_BYTES, Ledger
from mtcd.protocol.party import SERVER, Message


def record(message: Message, ledger: Ledger) -> None:
    """Record a message that the engine sends. Messages without floats do not count."""
    sender, to, floats, hop_floats = message.sender, message.to, message.floats, message.hop_floats
    # A token: every visit ends with a hop, wherever the message goes.
    if hop_floats:
        ledger.hops += 1
        ledger.unchanged += message.unchanged
        if to in (SERVER, sender):  # charged as a hop, though no neighbour gets anything
            ledger.unsent_hops += 1
            ledger.unsent_floats += hop_floats

    # What a party sends to itself leaves no machine.
    if floats and to != sender:
        link = CLIENT_CLIENT
        if to == SERVER:
            link = UPLINK
        elif sender == SERVER:
            link = DOWNLINK
        ledger.message_counts[link] += 1
        ledger.float_counts[link] += floats
        # a transport changes aggregates, and leaves the numbers beside them in double precision
        if ledger.float_bytes != WIDE_BYTES:
            ledger.wide_counts[link] += message.payload.wide_floats
