"""Letters and receipts as bytes: the message as any engine sends it, then the iteration, the fences, who is gone.

Every field is checked on arrival, as in ``engines/wire``. Who speaks is in ``Expected.sender``: an engine that knows
from a certificate who is at the other end of a link lets nobody write letters, or give receipts, for another.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mtcd.engines.wire import Envelope, Expected, WireError, largest
from mtcd.engines.wire.expected import MOST
from mtcd.engines.wire.fields import Clients, Field, Flag, Past, Whole
from mtcd.engines.wire.frame import as_view, decode_first, encode_parts
from mtcd.engines.wire.payloads import Codec, include, last_client, last_iteration
from mtcd.engines.wire.reading import I8, OUT_OF_RANGE, WORD, Chunks, Reader, padded
from mtcd.federation.custody.letters import (
    Again,
    End,
    Fences,
    Freeze,
    Frozen,
    Letter,
    Missed,
    Receipt,
    Stuck,
    Thaw,
    Void,
)
from mtcd.protocol.party import MONITOR, SERVER, Message

MOST_FENCES = 4096
LONGEST_STATUS = 32
STATUS = re.compile(rb"[a-z]([a-z ]*[a-z])?")


class Received(NamedTuple):
    """The payload of a receipt: its number is in the envelope."""


class Status(Field):
    """A few small letters: why a training ended."""

    def write(self, value: str, chunks: Chunks) -> None:
        data = value.encode()
        if not (len(data) <= LONGEST_STATUS and STATUS.fullmatch(data)):
            raise WireError(self.name, "is not one that can be sent")
        chunks += [WORD.pack(len(data)), data, bytes(-len(data) % 8)]

    def read(self, frame: Reader) -> str:
        length = frame.whole(self.name, 1, LONGEST_STATUS + 1)
        end = frame.at + padded(length)
        data = bytes(frame.view[frame.at : end])
        if len(data) < padded(length) or any(data[length:]) or not STATUS.fullmatch(data[:length]):
            raise WireError(self.name, "is not one that can be sent")
        frame.at = end
        return data[:length].decode()

    def most(self, expected: Expected) -> int:
        return 8 + LONGEST_STATUS


def check_end(end: End, expected: Expected) -> None:
    """The weights are of syncs before the end."""
    if any(t >= end.t for t in end.past):
        raise WireError("past", "is of an iteration that is still to come")


ANYWHERE = "c>c c>itself c>s s>c s>itself"
CODECS = (
    Codec(32, Received, ANYWHERE, ()),
    Codec(33, Void, ANYWHERE, (Whole("t", last_iteration),)),
    Codec(34, End, "s>c c>c", (Status("status"), Whole("t", last_iteration), Whole("hop"), Past("past")), check_end),
    Codec(35, Stuck, "c>s", (Whole("t", last_iteration),)),
    Codec(36, Freeze, "c>c", (Whole("hop"), Whole("number"), Flag("firm"))),
    Codec(37, Frozen, "c>c", (Whole("asked"), Whole("hop"), Whole("highest"), Clients("down", frozenset, last_client))),
    Codec(38, Thaw, "c>c", (Whole("number"),)),
    Codec(40, Missed, "c>s", (Whole("t", last_iteration), Whole("client", last_client))),
    Codec(39, Again, "s>c", (Whole("t", last_iteration),)),
)
include(CODECS)
WITH_SERVER: frozenset[type] = frozenset({Received, Void, End, Stuck, Missed, Again})
WITHOUT_SERVER: frozenset[type] = frozenset({Received, Void, End, Freeze, Frozen, Thaw})
OF_POSTMEN = WITH_SERVER | WITHOUT_SERVER


@lru_cache(maxsize=4096)
def in_custody(expected: Expected) -> Expected:
    """The same, with what postmen tell each other."""
    return replace(expected, kinds=expected.kinds | (WITH_SERVER if expected.server else WITHOUT_SERVER))


def largest_letter(expected: Expected) -> int:
    """The most bytes that a letter or receipt of the run can have."""
    return largest(in_custody(expected)) + 8 * (3 + 2 * MOST_FENCES + expected.clients)


def encode_letter(letter: Letter, run: str) -> bytes:
    """As bytes. What is not finite is refused: the training has diverged."""
    envelope = Envelope(run, letter.sender, letter.to, letter.generation, letter.sequence)
    return _encode(letter.message, envelope, letter.iteration, letter.fences, letter.gone)


def decode_letter(data: bytes | bytearray | memoryview, expected: Expected) -> Letter:
    """The letter, if all of it is as expected; otherwise a ``WireError``. A ``bytearray`` is taken over."""
    message, envelope, iteration, fences, gone = _decode(data, expected)
    payload = message.payload
    if isinstance(payload, Received):
        raise WireError("kind", "is no letter")
    if message.to == MONITOR:
        raise WireError("receiver", "is nobody who gets letters")
    if isinstance(payload, End) and expected.server and message.sender != SERVER:
        raise WireError("sender", "is not one who may end the training")
    if getattr(payload, "t", iteration) != iteration:
        raise WireError("iteration", "is not that of what the letter brings")
    custody = envelope.sequence, iteration, envelope.generation, fences
    return Letter(message.sender, message.to, *custody, message, gone)


def encode_receipt(receipt: Receipt, run: str) -> bytes:
    """As bytes: it is told by who got the letter."""
    told_by, told_to = receipt.to, receipt.sender
    envelope = Envelope(run, told_by, told_to, 0, receipt.sequence)
    return _encode(Message(told_by, told_to, Received()), envelope, 0, receipt.fences)


def decode_receipt(data: bytes | bytearray | memoryview, expected: Expected) -> Receipt:
    """The receipt, if all of it is as expected; otherwise a ``WireError``. It is from who got the letter."""
    message, envelope, iteration, fences, gone = _decode(data, expected)
    if not isinstance(message.payload, Received):
        raise WireError("kind", "is no receipt")
    if any((iteration, envelope.generation, message.floats, message.hop_floats, gone)):
        raise WireError("custody", OUT_OF_RANGE)
    return Receipt(message.to, message.sender, envelope.sequence, fences)


def _encode(
    message: Message, envelope: Envelope, iteration: int, fences: Fences, gone: frozenset[int] = frozenset()
) -> bytes:
    if len(fences) > MOST_FENCES:
        raise WireError("fences", "are more than can be sent")
    keys = sorted(fences)
    words = [iteration, len(keys), len(gone), *keys, *(fences[key] for key in keys), *sorted(gone)]
    chunks = encode_parts(message, envelope)
    chunks.append(np.array(words, I8))
    return b"".join(chunks)


def _decode(data: Any, expected: Expected) -> tuple[Message, Envelope, int, Fences, frozenset[int]]:
    view = as_view(data)
    message, envelope, length = decode_first(view, in_custody(expected))
    rest = Reader(view, length, expected, message.sender)
    iteration = rest.whole("iteration", 0, expected.iterations)
    count = rest.whole("fences", 0, MOST_FENCES + 1)
    absent = rest.whole("gone", 0, expected.clients + 1)  # no mutants: no more are in order and below that
    keys = rest.wholes("fences", count, MOST)
    fences = {key: rest.whole("fences", 0, MOST) for key in keys}
    gone = frozenset(rest.wholes("gone", absent, expected.clients))
    if rest.at != rest.end:
        raise WireError("frame", "goes on after its end")
    return message, envelope, iteration, fences, gone
