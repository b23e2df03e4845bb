"""The payloads of masked aggregation: public keys before training, then masked uploads and
tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import WireError
from mtcd.core.fixed_point import NARROW, WIDE, FixedPoint, Words
from mtcd.privacy.masked.double_masks import SEED_WORDS, Opened
from mtcd.privacy.masked.pair_masks import I8, KEY_WORDS
from mtcd.protocol.codec.arrays import array_bytes
from mtcd.protocol.codec.fields import ClientSet, Field, Octets
from mtcd.protocol.codec.limits import F4, Bounds, Shape
from mtcd.protocol.codec.payloads import Count, Iteration, Payload, TokenIndex, payload
from mtcd.protocol.codec.reading import NOT_FINITE, Chunks, Reader, description, put_numbers
from mtcd.protocol.party import Begin


def fixed_point_of(bounds: Bounds) -> FixedPoint:
    """In as many bytes as plain numbers have in this run."""
    if bounds.dtype == F4:
        return NARROW
    return WIDE


class WordsField(Field):
    """Integers in an array whose shape follows from the bounds."""

    def __init__(
        self, shape: Callable[[Bounds], Shape], dtype: Callable[[Bounds], np.dtype[Any]]
    ) -> None:
        self.shape, self.dtype = shape, dtype

    def write(self, value: Any, chunks: Chunks) -> None:
        # A federation refuses to send it: a party that diverges must not look like one that is
        # silent.
        if not value.size:  # the numbers did not fit
            raise WireError(self.name, NOT_FINITE)
        chunks.append(description(value.dtype.itemsize, value.shape))
        put_numbers(self.name, value, chunks)

    def read(self, frame: Reader) -> Any:
        return frame.array(self.name, self.shape(frame.bounds), self.dtype(frame.bounds))

    def most(self, bounds: Bounds) -> int:
        return array_bytes(self.shape(bounds), self.dtype(bounds).itemsize)


def _summed(bounds: Bounds) -> Shape:
    """The numbers of an aggregate, and the penalty behind them."""
    return (math.prod(bounds.shape) + 1,)


MaskedWords = Annotated[Words, WordsField(_summed, lambda bounds: fixed_point_of(bounds).dtype)]
PublicKeyWords = Annotated[Words, WordsField(lambda bounds: (KEY_WORDS,), lambda bounds: I8)]
AllPublicKeys = Annotated[
    Words, WordsField(lambda bounds: (bounds.clients, KEY_WORDS), lambda bounds: I8)
]
Uploads = Annotated[Words, WordsField(lambda bounds: (bounds.clients,), lambda bounds: I8)]
Seeds = Annotated[Words, WordsField(lambda bounds: (bounds.clients, SEED_WORDS), lambda bounds: I8)]
Clients = Annotated[tuple[int, ...], ClientSet(tuple, "clients")]
LONGEST_SIGNATURE, SIZE_BYTES = 4096, 4
"""Bytes of a signature, with the certificate that it is checked by, and of its size."""
Signature = Annotated[NDArray[np.uint8], Octets(LONGEST_SIGNATURE)]
AllSignatures = Annotated[
    NDArray[np.uint8], Octets(lambda bounds: bounds.clients * (LONGEST_SIGNATURE + SIZE_BYTES))
]


def joined(signatures: Sequence[NDArray[np.uint8]]) -> NDArray[np.uint8]:
    """All signatures in one array."""
    parts = []
    for one in signatures:
        # Each after its size: signatures differ in length, as certificates do.
        parts += [one.size.to_bytes(SIZE_BYTES, "little"), one.tobytes()]
    return np.frombuffer(b"".join(parts), np.uint8)


def separated(signatures: NDArray[np.uint8], clients: int) -> list[bytes]:
    """The inverse of ``joined``; what is missing is empty."""
    content, found = signatures.tobytes(), []
    for _ in range(clients):
        size = int.from_bytes(content[:SIZE_BYTES], "little")
        found.append(content[SIZE_BYTES : SIZE_BYTES + size])
        content = content[SIZE_BYTES + size :]
    return found


class MaskedPayload(Payload):
    """An upload of ``words``: numbers and a penalty behind them, with masks."""

    __slots__ = ()
    words: MaskedWords

    @property
    def floats(self) -> int:
        # The penalty is a header number, as in a plain upload. Nothing is sent of numbers that do
        # not fit, and then there are no words.
        return max(0, int(self.words.size) - 1)


@payload(20, "c>s")
@dataclass(frozen=True, slots=True)
class MaskedUpload(MaskedPayload):
    """A client's representation on the requested batch and its penalty, in one array with masks.

    ``sync``: the number of the sum that it is for. ``generation``: of the keys that its masks
    follow from.
    """

    sync: Count
    generation: Count
    words: MaskedWords


@payload(21, "c>s")
@dataclass(frozen=True, slots=True)
class MaskedToken(MaskedPayload):
    """Token ``index`` of iteration ``t`` after its last hop: its aggregate and its change of the
    penalty, with masks.

    The token's own penalty is not sent: the server does not use it. ``generation``: see
    ``MaskedUpload``.
    """

    index: TokenIndex
    t: Iteration
    generation: Count
    words: MaskedWords


@payload(22, "c>s")
@dataclass(frozen=True, slots=True)
class PublicKey(Payload):
    """The public key of a client's process. ``uploads``: what the client knows of its masked
    uploads."""

    depends_on_tokens = False

    key: PublicKeyWords
    uploads: Count


@payload(23, "s>c")
@dataclass(frozen=True, slots=True)
class PublicKeys(Payload):
    """The public keys of all clients, in order, and the ``uploads`` that each gave with its key.

    A set that replaces another one has a larger ``generation``. Clients then send again what they
    have uploaded for the sync ``again``, with masks of the new keys.
    """

    depends_on_tokens = False

    keys: AllPublicKeys
    uploads: Uploads
    generation: Count
    again: Count


@payload(24, "c>s")
@dataclass(frozen=True, slots=True)
class SignedKey(Payload):
    """The public key of a client's process and its ``uploads``, signed by the client: in
    federations."""

    depends_on_tokens = False

    key: PublicKeyWords
    uploads: Count
    signature: Signature


@payload(25, "s>c")
@dataclass(frozen=True, slots=True)
class SignedKeys(Payload):
    """As ``PublicKeys``, with the signatures of all clients, each after its size."""

    depends_on_tokens = False

    keys: AllPublicKeys
    uploads: Uploads
    generation: Count
    again: Count
    signatures: AllSignatures


@payload(42, "c>s")
@dataclass(frozen=True, slots=True)
class DoubleMaskedUpload(MaskedPayload):
    """The change of a client's representation on batch ``t``, and of its penalty, with double
    masks.

    ``generation``: of the keys that its masks follow from.
    """

    depends_on_tokens = False

    t: Iteration
    generation: Count
    words: MaskedWords


@payload(43, "s>c")
@dataclass(frozen=True, slots=True)
class OpenMasks(Payload):
    """Uploads for batch ``t`` have ``arrived`` from these clients, of which those ``gone`` are down
    since.

    ``participants``: the clients of the next sync. ``included``: one more than the last batch for
    which the server has summed an upload of the receiver; 0 for none. ``generation``: of the keys
    of these uploads.
    """

    depends_on_tokens = False

    t: Iteration
    generation: Count
    arrived: Clients
    gone: Clients
    participants: Clients
    included: Count

    @property
    def floats(self) -> int:
        return len(self.arrived) + len(self.gone) + len(self.participants)


@payload(44, "c>s")
@dataclass(frozen=True, slots=True)
class OpenedMasks(Payload):
    """The seeds that a client opens for the sum over batch ``t``: see ``Opened``."""

    depends_on_tokens = False

    t: Iteration
    generation: Count
    theirs: Seeds
    mine: Seeds

    @property
    def floats(self) -> int:
        return int(self.theirs.size + self.mine.size)

    @property
    def opened(self) -> Opened:
        """What was opened, as the sum needs it."""
        return Opened(self.theirs, self.mine)


KEYS = frozenset({Begin, PublicKey, PublicKeys, SignedKey, SignedKeys})
"""The payloads of the exchange of keys."""
DOUBLE_MASKS = frozenset({DoubleMaskedUpload, OpenMasks, OpenedMasks})
"""The payloads of a sync with double masks."""
