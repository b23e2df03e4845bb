"""A message as bytes: a head that says what it is and whose it is, then the payload."""

from __future__ import annotations

from functools import lru_cache
from struct import Struct, error
from typing import NamedTuple

from mtcd.engines.wire.expected import LONGEST_RUN_ID, MOST, Expected
from mtcd.engines.wire.payloads import BY_CLASS, BY_NUMBER, Codec, limit, way
from mtcd.engines.wire.reading import CUT_SHORT, OUT_OF_RANGE, Chunks, Numbers, Reader, padded
from mtcd.errors import WireError
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.version import PROTOCOL

MAGIC = b"MTCDWIRE"
FORMAT = 1
# magic, format, protocol, kind, length of the run's id; length of all;
# sender, receiver; floats, hop_floats; term, sequence
HEAD = Struct("<8sHHHHQqqqqqq")


class Header(NamedTuple):
    """The sender, the receiver and the number of a message.

    A token that is regenerated after a loss has a higher ``term``. Every message from one party to another has the
    next ``sequence``, by which its receiver recognises duplicates.
    """

    run: str
    sender: int
    receiver: int
    term: int = 0
    sequence: int = 0


def encode(message: Message, header: Header) -> bytes:
    """The message as bytes. What is not finite is refused here already: the training has diverged."""
    return b"".join(encode_parts(message, header))


def encode_parts(message: Message, header: Header) -> Chunks:
    """The same in pieces, of which the large ones are the arrays themselves."""
    codec = BY_CLASS.get(type(message.payload))
    if codec is None:
        raise WireError("kind", "is none that can be sent")
    if (message.sender, message.to) != (header.sender, header.receiver):
        raise WireError("header", "is that of another message")
    run = header.run.encode()
    if not 1 <= len(run) <= LONGEST_RUN_ID:
        raise WireError("run", "is no id of 1 to 64 characters")
    chunks: Chunks = [b"", run, bytes(-len(run) % 8)]
    try:
        codec.record.write(message.payload, chunks)
        length = HEAD.size + sum(map(_size, chunks))
        delivery = header.term, header.sequence
        who = message.sender, message.to, message.floats, message.hop_floats
        chunks[0] = HEAD.pack(MAGIC, FORMAT, PROTOCOL, codec.number, len(run), length, *who, *delivery)
    except (error, TypeError, ValueError, AttributeError):
        raise WireError(codec.kind.__name__, "has a field of the wrong type") from None
    return chunks


def decode(data: bytes | bytearray | memoryview, expected: Expected) -> tuple[Message, Header]:
    """The message, if all of it is as ``expected``; otherwise a ``WireError``, and nothing has happened.

    Out of ``bytes`` the arrays are copied once, as parties write to them. A ``bytearray`` is taken over: its arrays
    stay where they are, so it must not be used again.
    """
    view = as_view(data)
    if len(view) > _largest(expected):
        raise WireError("frame", "is larger than any message of this run")
    message, header, length = decode_first(view, expected)
    if length != len(view):
        raise WireError("length", "is not that of the frame")
    return message, header


def decode_first(view: memoryview, expected: Expected) -> tuple[Message, Header, int]:
    """The same where more follows; with the length of the message."""
    codec, sender, to, numbers, length = _head(view, expected)
    start = HEAD.size + padded(len(expected.run_bytes))
    frame = Reader(view, start, expected, sender, length)
    payload = codec.read(frame)
    if frame.at != length:
        raise WireError("frame", "goes on after its end")
    floats, hop_floats, term, sequence = numbers
    header = Header(expected.run, sender, to, term, sequence)
    return Message(sender, to, payload, floats, hop_floats), header, length


def largest(expected: Expected) -> int:
    """The most bytes that any message of the run can have: what a link need not take in."""
    return _largest(expected)


@lru_cache(maxsize=4096)
def _largest(expected: Expected) -> int:
    most = max(limit(BY_CLASS[kind], expected) for kind in expected.kinds)
    return HEAD.size + padded(len(expected.run_bytes)) + most


def _head(view: memoryview, expected: Expected) -> tuple[Codec, int, int, tuple[int, int, int, int], int]:
    """What the head says, if it says what it must."""
    if len(view) < HEAD.size:
        raise WireError("frame", CUT_SHORT)
    magic, version, protocol, kind, run_length, length, sender, to, *others = HEAD.unpack_from(view)
    if magic != MAGIC:
        raise WireError("magic", "is not that of mtcd")
    if version != FORMAT or protocol != PROTOCOL:
        told = f"format {version}, protocol {protocol}; here {FORMAT} and {PROTOCOL}"
        raise WireError("version", f"is another one ({told}): the parties need the same version of mtcd")
    if length > len(view):
        raise WireError("length", "is not that of the frame")
    run, end = expected.run_bytes, HEAD.size + run_length
    if run_length != len(run) or view[HEAD.size : end] != run or any(view[end : HEAD.size + padded(len(run))]):
        raise WireError("run", "is another one")
    codec = BY_NUMBER.get(kind)
    if codec is None or codec.kind not in expected.kinds:
        raise WireError("kind", "is none that this run sends")
    if length > HEAD.size + padded(len(run)) + limit(codec, expected):
        raise WireError("length", "is more than such a message can have")
    _check_parties(codec, sender, to, expected)
    floats, hop_floats, term, sequence = others
    if not (0 <= floats <= expected.most_floats and 0 <= hop_floats <= expected.most_floats):
        raise WireError("floats", OUT_OF_RANGE)
    if not (0 <= term < MOST and 0 <= sequence < MOST):
        raise WireError("delivery", OUT_OF_RANGE)
    return codec, sender, to, (floats, hop_floats, term, sequence), length


def _check_parties(codec: Codec, sender: int, to: int, expected: Expected) -> None:
    """They exist, are those of the link, and may tell each other such a thing."""
    lowest = SERVER if expected.server else 0
    if not lowest <= sender < expected.clients or expected.sender not in (None, sender):
        raise WireError("sender", "is not one who may send this")
    if not (lowest <= to < expected.clients or to == MONITOR) or expected.receiver not in (None, to):
        raise WireError("receiver", "is not one who may get this")
    if way(sender, to) not in codec.ways:
        raise WireError("receiver", "is not told such things by this sender")


def as_view(data: object) -> memoryview:
    """The bytes, as they lie."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise WireError("frame", "is not made of bytes")
    view = memoryview(data)
    if not view.nbytes:
        raise WireError("frame", CUT_SHORT)
    if not view.c_contiguous:
        raise WireError("frame", "is not in one piece")
    return view.cast("B")


def _size(chunk: bytes | Numbers) -> int:
    return len(chunk) if isinstance(chunk, bytes) else chunk.nbytes
