"""What travels between postmen: letters and receipts, and what they ask each other when a token may be lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtcd.protocol.party import Message

Fences = dict[int, int]
"""What no longer counts. With a server: by iteration, the generation of its tokens that counts. Without one: by
generation of the token, the hop from which it was made anew, so that later hops of older generations are void."""


class Letter(NamedTuple):
    """A message in custody: the next ``sequence`` from its sender to its receiver.

    It belongs to an ``iteration`` and a ``generation`` of its tokens, and tells all fences that its sender knew of.
    """

    sender: int
    to: int
    sequence: int
    iteration: int
    generation: int
    fences: Fences
    message: Message


class Receipt(NamedTuple):
    """The receiver has the letter in its journal, or refuses it for ever: the sender need not send it again."""

    sender: int
    to: int
    sequence: int
    fences: Fences


@dataclass(frozen=True, slots=True)
class End:
    """The training is over, and why: its ``status``. Clients settle on iteration ``t``; ``hop`` counts hops per token.

    ``past``: with optimal sync, the weights that some client has not heard of (see ``optimal_parties.py``).
    """

    status: str
    t: int
    hop: int
    past: Mapping[int, NDArray[np.float64]] = field(default_factory=dict)


class Void(NamedTuple):
    """Instead of what no longer counts, so that no letter is missing."""

    t: int


class Stuck(NamedTuple):
    """To the server: I have a token of iteration ``t`` for somebody who is gone."""

    t: int


class Freeze(NamedTuple):
    """Take in no token until I have found out where it is. I sent it after ``hop`` visits."""

    hop: int


class Frozen(NamedTuple):
    """I take in none. After my last visit the token had had so many: ``hop``. ``down``: neighbours that are gone."""

    asked: int
    hop: int
    down: frozenset[int] = frozenset()


class Thaw(NamedTuple):
    """It is known which token counts: the fences say so. The question was asked after ``hop`` visits."""

    hop: int
