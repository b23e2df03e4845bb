"""The messages of sealed tours. Ciphertexts are blocks of bytes, which the cipher checks when it
reads them.

The ledger counts a block of bytes as the numbers of eight bytes that would fill it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.protocol.codec.fields import Octets, Row, Whole, limit_of
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.payloads import Bool, ClientNumber, Iteration, Number, Payload, payload
from mtcd.protocol.codec.reading import padded

Block = NDArray[np.uint8]
Ciphertext = Annotated[Block, Octets(limit_of("sealed_bytes"))]
Place = Annotated[int, Whole("hops")]


def as_block(data: bytes) -> Block:
    """Bytes as an array, as payloads and journals hold them."""
    return np.frombuffer(data, np.uint8)


def words(*blocks: Block) -> int:
    """The numbers of eight bytes that these blocks amount to."""
    # The ledger counts numbers of eight bytes.
    return sum(padded(block.size) // 8 for block in blocks)


@payload(14, "s>c c>c")
@dataclass(frozen=True, slots=True)
class SealedKeys(Payload):
    """The public keys and parameters of a run, for ``client``; first used in tour t."""

    t: Iteration
    client: ClientNumber
    data: Annotated[Block, Octets(limit_of("sealed_keys"))]

    @property
    def floats(self) -> int:
        return words(self.data)


@payload(15, "s>c c>c")
@dataclass(frozen=True, slots=True)
class SealedToken(Payload):
    """The token of tour t after ``place`` hops: Enc(g), and the weights of the mix from which the
    tour starts."""

    index: ClassVar[int] = 0
    """There is one token."""
    t: Iteration
    place: Place
    weights: Annotated[Array, Row(limit_of("snapshots"))]
    stretch: Number
    """The factor by which the move to that mix is kept."""
    scale: Number
    """Integers per unit of g in this tour."""
    data: Ciphertext

    @property
    def rounds_ended(self) -> int:
        return self.t - 1

    @property
    def floats(self) -> int:
        return self.weights.size + 2 + words(self.data)

    def check(self, bounds: Bounds) -> None:
        # clients divide by both
        if not (self.scale > 0 and self.stretch > 0):
            raise WireError("scale", "is not positive")


@payload(16, "c>s c>c")
@dataclass(frozen=True, slots=True)
class SealedRequest(Payload):
    """The masked gradient of a client, encrypted, on its way to the key holder.

    At the last place of a tour: the masked sum <y, change> of the label holder.
    """

    client: ClientNumber
    t: Iteration
    place: Place
    data: Ciphertext

    @property
    def floats(self) -> int:
        return words(self.data)


@payload(17, "s>c c>c")
@dataclass(frozen=True, slots=True)
class SealedAnswer(Payload):
    """What the key holder decrypts: uniform numbers modulo t, from which the client takes its
    mask."""

    client: ClientNumber
    t: Iteration
    place: Place
    values: Annotated[Array, Row(limit_of("products"))]

    @property
    def floats(self) -> int:
        return self.values.size


@payload(18, "c>s")
@dataclass(frozen=True, slots=True)
class SealedEnd(Payload):
    """The end of tour t, from the label holder to the server: the token without labels, and the sum
    <y, change>.

    ``label_sum`` is that sum, rounded, if it is ``told``: see ``label_sums.py``. ``constant`` is
    the part of f that depends on the labels alone, rounded up: half of |y|^2 for ridge, 0 for
    logistic.
    """

    t: Iteration
    token: Ciphertext
    told: Bool
    label_sum: Number
    constant: Number

    @property
    def floats(self) -> int:
        return words(self.token) + 2


@payload(19, "s>itself c>itself")
@dataclass(frozen=True, slots=True)
class NextTour(Payload):
    """The signal by which the key holder starts a tour. While it is under way, no ciphertext is."""

    t: Iteration
