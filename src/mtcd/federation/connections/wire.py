"""What passes over a connection: first an opening of each end, then frames.

The opening says who speaks to whom, in which federation. A frame has a head of fixed length, which
names its kind, its number and the length of its body; so the length is checked before anything is
allocated, and the body is read into the place in which it stays.
"""

from __future__ import annotations

import json
from struct import Struct
from typing import NamedTuple

from mtcd.core.errors import WireError
from mtcd.core.received import are_texts, read_json

REQUEST, ANSWER, ALIVE = 1, 2, 3
LONGEST_KIND_BYTES = 46
MARK, FORMAT = b"MTCDLINK", 1
LONGEST_OPENING_BYTES = 1024
SLACK_BYTES = 2**20  # what requests add to a message of the largest size

_HEAD = Struct(f">BBQQ{LONGEST_KIND_BYTES}s")
_OPENING = Struct(">8sHH")
OPENING_HEAD_BYTES = _OPENING.size


class Opening(NamedTuple):
    """The first that an end of a connection says."""

    federation: str
    sender: str
    receiver: str

    def encode(self) -> bytes:
        """The bytes of the opening: a mark and a number of the format, then the names as JSON."""
        content = json.dumps(
            {"federation": self.federation, "from": self.sender, "to": self.receiver}
        ).encode()
        return _OPENING.pack(MARK, FORMAT, len(content)) + content


def opening_bytes(head: bytes) -> int:
    """How many bytes follow the head of an opening."""
    mark, number, length = _OPENING.unpack(head)
    if mark != MARK:
        raise WireError("opening", "is not that of a party of this version of mtcd")
    if number != FORMAT:
        raise WireError("opening", f"has format {number}, and this version of mtcd has {FORMAT}")
    if not 0 < length <= LONGEST_OPENING_BYTES:
        raise WireError("opening", "has no usable length")
    return int(length)


def decode_opening(content: bytes) -> Opening:
    """What follows the head of an opening."""
    told = read_json(content)
    if not isinstance(told, dict):
        raise WireError("opening", "is not readable")
    parts = [told.get("federation"), told.get("from"), told.get("to")]
    if not are_texts(parts):
        raise WireError("opening", "is not readable")
    return Opening(*parts)


class Frame(NamedTuple):
    """A request, an answer, or a sign of life."""

    what: int
    kind: str
    number: int
    body: bytearray
    """Of the receiver alone, who may write to it."""


def frame_head(what: int, kind: str, number: int, length: int) -> bytes:
    """The bytes in front of a body.

    >>> len(frame_head(REQUEST, "envelope", 7, 8000))
    64
    """
    name = kind.encode()
    if len(name) > LONGEST_KIND_BYTES:
        raise ValueError(f"{kind!r} is too long for the kind of a message")
    return _HEAD.pack(what, len(name), number, length, name)


class FrameReader:
    """Reads frames from bytes that arrive in pieces.

    Parameters
    ----------
    most
        The most bytes of a body; a longer one is refused as soon as its head is there.

    Examples
    --------
    >>> reader = FrameReader(10)
    >>> reader.target[:] = frame_head(REQUEST, "hello", 1, 2)
    >>> reader.advance(len(reader.target))
    >>> reader.target[:] = b"hi"
    >>> reader.advance(2)
    Frame(what=1, kind='hello', number=1, body=bytearray(b'hi'))
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._head = bytearray(_HEAD.size)
        self._begin()

    def _begin(self) -> None:
        self._described: tuple[int, str, int] | None = None
        self._content = bytearray()
        self.target = memoryview(self._head)
        """Where the next bytes belong."""

    def advance(self, count: int) -> Frame | None:
        """Note that so many bytes were written to the target; the frame, if it is complete.

        Raises
        ------
        WireError
            The head is not one of a frame, or announces too long a body.
        """
        self.target = self.target[count:]
        if self.target:
            return None
        if self._described is None:
            what, named, number, length, name = _HEAD.unpack(self._head)
            self._described = what, self._kind(what, name[:named]), number
            # Before the body has a place: a head may announce anything.
            if length > self._most:
                raise WireError("frame", f"has {length} bytes, more than the {self._most} allowed")
            self._content = bytearray(length)  # a new one each time
            self.target = memoryview(self._content)
            if length:
                return None

        frame = Frame(*self._described, self._content)
        self._begin()
        return frame

    @staticmethod
    def _kind(what: int, name: bytes) -> str:
        if what not in (REQUEST, ANSWER, ALIVE) or not name.isascii():
            raise WireError("frame", "has a head that is not one of a frame")
        return name.decode("ascii")
