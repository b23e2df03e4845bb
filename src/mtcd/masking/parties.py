"""Parties with masks: each wraps a party, which knows nothing of them.

Before training, the server collects the public keys of all clients and sends them to all. Then what the client sends to
the server for a sum leaves masked, and the server passes on the sum alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mtcd.errors import WireError
from mtcd.masking.fixed_point import FixedPoint, Words
from mtcd.masking.pair_masks import KEY_WORDS, PairMasks, new_private_key, public_key
from mtcd.masking.payloads import (
    MaskedToken,
    MaskedUpload,
    PublicKey,
    PublicKeys,
    SignedKey,
    SignedKeys,
    joined,
    separated,
)
from mtcd.protocol.batches import Batches
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.model import Theta
from mtcd.protocol.party import SERVER, Begin, Client, Message, Party
from mtcd.protocol.token import Token

NO_KEYS: Words = np.zeros((0, KEY_WORDS), np.dtype("<i8"))


class Identity(Protocol):
    """Who a client is to the others: without signatures, a server could hand out keys of its own."""

    def sign(self, key: bytes) -> bytes:
        """The signature of this client's public key, with all that is needed to verify it."""
        ...

    def verify(self, client: int, key: bytes, signature: bytes) -> None:
        """Raise a WireError unless this client has signed the key for this run."""
        ...


@dataclass(frozen=True)
class UploadBatches:
    """The batches of a run, one for each sync, by whose number it is known. ``batch_of``: the batch for which a message
    requests an upload; None for other messages."""

    batches: Batches
    batch_of: Callable[[Any], int | None]

    @property
    def none_summed(self) -> NDArray[np.uint8]:
        """For each sample, that it was in no sum."""
        return np.zeros(self.batches.samples, np.uint8)

    def rows(self, batch: int) -> Any:
        """The samples of a batch."""
        rows = self.batches.rows(batch)
        return slice(None) if rows is None else rows

    def places(self, batch: int, width: int) -> Any:
        """Of the numbers of a batch and of the penalty, in those of all samples, which the penalty follows."""
        rows = self.batches.rows(batch)
        if rows is None:
            return slice(None)
        return np.append(np.add.outer(rows * width, np.arange(width)).ravel(), self.batches.samples * width)


@dataclass(frozen=True, eq=False)
class Masking:
    """What all parties know of the masked sums of a run.

    ``like``: an aggregate, whose kind and shape sums have. ``token_holders``: by iteration, the client from which each
    token returns to the server; None where clients upload representations instead. ``upload_batches``: the syncs, where
    masks are double.
    """

    clients: int
    numbers: FixedPoint
    like: Any
    token_holders: Callable[[int], Sequence[int]] | None = None
    upload_batches: UploadBatches | None = None

    @property
    def width(self) -> int:
        """The numbers of one sample."""
        return math.prod(self.like.shape[1:])

    @property
    def all_zeros(self) -> Words:
        """Of all samples, and of the penalty."""
        assert self.upload_batches is not None
        return np.zeros(self.upload_batches.batches.samples * self.width + 1, self.numbers.dtype)

    def encoded(self, array: Any, penalty: float, summands: int) -> Words:
        """An array or tensor and a penalty, as words; no words if they are too large: the training has diverged."""
        found = array if isinstance(array, np.ndarray) else array.detach().cpu().numpy()
        values = np.append(found.astype(np.float64), penalty)
        return self.numbers.encode(values, summands) if self.numbers.fits(values, summands) else self.no_words

    @property
    def no_words(self) -> Words:
        """In the place of numbers that do not fit. A federation refuses to send it."""
        return np.zeros(0, self.numbers.dtype)

    def decoded(self, words: Words) -> tuple[Any, float]:
        """The array, of the kind of an aggregate, and the penalty; NaN for no words."""
        size = math.prod(self.like.shape) + 1
        numbers = self.numbers.decode(words) if words.size else np.full(size, np.nan)
        array = numbers[:-1].reshape(tuple(self.like.shape))
        if not isinstance(self.like, np.ndarray):
            array = self.like.new_tensor(array)
        return array, float(numbers[-1])


