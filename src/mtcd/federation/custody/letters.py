"""What travels between postmen: letters and receipts, and what they ask each other when a token may be lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtcd.protocol.party import Message

Fences = dict[int, int]
"""What no longer counts. With a server: by iteration, the generation of its tokens that counts, as far as is known.
Without one: by generation of the token, the hop from which it was made anew, so that later hops of older generations
are void."""


class Letter(NamedTuple):
    """A message in custody: the next ``sequence`` from its sender to its receiver.

    It belongs to an ``iteration`` and a ``generation`` of its tokens, and tells all fences that its sender knew of.
    ``gone``: whom its receiver shall not pass the token on to, as they are believed to be gone.
    """

    sender: int
    to: int
    sequence: int
    iteration: int
    generation: int
    fences: Fences
    message: Message
    gone: frozenset[int] = frozenset()


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


class Missed(NamedTuple):
    """To the server: I passed a token of iteration ``t`` on to ``client``, who has it or had it, and is gone."""

    t: int
    client: int


class Again(NamedTuple):
    """From the server: the tokens of iteration ``t`` that you sent up, once more, if they have not come to roam on."""

    t: int


class Freeze(NamedTuple):
    """Where is the token? I passed it on after ``hop`` visits, and its receiver is gone.

    ``number``: of the question, larger than that of any earlier one, and the generation of the token if I make it
    anew. While a ``firm`` question is open, nobody takes in a token.
    """

    hop: int
    number: int
    firm: bool


class Frozen(NamedTuple):
    """The answer to question number ``asked``: after my last visit the token had had so many, ``hop``.

    ``highest``: the highest number of a firm question, or generation, that I know of. ``down``: my neighbours that
    are gone. It is told again when that changes.
    """

    asked: int
    hop: int
    highest: int
    down: frozenset[int] = frozenset()


class Thaw(NamedTuple):
    """The question ``number`` is over. If the token was made anew, the fences say so."""

    number: int
