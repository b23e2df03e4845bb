"""Messages, envelopes and acks as bytes.

A message is a head that says what it is and whose it is, then its payload. An envelope is a message
as any engine sends it, then a tail: the iteration, the terms, the clients to avoid. An ack is an
envelope without content.

Every field is checked on arrival. ``Bounds.sender`` is the authenticated peer of a link: messages
under another name are refused.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error
from typing import Any, NamedTuple

import numpy as np

from mtcd.core.errors import WireError
from mtcd.core.version import PROTOCOL
from mtcd.protocol.codec.envelopes import Ack, End, Envelope, Received, Terms, with_control
from mtcd.protocol.codec.extensions import check_slots
from mtcd.protocol.codec.limits import LONGEST_RUN_ID, MOST, Bounds
from mtcd.protocol.codec.payloads import SCHEMAS, Schema
from mtcd.protocol.codec.reading import CUT_SHORT, I8, OUT_OF_RANGE, Chunks, Reader
from mtcd.protocol.party import MONITOR, SERVER, Message

MAGIC = b"MTCDWIRE"
FORMAT = 1
# magic, format, protocol, kind, length of the run's id; length of all; sender, receiver; floats,
# hop_floats; delivery
HEAD = Struct("<8sHHHHQqqqqqq")
TAIL = Struct("<qqq")
"""The iteration, and how many terms and how many clients to avoid follow."""
MOST_TERMS = 4096


class Header(NamedTuple):
    """The sender, the receiver and the number of a message.

    A token that is regenerated after a loss has a higher ``term``. Every message from one party to
    another has the next ``sequence``, by which its receiver recognises duplicates.
    """

    run: str
    sender: int
    receiver: int
    term: int = 0
    sequence: int = 0


# Messages


def encode(message: Message, header: Header) -> bytes:
    """Encode a message. Numbers that are not finite raise a WireError: the training has
    diverged."""
    return b"".join(encode_parts(message, header))


def encode_parts(message: Message, header: Header) -> Chunks:
    """Encode a message as chunks, without copying its arrays."""
    schema = SCHEMAS.get(type(message.payload))
    if schema is None:
        raise WireError("kind", "is none that can be sent")
    if (message.sender, message.to) != (header.sender, header.receiver):
        raise WireError("header", "is that of another message")
    run = header.run.encode()
    if not 1 <= len(run) <= LONGEST_RUN_ID:
        raise WireError("run", "is no id of 1 to 64 characters")
    # The head comes last, as it has the length, but stands first.
    chunks: Chunks = [b"", run, bytes(-len(run) % 8)]
    try:
        schema.record.write(message.payload, chunks)
        length = HEAD.size + sum(map(len, chunks))
        delivery = header.term, header.sequence
        who = message.sender, message.to, message.floats, message.hop_floats
        chunks[0] = HEAD.pack(
            MAGIC, FORMAT, PROTOCOL, schema.number, len(run), length, *who, *delivery
        )
    except (error, TypeError, ValueError, AttributeError):
        # The sender's own mistake: no receiver is to blame, and none is asked.
        raise WireError(schema.kind.__name__, "has a field of the wrong type") from None
    return chunks


def decode(data: bytes | bytearray | memoryview, bounds: Bounds) -> tuple[Message, Header]:
    """Decode a message; raises a ``WireError`` unless all of it is within ``bounds``.

    Arrays are copied out of ``bytes``, as parties write to them. A ``bytearray`` is taken over
    without a copy, so it must not be used again.
    """
    view = as_view(data)
    if len(view) > largest(bounds):
        raise WireError("frame", "is larger than any message of this run")
    message, header, length = decode_first(view, bounds)
    if length != len(view):
        raise WireError("length", "is not that of the frame")
    return message, header


def decode_first(view: memoryview, bounds: Bounds) -> tuple[Message, Header, int]:
    """Decode the message at the start of a buffer; returns also its length."""
    if len(view) < HEAD.size:
        raise WireError("frame", CUT_SHORT)
    magic, version, protocol, kind, run_length, length, sender, to, *rest = HEAD.unpack_from(view)
    floats, hop_floats, term, sequence = rest
    if magic != MAGIC:
        raise WireError("magic", "is not that of mtcd")
    # Before the rest, whose meaning depends on it.
    if version != FORMAT or protocol != PROTOCOL:
        versions = f"format {version}, protocol {protocol}; here {FORMAT} and {PROTOCOL}"
        raise WireError(
            "version",
            f"is another one ({versions}): install the same version of mtcd at all parties",
        )
    if length > len(view):
        raise WireError("length", "is not that of the frame")

    start = HEAD.size + len(bounds.run_words)
    if run_length != len(bounds.run_bytes) or view[HEAD.size : start] != bounds.run_words:
        raise WireError("run", "is another one")
    schema = _schemas(bounds).get(kind)
    if schema is None:
        raise WireError("kind", "is none that this run sends")
    # By its own schema: a small message may not be as large as the largest of the run.
    if length > start + _most(schema, bounds):
        raise WireError("length", "is more than such a message can have")
    _check_parties(schema, sender, to, bounds)
    most_floats = _most_floats(bounds)
    if not (0 <= floats <= most_floats and 0 <= hop_floats <= most_floats):
        raise WireError("floats", OUT_OF_RANGE)
    if not (0 <= term < MOST and 0 <= sequence < MOST):
        raise WireError("delivery", OUT_OF_RANGE)

    frame = Reader(view, start, bounds, sender, length)
    payload = schema.record.read(frame)
    if schema.has_check:
        payload.check(bounds)
    if schema.has_slots and payload.slots:
        check_slots(payload, bounds)
    if frame.at != length:
        raise WireError("frame", "goes on after its end")
    header = Header(bounds.run, sender, to, term, sequence)
    return Message(sender, to, payload, floats, hop_floats), header, length


# Envelopes and acks


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
    if isinstance(payload, End) and bounds.server and message.sender != SERVER:
        raise WireError("sender", "is not a party that may end the training")
    if getattr(payload, "t", iteration) != iteration:
        raise WireError("iteration", "is not that of the payload")
    delivery = header.sequence, iteration, header.term, terms
    return Envelope(message.sender, message.to, *delivery, message, avoid)


def encode_ack(ack: Ack, run: str) -> bytes:
    """Encode an ack, which goes from the receiver of the envelope to its sender."""
    header = Header(run, ack.to, ack.sender, 0, ack.sequence)
    return _encode(Message(ack.to, ack.sender, Received()), header, 0, ack.terms)


def decode_ack(data: bytes | bytearray | memoryview, bounds: Bounds) -> Ack:
    """Decode an ack, from the receiver of the envelope; raises a ``WireError`` unless it is within
    bounds."""
    message, header, iteration, terms, avoid = _decode(data, bounds)
    if not isinstance(message.payload, Received):
        raise WireError("kind", "is no ack")
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
        keys = sorted(terms)
        words = [*keys, *map(terms.__getitem__, keys), *sorted(avoid)]
        chunks.append(np.array(words, I8))
    return b"".join(chunks)


def _decode(data: Any, bounds: Bounds) -> tuple[Message, Header, int, Terms, frozenset[int]]:
    view = memoryview(data)
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
    if end != len(view):
        raise WireError("frame", "goes on after its end")
    return message, header, iteration, terms, avoid


# Checks of the head


def route(sender: int, to: int) -> str:
    """The kinds of both parties, as routes of payloads name them: c is a client, s the server, m
    the monitor.

    >>> route(3, SERVER), route(4, 4)
    ('c>s', 'c>itself')
    """
    letters = {SERVER: "s", MONITOR: "m"}
    receiver = letters.get(to, "c")
    if sender == to:
        receiver = "itself"
    return f"{letters.get(sender, 'c')}>{receiver}"


@lru_cache(maxsize=4096)
def _schemas(bounds: Bounds) -> dict[int, Schema]:
    """The schemas of the payloads of this run, by number."""
    return {SCHEMAS[kind].number: SCHEMAS[kind] for kind in bounds.kinds}


@lru_cache(maxsize=4096)
def _most(schema: Schema, bounds: Bounds) -> int:
    """The largest number of bytes of such a payload in this run."""
    return schema.record.most(bounds)


@lru_cache(maxsize=4096)
def _most_floats(bounds: Bounds) -> int:
    """The most numbers that any message can be charged for: none is shorter than on the wire."""
    return largest(bounds) // bounds.dtype.itemsize


@lru_cache(maxsize=4096)
def largest(bounds: Bounds) -> int:
    """The largest size in bytes of any message of the run."""
    most = max(_most(SCHEMAS[kind], bounds) for kind in bounds.kinds)
    return HEAD.size + len(bounds.run_words) + most


@lru_cache(maxsize=4096)
def _check_parties(schema: Schema, sender: int, to: int, bounds: Bounds) -> None:
    """Check that sender and receiver exist, are those of the link, and may exchange such a
    payload. Only what is valid is remembered: an error is no result."""
    # Clients are numbered from 0; the server, if there is one, is the number before.
    lowest = SERVER if bounds.server else 0
    if not lowest <= sender < bounds.clients or bounds.sender not in (None, sender):
        raise WireError("sender", "is not a party that may send this")
    if not (lowest <= to < bounds.clients or to == MONITOR) or bounds.receiver not in (None, to):
        raise WireError("receiver", "is not a party that may receive this")
    if route(sender, to) not in schema.routes:
        raise WireError("receiver", "does not receive such payloads from this sender")


def as_view(data: object) -> memoryview:
    """A view of the bytes, without a copy."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise WireError("frame", "is not made of bytes")
    view = memoryview(data)
    if not view.nbytes:
        raise WireError("frame", CUT_SHORT)
    if not view.c_contiguous:
        raise WireError("frame", "is not in one piece")
    return view.cast("B")
