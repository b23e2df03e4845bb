"""What travels between parties: envelopes and acks, and what they ask each other when a token may be lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtcd.protocol.party import Message

Terms = dict[int, int]
"""What no longer counts. With a server: by iteration, the term of its tokens that counts, as far as is known.
Without one: by term of the token, the hop from which it was made anew, so that later hops of older terms
are stale."""


class Envelope(NamedTuple):
    """A message in custody: the next ``sequence`` from its sender to its receiver.

    It belongs to an ``iteration`` and a ``term`` of its tokens, and tells all terms that its sender knew of.
    ``gone``: whom its receiver shall not pass the token on to, as they are believed to be gone.
    """

    sender: int
    to: int
    sequence: int
    iteration: int
    term: int
    terms: Terms
    message: Message
    gone: frozenset[int] = frozenset()


class Ack(NamedTuple):
    """The receiver has the envelope in its journal, or refuses it for ever: the sender need not send it again."""

    sender: int
    to: int
    sequence: int
    terms: Terms


@dataclass(frozen=True, slots=True)
class End:
    """The training is over, and why: its ``status``. Clients settle on iteration ``t``; ``hop`` counts hops per token.

    ``past``: with optimal sync, the weights that some client has not heard of (see ``optimal_parties.py``).
    """

    status: str
    t: int
    hop: int
    past: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Takes the place of a payload whose term is over, so that no sequence number is missing."""

    t: int


@dataclass(frozen=True, slots=True)
class Undeliverable:
    """Client to server: I hold a token of iteration ``t`` for a client that is down."""

    t: int


@dataclass(frozen=True, slots=True)
class HolderLost:
    """Client to server: I passed a token of iteration ``t`` to ``client``, which acknowledged it and is now down."""

    t: int
    client: int


@dataclass(frozen=True, slots=True)
class ResendTokens:
    """Server to client: send again the tokens of iteration ``t`` that you uploaded, unless they roam again."""

    t: int


@dataclass(frozen=True, slots=True)
class Prepare:
    """Phase 1 of a ballot for the token: I passed it on after ``hop`` visits, and its receiver is down.

    ``ballot``: larger than that of any earlier request, and the term of the token if I regenerate it. A request that
    is not ``binding`` is a probe (a pre-vote, as in Raft). Who answers a binding one accepts no token until the
    release.
    """

    hop: int
    ballot: int
    binding: bool


@dataclass(frozen=True, slots=True)
class Promise:
    """The answer to ``ballot``: after its last visit here the token had made ``hop`` visits.

    ``highest``: the highest binding ballot, or term, known here. ``down``: the neighbours that are down, as seen from
    here. The answer is sent again when that changes.
    """

    ballot: int
    hop: int
    highest: int
    down: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Release:
    """The request ``ballot`` is over. If the token was regenerated, the terms say so."""

    ballot: int