class MaskingClient(Client):
    """Client ``number``. What reaches it before the keys of the others is processed when they arrive."""

    state_fields: ClassVar[tuple[str, ...]] = ("client", "private", "public", "uploads", "early")

    def __init__(self, number: int, client: Client, masking: Masking, opening: list[Message]) -> None:
        self.number, self.client, self.masking = number, client, masking
        self.private, self.public = new_private_key(), NO_KEYS
        self.uploads = 0
        """The uploads so far: the number of the next sync."""
        self.identity: Identity | None = None
        """Set in a federation, where keys of other clients come through the server."""
        self.early = opening
        """Before the keys are here: messages of this client to send, and messages to process."""

    @cached_property
    def masks(self) -> PairMasks:
        """From the keys of all clients."""
        return PairMasks(self.number, self.private, self.public)

    def receive(self, message: Message) -> Sequence[Message]:
        payload = message.payload
        if isinstance(payload, Begin):
            return [Message(self.number, SERVER, self._own_key())]
        if isinstance(payload, PublicKeys | SignedKeys):
            if len({key.tobytes() for key in payload.keys}) < len(payload.keys):
                raise WireError("keys", "are the same of two clients")
            self._verify(payload)
            self.public = payload.keys
            early, self.early = self.early, []
            return [out for one in early for out in self._process(one)]
        if not len(self.public):
            self.early.append(message)
            return []
        return self._process(message)

    def _own_key(self) -> PublicKey | SignedKey:
        key = public_key(self.private)
        if self.identity is None:
            return PublicKey(key)
        return SignedKey(key, np.frombuffer(self.identity.sign(key.tobytes()), np.uint8))

    def _verify(self, payload: PublicKeys | SignedKeys) -> None:
        """Refuse keys that their owners have not signed, and a set without this client's own key."""
        if self.identity is None:
            return
        if isinstance(payload, PublicKeys):
            raise WireError("keys", "are not signed by their owners")
        signatures = separated(payload.signatures, len(payload.keys))
        for k, (key, signature) in enumerate(zip(payload.keys, signatures, strict=True)):
            self.identity.verify(k, key.tobytes(), signature)
        if payload.keys[self.number].tobytes() != public_key(self.private).tobytes():
            raise WireError("keys", "do not contain the key of this client")

    def _process(self, message: Message) -> Sequence[Message]:
        from_here = message.sender == self.number and message.to == SERVER
        out = [message] if from_here else self.client.receive(message)
        for one in out:
            if one.to == SERVER:
                self._mask(one, message)
        return out

    def _mask(self, message: Message, cause: Message) -> None:
        """Put masks on what the server sums; ``cause``: the message that this one answers."""
        payload, masking = message.payload, self.masking
        if isinstance(payload, Fresh):
            holders = range(masking.clients)
            words = masking.encoded(payload.representation, payload.penalty, masking.clients)
            message.payload = MaskedUpload(self.masks.masked(words, 2 * self.uploads, self.number, holders))
            self.uploads += 1
        elif isinstance(payload, Token):
            assert masking.token_holders is not None
            at = masking.token_holders(payload.t)
            words = masking.encoded(payload.aggregate, payload.sync_penalty, len(at))
            words = self.masks.masked(words, 2 * payload.t + 1, payload.index, at)  # no upload has an odd number
            message.payload = MaskedToken(payload.index, payload.t, words)

    def parameters(self) -> Theta:
        """theta_k."""
        return self.client.parameters()

    def stop_at_sync(self, t: int, past: Any) -> None:
        self.client.stop_at_sync(t, past)


class MaskingServer(Party):
    """The server. It holds back the first messages of the training until it has sent the keys."""

    state_fields: ClassVar[tuple[str, ...]] = ("server", "public", "opening", "arrived", "total")

    def __init__(self, server: Party, masking: Masking, opening: list[Message]) -> None:
        self.server, self.masking = server, masking
        self.begin(opening)

    def begin(self, opening: Sequence[Message]) -> None:
        """Begin a training with these messages, once all keys are here."""
        self.opening = list(opening)
        self.public: dict[int, Words | SignedKey] = {}
        """The keys of clients, as they sent them."""
        self.arrived: list[int] = []
        """The clients, or the tokens, whose words are in the total."""
        self.total: Words = self.masking.no_words

    def receive(self, message: Message) -> Sequence[Message]:
        payload, masking = message.payload, self.masking
        if isinstance(payload, PublicKey | SignedKey):
            return self._collect(message.sender, payload)
        if isinstance(payload, MaskedUpload):
            total = self._sum(message.sender, payload.words, masking.clients)
            return [] if total is None else self._pass_on(self._uploads(total))
        if isinstance(payload, MaskedToken):
            assert masking.token_holders is not None
            holders = masking.token_holders(payload.t)
            total = self._sum(payload.index, payload.words, len(holders))
            return [] if total is None else self._pass_on(self._tokens(total, payload.t, holders))
        return self.server.receive(message)

    def _collect(self, client: int, payload: PublicKey | SignedKey) -> Sequence[Message]:
        self.public[client] = payload if isinstance(payload, SignedKey) else payload.key
        clients = range(self.masking.clients)
        if len(self.public) < len(clients):
            return []
        given = [self.public[k] for k in clients]
        signed = [one for one in given if isinstance(one, SignedKey)]
        all_keys = np.stack([one.key if isinstance(one, SignedKey) else one for one in given])
        all_signed = len(signed) == len(given)
        keys = SignedKeys(all_keys, joined([one.signature for one in signed])) if all_signed else PublicKeys(all_keys)
        opening, self.opening = self.opening, []
        return [*(Message(SERVER, k, keys) for k in clients), *opening]

    def _sum(self, place: int, words: Words, places: int) -> Words | None:
        """Add to the total. Returns it once all have arrived, and starts anew."""
        self._add(place, words)
        if len(self.arrived) < places:
            return None
        self.arrived = []
        return self.total

    def _add(self, place: int, words: Words) -> None:
        assert place not in self.arrived
        fit = words.size and (self.total.size or not self.arrived)
        self.total = (self.total + words if self.arrived else words) if fit else self.masking.no_words
        self.arrived.append(place)

    # The server below sums what it receives: it gets the total in the first place, and zeros in all others.

    def _uploads(self, total: Words) -> list[Message]:
        found, penalty = self.masking.decoded(total)
        nothing = Fresh(0 * found, 0.0)
        return [Message(k, SERVER, nothing if k else Fresh(found, penalty)) for k in range(self.masking.clients)]

    def _tokens(self, total: Words, t: int, holders: Sequence[int]) -> list[Message]:
        found, penalty = self.masking.decoded(total)
        first = Token(0, t, 0, found, 0.0, penalty)
        others = [Token(index, t, 0, 0 * found, 0.0) for index in range(1, len(holders))]
        return [Message(k, SERVER, token) for k, token in zip(holders, [first, *others], strict=True)]

    def _pass_on(self, messages: list[Message]) -> Sequence[Message]:
        return [out for message in messages for out in self.server.receive(message)]

    def last_sync(self) -> tuple[int, int] | None:
        return self.server.last_sync()
