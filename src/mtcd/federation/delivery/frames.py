"""A message as bytes: a head that says what it is and whose it is, then the payload."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error
from typing import NamedTuple

from mtcd.core.errors import WireError
from mtcd.core.version import PROTOCOL
from mtcd.protocol.codec.limits import LONGEST_RUN_ID, MOST, Bounds
from mtcd.protocol.codec.payloads import SCHEMAS, Schema
from mtcd.protocol.codec.reading import CUT_SHORT, OUT_OF_RANGE, Chunks, Reader
from mtcd.protocol.party import MONITOR, SERVER, Message

MAGIC = b"MTCDWIRE"
FORMAT = 1
# magic, format, protocol, kind, length of the run's id; length of all; sender, receiver; floats,
# hop_floats; delivery
HEAD = Struct("<8sHHHHQqqqqqq")


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
    # Before anything is decoded.
    if len(view) > _largest(bounds):
        raise WireError("frame", "is larger than any message of this run")
    message, header, length = decode_first(view, bounds)
    if length != len(view):
        raise WireError("length", "is not that of the frame")
    return message, header


def decode_first(view: memoryview, bounds: Bounds) -> tuple[Message, Header, int]:
    """Decode the message at the start of a buffer; returns also its length."""
    schema, sender, to, numbers, length = _head(view, bounds)
    frame = Reader(view, HEAD.size + len(bounds.run_words), bounds, sender, length)
    payload = schema.read(frame)
    if frame.at != length:
        raise WireError("frame", "goes on after its end")
    floats, hop_floats, term, sequence = numbers
    header = Header(bounds.run, sender, to, term, sequence)
    return Message(sender, to, payload, floats, hop_floats), header, length


def largest(bounds: Bounds) -> int:
    """The largest size in bytes of any message of the run; links refuse larger ones."""
    return _largest(bounds)


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
    return _largest(bounds) // bounds.dtype.itemsize


@lru_cache(maxsize=4096)
def _largest(bounds: Bounds) -> int:
    most = max(_most(SCHEMAS[kind], bounds) for kind in bounds.kinds)
    return HEAD.size + len(bounds.run_words) + most


def _head(
    view: memoryview, bounds: Bounds
) -> tuple[Schema, int, int, tuple[int, int, int, int], int]:
    """Decode and check the head."""
    if len(view) < HEAD.size:
        raise WireError("frame", CUT_SHORT)
    magic, version, protocol, kind, run_length, length, sender, to, *others = HEAD.unpack_from(view)
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
    run, start = bounds.run_words, HEAD.size + len(bounds.run_words)
    if run_length != len(bounds.run_bytes) or view[HEAD.size : start] != run:
        raise WireError("run", "is another one")
    schema = _schemas(bounds).get(kind)
    if schema is None:
        raise WireError("kind", "is none that this run sends")
    # By its own schema: a small message may not be as large as the largest of the run.
    if length > start + _most(schema, bounds):
        raise WireError("length", "is more than such a message can have")
    _check_parties(schema, sender, to, bounds)
    floats, hop_floats, term, sequence = others
    most_floats = _most_floats(bounds)
    if not (0 <= floats <= most_floats and 0 <= hop_floats <= most_floats):
        raise WireError("floats", OUT_OF_RANGE)
    if not (0 <= term < MOST and 0 <= sequence < MOST):
        raise WireError("delivery", OUT_OF_RANGE)
    return schema, sender, to, (floats, hop_floats, term, sequence), length


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
