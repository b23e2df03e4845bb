"""Messages between reliable parties: envelopes and acks, and the control payloads of the recovery
policies."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from mtcd.core.errors import WireError
from mtcd.protocol.codec.extensions import Slots
from mtcd.protocol.codec.fields import ClientSet, Field
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import (
    Bool,
    ClientNumber,
    Count,
    Iteration,
    Payload,
    last_client,
    payload,
)
from mtcd.protocol.codec.reading import WORD, Chunks, Reader, padded
from mtcd.protocol.codec.stored import stored
from mtcd.protocol.party import Message

LONGEST_STATUS = 32
STATUS = re.compile(rb"[a-z]([a-z ]*[a-z])?")


class Status(Field):
    """A few lower-case letters."""

    def write(self, value: str, chunks: Chunks) -> None:
        data = value.encode()
        # Few letters and nothing else: the text is shown on screens and written to logs as it is.
        if not (len(data) <= LONGEST_STATUS and STATUS.fullmatch(data)):
            raise WireError(self.name, "is not one that can be sent")
        chunks += [WORD.pack(len(data)), data, bytes(-len(data) % 8)]

    def read(self, frame: Reader) -> str:
        length = frame.whole(self.name, 1, LONGEST_STATUS + 1)
        end = frame.at + padded(length)
        data = bytes(frame.view[frame.at : end])
        # The filling too: there is one encoding of a status.
        if len(data) < padded(length) or any(data[length:]) or not STATUS.fullmatch(data[:length]):
            raise WireError(self.name, "is not one that can be sent")
        frame.at = end
        return data[:length].decode()

    def most(self, bounds: Bounds) -> int:
        return 8 + LONGEST_STATUS


Terms = dict[int, int]
"""Fencing terms. With a server: by iteration, the current term of its tokens, as far as is known.
Without one: by term of the token, the hop after which it was regenerated, so that later hops of
older terms are stale."""


@stored
class Envelope(NamedTuple):
    """A message with its number: the next ``sequence`` from its sender to its receiver.

    It belongs to an ``iteration`` and a ``term`` of its tokens, and carries all terms that its
    sender knows. ``avoid``: the clients that its receiver must not pass the token to, as they are
    down.
    """

    sender: int
    to: int
    sequence: int
    iteration: int
    term: int
    terms: Terms
    message: Message
    avoid: frozenset[int] = frozenset()


@stored
class Ack(NamedTuple):
    """The receiver has the envelope in its journal, or rejects it for ever: the sender need not
    send it again."""

    sender: int
    to: int
    sequence: int
    terms: Terms


# Every party acknowledges to every other, and to itself: its own messages go the same way.
ANYWHERE = "c>c c>itself c>s s>c s>itself"


@payload(32, ANYWHERE)
@dataclass(frozen=True, slots=True)
class Received(Payload):
    """The payload of an ack: its number is in the header."""


@payload(34, "s>c c>c")
@dataclass(frozen=True, slots=True)
class End(Payload):
    """The training has ended with this ``status``, at iteration ``t`` and after ``hop`` hops per
    token.

    ``slots``: what features tell the parties beside it (``Party.at_end``).
    """

    status: Annotated[str, Status()]
    t: Iteration
    hop: Count
    # Not whole: what every token of a run carries, its end need not repeat.
    slots: Annotated[Mapping[str, Any], Slots(whole=False)] = field(default_factory=dict)


@payload(33, ANYWHERE)
@dataclass(frozen=True, slots=True)
class Cancelled(Payload):
    """Takes the place of a payload whose term is over, so that no sequence number is missing."""

    t: Iteration


@payload(35, "c>s")
@dataclass(frozen=True, slots=True)
class Undeliverable(Payload):
    """Client to server: I hold a token of iteration ``t`` for a client that is down."""

    t: Iteration


@payload(40, "c>s")
@dataclass(frozen=True, slots=True)
class HolderLost(Payload):
    """Client to server: I passed a token of iteration ``t`` to ``client``, which acknowledged it
    and is now down."""

    t: Iteration
    client: ClientNumber


@payload(39, "s>c")
@dataclass(frozen=True, slots=True)
class ResendTokens(Payload):
    """Server to client: send again the tokens of iteration ``t`` that you uploaded, unless they
    roam again."""

    t: Iteration


@payload(36, "c>c")
@dataclass(frozen=True, slots=True)
class Prepare(Payload):
    """Phase 1 of a ballot for the token: I passed it on after ``hop`` visits, and its receiver is
    down.

    ``ballot``: larger than that of any earlier request, and the term of the token if I regenerate
    it. A request that is not ``binding`` is a probe (a pre-vote, as in Raft). A client that answers
    a binding one accepts no token until the release.
    """

    hop: Count
    ballot: Count
    binding: Bool


@payload(37, "c>c")
@dataclass(frozen=True, slots=True)
class Promise(Payload):
    """The answer to ``ballot``: after its last visit here the token had made ``hop`` visits.

    ``highest``: the highest binding ballot, or term, known here. ``down``: the neighbours that are
    down, as seen from here. The answer is sent again when that changes.
    """

    ballot: Count
    hop: Count
    highest: Count
    # Of these no answer will come: whoever asks must not wait for them.
    down: Annotated[frozenset[int], ClientSet(frozenset, last_client)] = frozenset()


@payload(38, "c>c")
@dataclass(frozen=True, slots=True)
class Release(Payload):
    """The request ``ballot`` is over. If the token was regenerated, the terms say so."""

    ballot: Count


WITH_SERVER: frozenset[type] = frozenset(
    {Received, Cancelled, End, Undeliverable, HolderLost, ResendTokens}
)
WITHOUT_SERVER: frozenset[type] = frozenset({Received, Cancelled, End, Prepare, Promise, Release})
CONTROL_PAYLOADS = WITH_SERVER | WITHOUT_SERVER


# Asked for every frame, with the bounds of each link: few, and made once.
@lru_cache(maxsize=4096)
def with_control(bounds: Bounds) -> Bounds:
    """The same bounds with the control payloads."""
    control = WITHOUT_SERVER
    if bounds.server:
        control = WITH_SERVER
    return replace(bounds, kinds=bounds.kinds | control)
