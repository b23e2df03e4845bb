"""Envelopes and acks as bytes: the message as any engine sends it, then the iteration, the terms,
the clients to avoid.

Every field is checked on arrival, as in ``frames.py``. ``Bounds.sender`` is the authenticated peer
of a link: envelopes and acks under another name are refused.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from struct import Struct
from typing import Any

import numpy as np

from mtcd.core.errors import WireError
from mtcd.federation.delivery.frames import Header, as_view, decode_first, encode_parts, largest
from mtcd.protocol.codec.envelopes import (
    Ack,
    Cancelled,
    End,
    Envelope,
    HolderLost,
    Prepare,
    Promise,
    Received,
    Release,
    ResendTokens,
    Terms,
    Undeliverable,
)
from mtcd.protocol.codec.limits import MOST, Bounds
from mtcd.protocol.codec.reading import CUT_SHORT, I8, OUT_OF_RANGE, Reader
from mtcd.protocol.party import MONITOR, SERVER, Message

MOST_TERMS = 4096
TAIL = Struct("<qqq")
"""The iteration, and how many terms and how many clients to avoid follow."""


WITH_SERVER: frozenset[type] = frozenset(
    {Received, Cancelled, End, Undeliverable, HolderLost, ResendTokens}
)
WITHOUT_SERVER: frozenset[type] = frozenset({Received, Cancelled, End, Prepare, Promise, Release})
CONTROL_PAYLOADS = WITH_SERVER | WITHOUT_SERVER


@lru_cache(maxsize=4096)
def with_control(bounds: Bounds) -> Bounds:
    """The same bounds with the control payloads."""
    control = WITHOUT_SERVER
    if bounds.server:
        control = WITH_SERVER
    return replace(bounds, kinds=bounds.kinds | control)


def largest_envelope(bounds: Bounds) -> int:
    """The largest size in bytes of an envelope or ack of the run."""
    # The envelope adds three words, its terms as pairs, and the clients to avoid.
    return largest(with_control(bounds)) + 8 * (3 + 2 * MOST_TERMS + bounds.clients)


def encode_envelope(envelope: Envelope, run: str) -> bytes:
    """Encode an envelope. Numbers that are not finite raise a WireError: the training has
    diverged."""
    header = Header(run, envelope.sender, envelope.to, envelope.term, envelope.sequence)
    return _encode(envelope.message, header, envelope.iteration, envelope.terms, envelope.avoid)


def decode_envelope(data: bytes | bytearray | memoryview, bounds: Bounds) -> Envelope:
    """Decode an envelope; raises a ``WireError`` unless it is within bounds. A ``bytearray`` is
    taken over."""
    message, header, iteration, terms, avoid = _decode(data, bounds)
    payload = message.payload
    if isinstance(payload, Received):
        raise WireError("kind", "is not that of an envelope")
    if message.to == MONITOR:
        raise WireError("receiver", "is not a party that receives envelopes")
    # With a server only that one ends a training.
    if isinstance(payload, End) and bounds.server and message.sender != SERVER:
        raise WireError("sender", "is not a party that may end the training")
    if getattr(payload, "t", iteration) != iteration:
        raise WireError("iteration", "is not that of the payload")
    delivery = header.sequence, iteration, header.term, terms
    return Envelope(message.sender, message.to, *delivery, message, avoid)


def encode_ack(ack: Ack, run: str) -> bytes:
    """Encode an ack, which goes from the receiver of the envelope to its sender."""
    # From the receiver of the envelope to its sender: the other way round.
    header = Header(run, ack.to, ack.sender, 0, ack.sequence)
    return _encode(Message(ack.to, ack.sender, Received()), header, 0, ack.terms)


def decode_ack(data: bytes | bytearray | memoryview, bounds: Bounds) -> Ack:
    """Decode an ack, from the receiver of the envelope; raises a ``WireError`` unless it is within
    bounds."""
    message, header, iteration, terms, avoid = _decode(data, bounds)
    if not isinstance(message.payload, Received):
        raise WireError("kind", "is no ack")
    # Fields that an ack does not use must be empty: there is one way to write it.
    if any((iteration, header.term, message.floats, message.hop_floats, avoid)):
        raise WireError("delivery", OUT_OF_RANGE)
    return Ack(message.to, message.sender, header.sequence, terms)


def _encode(
    message: Message,
    header: Header,
    iteration: int,
    terms: Terms,
    avoid: frozenset[int] = frozenset(),
) -> bytes:
    if len(terms) > MOST_TERMS:
        raise WireError("terms", "are more than can be sent")
    chunks = encode_parts(message, header)
    chunks.append(TAIL.pack(iteration, len(terms), len(avoid)))
    if terms or avoid:  # mostly there are none
        # Sorted: the reader takes ascending numbers only.
        keys = sorted(terms)
        words = [*keys, *map(terms.__getitem__, keys), *sorted(avoid)]
        chunks.append(np.array(words, I8))
    return b"".join(chunks)


def _decode(data: Any, bounds: Bounds) -> tuple[Message, Header, int, Terms, frozenset[int]]:
    view = as_view(data)
    message, header, length = decode_first(view, with_control(bounds))
    end = length + TAIL.size
    if end > len(view):
        raise WireError("iteration", CUT_SHORT)
    iteration, count, absent = TAIL.unpack_from(view, length)
    if not 0 <= iteration < bounds.iterations:
        raise WireError("iteration", OUT_OF_RANGE)
    if not 0 <= count <= MOST_TERMS:
        raise WireError("terms", OUT_OF_RANGE)
    if not 0 <= absent <= bounds.clients:
        raise WireError("avoid", OUT_OF_RANGE)

    terms: Terms = {}
    avoid: frozenset[int] = frozenset()
    if count or absent:  # mostly there are none
        rest = Reader(view, end, bounds, message.sender)
        keys = rest.wholes("terms", count, MOST)
        terms = {key: rest.whole("terms", 0, MOST) for key in keys}
        avoid = frozenset(rest.wholes("avoid", absent, bounds.clients))
        end = rest.at
    # Nothing may follow: it would travel unchecked.
    if end != len(view):
        raise WireError("frame", "goes on after its end")
    return message, header, iteration, terms, avoid
