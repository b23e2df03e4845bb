"""Envelopes and acks as bytes: the message as any engine sends it, then the iteration, the terms, who is gone.

Every field is checked on arrival, as in ``engines/wire``. Who speaks is in ``Expected.sender``: an engine that knows
from a certificate who is at the other end of a link lets nobody write envelopes, or give acks, for another.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mtcd.engines.wire import Expected, Header, WireError, largest
from mtcd.engines.wire.expected import MOST
from mtcd.engines.wire.fields import Clients, Field, Flag, Past, Whole
from mtcd.engines.wire.frame import as_view, decode_first, encode_parts
from mtcd.engines.wire.payloads import Codec, include, last_client, last_iteration
from mtcd.engines.wire.reading import I8, OUT_OF_RANGE, WORD, Chunks, Reader, padded
from mtcd.federation.delivery.envelopes import (
    Ack,
    Cancelled,
    End,
    Envelope,
    HolderLost,
    Prepare,
    Promise,
    Release,
    ResendTokens,
    Terms,
    Undeliverable,
)
from mtcd.protocol.party import MONITOR, SERVER, Message

MOST_TERMS = 4096
LONGEST_STATUS = 32
STATUS = re.compile(rb"[a-z]([a-z ]*[a-z])?")


class Received(NamedTuple):
    """The payload of an ack: its number is in the header."""


class Status(Field):
    """A few small envelopes: why a training ended."""

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
    Codec(33, Cancelled, ANYWHERE, (Whole("t", last_iteration),)),
    Codec(34, End, "s>c c>c", (Status("status"), Whole("t", last_iteration), Whole("hop"), Past("past")), check_end),
    Codec(35, Undeliverable, "c>s", (Whole("t", last_iteration),)),
    Codec(36, Prepare, "c>c", (Whole("hop"), Whole("ballot"), Flag("binding"))),
    Codec(
        37, Promise, "c>c", (Whole("ballot"), Whole("hop"), Whole("highest"), Clients("down", frozenset, last_client))
    ),
    Codec(38, Release, "c>c", (Whole("ballot"),)),
    Codec(40, HolderLost, "c>s", (Whole("t", last_iteration), Whole("client", last_client))),
    Codec(39, ResendTokens, "s>c", (Whole("t", last_iteration),)),
)
include(CODECS)
WITH_SERVER: frozenset[type] = frozenset({Received, Cancelled, End, Undeliverable, HolderLost, ResendTokens})
WITHOUT_SERVER: frozenset[type] = frozenset({Received, Cancelled, End, Prepare, Promise, Release})
CONTROL_PAYLOADS = WITH_SERVER | WITHOUT_SERVER


@lru_cache(maxsize=4096)
def with_control(expected: Expected) -> Expected:
    """The same, with what parties tell each other."""
    return replace(expected, kinds=expected.kinds | (WITH_SERVER if expected.server else WITHOUT_SERVER))


def largest_envelope(expected: Expected) -> int:
    """The most bytes that an envelope or ack of the run can have."""
    return largest(with_control(expected)) + 8 * (3 + 2 * MOST_TERMS + expected.clients)


def encode_envelope(envelope: Envelope, run: str) -> bytes:
    """As bytes. What is not finite is refused: the training has diverged."""
    header = Header(run, envelope.sender, envelope.to, envelope.term, envelope.sequence)
    return _encode(envelope.message, header, envelope.iteration, envelope.terms, envelope.gone)


def decode_envelope(data: bytes | bytearray | memoryview, expected: Expected) -> Envelope:
    """The envelope, if all of it is as expected; otherwise a ``WireError``. A ``bytearray`` is taken over."""
    message, header, iteration, terms, gone = _decode(data, expected)
    payload = message.payload
    if isinstance(payload, Received):
        raise WireError("kind", "is no envelope")
    if message.to == MONITOR:
        raise WireError("receiver", "is nobody who gets envelopes")
    if isinstance(payload, End) and expected.server and message.sender != SERVER:
        raise WireError("sender", "is not one who may end the training")
    if getattr(payload, "t", iteration) != iteration:
        raise WireError("iteration", "is not that of what the envelope brings")
    delivery = header.sequence, iteration, header.term, terms
    return Envelope(message.sender, message.to, *delivery, message, gone)


def encode_ack(ack: Ack, run: str) -> bytes:
    """As bytes: it is told by who got the envelope."""
    told_by, told_to = ack.to, ack.sender
    header = Header(run, told_by, told_to, 0, ack.sequence)
    return _encode(Message(told_by, told_to, Received()), header, 0, ack.terms)


def decode_ack(data: bytes | bytearray | memoryview, expected: Expected) -> Ack:
    """The ack, if all of it is as expected; otherwise a ``WireError``. It is from who got the envelope."""
    message, header, iteration, terms, gone = _decode(data, expected)
    if not isinstance(message.payload, Received):
        raise WireError("kind", "is no ack")
    if any((iteration, header.term, message.floats, message.hop_floats, gone)):
        raise WireError("delivery", OUT_OF_RANGE)
    return Ack(message.to, message.sender, header.sequence, terms)


def _encode(
    message: Message, header: Header, iteration: int, terms: Terms, gone: frozenset[int] = frozenset()
) -> bytes:
    if len(terms) > MOST_TERMS:
        raise WireError("terms", "are more than can be sent")
    keys = sorted(terms)
    words = [iteration, len(keys), len(gone), *keys, *(terms[key] for key in keys), *sorted(gone)]
    chunks = encode_parts(message, header)
    chunks.append(np.array(words, I8))
    return b"".join(chunks)


def _decode(data: Any, expected: Expected) -> tuple[Message, Header, int, Terms, frozenset[int]]:
    view = as_view(data)
    message, header, length = decode_first(view, with_control(expected))
    rest = Reader(view, length, expected, message.sender)
    iteration = rest.whole("iteration", 0, expected.iterations)
    count = rest.whole("terms", 0, MOST_TERMS + 1)
    absent = rest.whole("gone", 0, expected.clients + 1)  # no mutants: no more are in order and below that
    keys = rest.wholes("terms", count, MOST)
    terms = {key: rest.whole("terms", 0, MOST) for key in keys}
    gone = frozenset(rest.wholes("gone", absent, expected.clients))
    if rest.at != rest.end:
        raise WireError("frame", "goes on after its end")
    return message, header, iteration, terms, gone
