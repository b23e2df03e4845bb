"""Parties with masks: each wraps a party, which knows nothing of them.

Before training, the server collects the public keys of all clients and sends them to all. Then what
the client sends to the server for a sum leaves masked, and the server passes on the sum alone. A
client that is restarted makes a new key: the server sends the new set to all, and the sync under
way begins anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import WireError
from mtcd.core.fixed_point import FixedPoint, Words
from mtcd.privacy.masked.pair_masks import I8, KEY_WORDS, PairMasks, new_private_key, public_key
from mtcd.privacy.masked.payloads import (
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
from mtcd.protocol.party import SERVER, Begin, Client, Identity, Message, Party
from mtcd.protocol.token import Token

NO_KEYS: Words = np.zeros((0, KEY_WORDS), I8)
NO_GENERATION = -1
Offered = tuple[int, int, Words]
"""A sync, a place in it, and the words of the upload before masks."""


def upload_sync(number: int) -> int:
    """The number that masks have for a sync of uploads."""
    return 2 * number


def token_sync(t: int) -> int:
    """The number that masks have for a sync of tokens."""
    return 2 * t + 1


def is_of_tokens(sync: int) -> bool:
    """Whether a number is of a sync of tokens."""
    return sync % 2 == 1


def signed_content(key: Words, uploads: int) -> bytes:
    """What a client signs: its public key, and the number of its uploads."""
    return key.tobytes() + uploads.to_bytes(8, "big")


@dataclass(frozen=True)
class UploadBatches:
    """The batches of a run, one for each sync, by whose number it is known. ``batch_of``: the batch
    for which a message requests an upload; None for other messages."""

    batches: Batches
    batch_of: Callable[[Any], int | None]

    @property
    def none_summed(self) -> NDArray[np.uint8]:
        """For each sample, that it was in no sum."""
        return np.zeros(self.batches.samples, np.uint8)

    def rows(self, batch: int) -> Any:
        """The samples of a batch."""
        rows = self.batches.rows(batch)
        # The order of numbers in an upload: sample by sample, the penalty at the end.
        if rows is None:
            return slice(None)
        return rows

    def places(self, batch: int, width: int) -> Any:
        """Of the numbers of a batch and of the penalty, in those of all samples, which the penalty
        follows."""
        rows = self.batches.rows(batch)
        if rows is None:
            return slice(None)
        return np.append(
            np.add.outer(rows * width, np.arange(width)).ravel(), self.batches.samples * width
        )


@dataclass(frozen=True, eq=False)
class Masking:
    """What all parties know of the masked sums of a run.

    ``like``: an aggregate, whose kind and shape sums have. ``token_holders``: by iteration, the
    client from which each token returns to the server; None where clients upload representations
    instead. ``upload_batches``: the syncs, where masks are double.
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
        """An array or tensor and a penalty, as words; no words if they are too large: the training
        has diverged."""
        # aggregates of split networks are tensors
        if not isinstance(array, np.ndarray):
            array = array.detach().cpu().numpy()

        # Rounded once, here: sums of integers are exact, whatever their order.
        values = np.append(array.astype(np.float64), penalty)
        if not self.numbers.fits(values, summands):
            return self.no_words
        return self.numbers.encode(values, summands)

    @property
    def no_words(self) -> Words:
        """In the place of numbers that do not fit. A federation refuses to send it."""
        return np.zeros(0, self.numbers.dtype)

    def decoded(self, words: Words) -> tuple[Any, float]:
        """The array, of the kind of an aggregate, and the penalty; NaN for no words."""
        if words.size:
            numbers = self.numbers.decode(words)
        else:
            numbers = np.full(math.prod(self.like.shape) + 1, np.nan)

        # NaN, and not an error: a diverged training is reported as one.
        array = numbers[:-1].reshape(tuple(self.like.shape))
        # of the device and type of the aggregate
        if not isinstance(self.like, np.ndarray):
            array = self.like.new_tensor(array)
        return array, float(numbers[-1])


class MaskingClient(Client):
    """Client ``number``. What reaches it before the keys of the others is processed when they
    arrive.

    **No mask is used for two different uploads.** An upload is masked with the keys of one
    generation, for one sync; it is kept, and if the keys change it is sent again with masks of the
    new ones. A journal may be from an earlier moment than the process before, which may have used
    masks since then: so every process makes a new key (``restarted``), and with it new masks for
    all.
    """

    state_fields: ClassVar[tuple[str, ...]] = (
        *("client", "private", "public", "generation", "uploads", "early"),
        *("answered", "replaced", "previous", "latest"),
    )

    def __init__(
        self, number: int, client: Client, masking: Masking, opening: list[Message]
    ) -> None:
        self.number, self.client, self.masking = number, client, masking
        self.private, self.public = new_private_key(), NO_KEYS
        self.generation = NO_GENERATION
        """Of the public keys; those of an earlier one are not used again."""
        self.uploads = 0
        """The uploads so far: the number of the next sync."""
        self.identity: Identity | None = None
        """Set in a federation, where keys of other clients come through the server."""
        self.early = opening
        """Before the keys are here: messages of this client to send, and messages to process."""
        self.answered = False
        """Whether the server was given a key."""
        self.replaced = NO_KEYS
        """The public keys of earlier processes of this client."""
        self.previous = NO_KEYS
        """The last set of public keys, also where a new one is awaited."""
        self.latest: list[Offered] = []
        """The uploads of the latest sync, before their masks."""

    @property
    def wrapped(self) -> Party:
        return self.client

    def identify(self, identity: Identity) -> None:
        self.identity = identity

    @cached_property
    def masks(self) -> PairMasks:
        """From the keys of all clients."""
        return PairMasks(self.number, self.private, self.public, self.generation)

    def receive(self, message: Message) -> Sequence[Message]:
        payload = message.payload
        if isinstance(payload, Begin):
            self.answered = True
            return [Message(self.number, SERVER, self._own_key())]
        if isinstance(payload, PublicKeys | SignedKeys):
            return self._use_keys(payload)
        if not len(self.public):
            # No generation of keys, so no masks: it waits.
            self.early.append(message)
            return []
        return self._process(message)

    def restarted(self) -> Sequence[Message]:
        # Remembered: a set of keys that was sent before the server had the new one is no attack.
        self.replaced = np.concatenate([self.replaced, public_key(self.private)[None]])
        # with the old key two different uploads could get the same masks: see the class
        self.private, self.public = new_private_key(), NO_KEYS
        if not self.answered:
            return []  # the server will ask for a key
        return [Message(self.number, SERVER, self._own_key())]

    # Keys

    def _own_key(self) -> PublicKey | SignedKey:
        key, uploads = public_key(self.private), self._uploads_known()
        if self.identity is None:
            return PublicKey(key, uploads)
        # The number of uploads is signed with the key: nobody can claim an older journal for this
        # client.
        signature = self.identity.sign(signed_content(key, uploads))
        return SignedKey(key, uploads, np.frombuffer(signature, np.uint8))

    def _use_keys(self, payload: PublicKeys | SignedKeys) -> Sequence[Message]:
        """Use a new set of keys: send again what the server asks for, and process what has waited
        for them."""
        if payload.generation <= self.generation:
            return []  # a later set has overtaken it

        # with the key of another client, the masks of a pair would be known to a third one
        if len({key.tobytes() for key in payload.keys}) < len(payload.keys):
            raise WireError("keys", "are the same of two clients")
        self._verify(payload)

        own = payload.keys[self.number].tobytes()
        if own != public_key(self.private).tobytes():
            if own in {key.tobytes() for key in self.replaced}:
                return []  # sent before the server had the key of this process
            raise WireError("keys", "do not contain the key of this client")
        self._check_uploads(payload)

        self.public = self.previous = payload.keys
        self.generation = payload.generation
        # Made from the old keys.
        self._forget_masks()
        early, self.early = self.early, []

        # uploads of the sync under way come first: the server waits for them
        again = self._again(payload.again)
        return [*again, *(out for one in early for out in self._process(one))]

    def _verify(self, payload: PublicKeys | SignedKeys) -> None:
        """Refuse keys that their owners have not signed."""
        if self.identity is None:
            return
        if isinstance(payload, PublicKeys):
            raise WireError("keys", "are not signed by their owners")
        signatures = separated(payload.signatures, len(payload.keys))
        owned = zip(payload.keys, payload.uploads, signatures, strict=True)
        for k, (key, uploads, signature) in enumerate(owned):
            self.identity.verify(k, signed_content(key, int(uploads)), signature)

    def _check_uploads(self, payload: PublicKeys | SignedKeys) -> None:
        """Refuse the new key of a client whose journal lacks uploads that it has made.

        It would make them again, perhaps with other numbers: two sums that differ by what one
        client has changed.
        """
        # The first set: there is nothing to compare with.
        if not len(self.previous):
            return
        for k, key in enumerate(payload.keys):
            # a process that goes on has its key still, and knows its uploads
            is_new = key.tobytes() != self.previous[k].tobytes()
            if is_new and k != self.number and payload.uploads[k] < self._fewest_uploads(k):
                raise WireError(
                    "keys",
                    f"hold one of client {k} with {payload.uploads[k]} uploads, but it has made "
                    f"{self._fewest_uploads(k)} or more: its journal is from an earlier moment",
                )

    def _uploads_known(self) -> int:
        """As many uploads as the journal of this client has."""
        return self.uploads

    def _fewest_uploads(self, client: int) -> int:
        """The uploads that another client must have made. It may not have made the latest that this
        one has."""
        return self.uploads - 1

    def _forget_masks(self) -> None:
        self.__dict__.pop("masks", None)

    def _again(self, sync: int) -> list[Message]:
        """What was uploaded for this sync, or a later one, with masks of the present keys."""
        return [self._masked(one) for one in self.latest if one[0] >= sync]

    # Uploads

    def _process(self, message: Message) -> Sequence[Message]:
        if message.sender == self.number and message.to == SERVER:
            out: Sequence[Message] = [message]  # a first message of the training, held back
        else:
            out = self.client.receive(message)

        # What goes to the server is what is summed, or a signal; tokens to other clients stay
        # readable.
        for one in out:
            if one.to == SERVER:
                self._mask(one, message)
        return out

    def _mask(self, message: Message, cause: Message) -> None:
        """Put masks on what the server sums; ``cause``: the message that this one answers."""
        payload, masking = message.payload, self.masking
        if isinstance(payload, Fresh):
            # The summands are counted in: their sum must fit as well.
            words = masking.encoded(payload.representation, payload.penalty, masking.clients)
            message.payload = self._offer((upload_sync(self.uploads), self.number, words))
            self.uploads += 1
        elif isinstance(payload, Token):
            assert masking.token_holders is not None
            holders = masking.token_holders(payload.t)
            # The holders of all tokens are known to all: where a token returns to the server is a
            # function of the seed.
            words = masking.encoded(payload.aggregate, payload.sync_penalty, len(holders))
            message.payload = self._offer((token_sync(payload.t), payload.index, words))

    def _offer(self, offered: Offered) -> MaskedUpload | MaskedToken:
        """Keep an upload and mask it. There is one for each place of a sync, and none for an
        earlier sync."""
        sync, place, _ = offered
        latest = -1
        if self.latest:
            latest = self.latest[0][0]

        # two uploads with the same masks would tell their difference
        if sync < latest or any(one[:2] == (sync, place) for one in self.latest):
            raise WireError("sync", "is one for which this client has made an upload before")

        if sync == latest:
            self.latest = [*self.latest, offered]
        else:
            self.latest = [offered]
        return self._masked_payload(offered)

    def _masked(self, offered: Offered) -> Message:
        payload = self._masked_payload(offered)
        return Message(self.number, SERVER, payload, payload.floats)

    def _masked_payload(self, offered: Offered) -> MaskedUpload | MaskedToken:
        sync, place, words = offered
        if is_of_tokens(sync):
            assert self.masking.token_holders is not None
            t = sync // 2
            words = self.masks.masked(words, sync, place, self.masking.token_holders(t))
            return MaskedToken(place, t, self.generation, words)
        words = self.masks.masked(words, sync, place, range(self.masking.clients))
        return MaskedUpload(sync // 2, self.generation, words)

    def parameters(self) -> Theta:
        """The parameters theta_k, of the client that is wrapped."""
        return self.client.parameters()

    def stop_at_sync(self, t: int, slots: Mapping[str, Any]) -> None:
        self.client.stop_at_sync(t, slots)


class MaskingServer(Party):
    """The server. It holds back the first messages of the training until it has sent the keys."""

    state_fields: ClassVar[tuple[str, ...]] = (
        *("server", "public", "opening", "arrived", "total"),
        *("generation", "sync"),
    )

    def __init__(self, server: Party, masking: Masking, opening: list[Message]) -> None:
        self.server, self.masking = server, masking
        self.begin(opening)

    @property
    def wrapped(self) -> Party:
        return self.server

    def begin(self, opening: Sequence[Message]) -> None:
        """Begin a training with these messages, once all keys are here."""
        self.opening = list(opening)
        self.public: dict[int, PublicKey | SignedKey] = {}
        """The keys of clients, as they sent them."""
        self.generation = NO_GENERATION
        """Of the keys that all clients have; uploads with masks of others are left out."""
        self.sync = 0
        """Uploads for earlier syncs are left out."""
        self.arrived: list[int] = []
        """The clients, or the tokens, whose words are in the total."""
        self.total: Words = self.masking.no_words

    def receive(self, message: Message) -> Sequence[Message]:
        payload, masking = message.payload, self.masking
        if isinstance(payload, PublicKey | SignedKey):
            return self._collect(message.sender, payload)
        if isinstance(payload, MaskedUpload):
            sync = upload_sync(payload.sync)
            total = self._sum(
                payload.generation, sync, message.sender, payload.words, masking.clients
            )
            if total is None:
                return []
            return self._pass_on(self._uploads(total))
        if isinstance(payload, MaskedToken):
            assert masking.token_holders is not None
            holders, sync = masking.token_holders(payload.t), token_sync(payload.t)
            total = self._sum(payload.generation, sync, payload.index, payload.words, len(holders))
            if total is None:
                return []
            return self._pass_on(self._tokens(total, payload.t, holders))
        return self.server.receive(message)

    def _collect(self, client: int, payload: PublicKey | SignedKey) -> Sequence[Message]:
        """Note a key. Once all are here, and whenever one of them has changed, send all to all
        clients."""
        known = self.public.get(client)
        # The latest key counts: an earlier process of the client cannot mask any more.
        self.public[client] = payload
        if len(self.public) < self.masking.clients:
            return []

        # a client may send its key twice; a new generation would discard uploads for nothing
        is_same = known is not None and known.key.tobytes() == payload.key.tobytes()
        if is_same and self.generation != NO_GENERATION:
            return []
        return self._send_keys()

    def _send_keys(self) -> Sequence[Message]:
        """Begin a generation of keys, and the sync under way anew: masks of two generations do not
        cancel."""
        self.generation += 1
        self.arrived, self.total = [], self.masking.no_words

        given = [self.public[k] for k in range(self.masking.clients)]
        keys = np.stack([one.key for one in given])
        # By client, in the same order in every set: clients sign and derive from it.
        uploads = np.array([one.uploads for one in given], I8)
        signed = [one.signature for one in given if isinstance(one, SignedKey)]
        payload: PublicKeys | SignedKeys
        if len(signed) == len(given):
            payload = SignedKeys(keys, uploads, self.generation, self.sync, joined(signed))
        else:
            payload = PublicKeys(keys, uploads, self.generation, self.sync)
        # First messages of the training go out after the first set of keys, and only then.
        opening, self.opening = self.opening, []
        return [*(Message(SERVER, k, payload) for k in range(len(given))), *opening]

    def _sum(
        self, generation: int, sync: int, place: int, words: Words, places: int
    ) -> Words | None:
        """Add to the total. Returns it once all have arrived, and starts anew."""
        # masks of another set of keys would not cancel
        if generation != self.generation or sync < self.sync:
            return None  # it will be, or was, sent again with other masks
        # A sync ends before the next begins: the server below asks for the next uploads.
        assert sync == self.sync or not self.arrived
        self.sync = sync
        self._add(place, words)
        if len(self.arrived) < places:
            return None
        self.arrived = []
        self.sync += 1
        return self.total

    def _add(self, place: int, words: Words) -> None:
        assert place not in self.arrived
        if not self.arrived:
            # The first array is kept, and a new one made when another is added: payloads are not
            # written to.
            self.total = words
        elif self.total.size and words.size:
            self.total = self.total + words
        else:
            # numbers of one client did not fit: there is no sum, and the training has diverged
            self.total = self.masking.no_words
        self.arrived.append(place)

    # The server below sums what it receives: it gets the total in the first place, and zeros in all
    # others.

    def _uploads(self, total: Words) -> list[Message]:
        found, penalty = self.masking.decoded(total)
        total_upload, nothing = Fresh(found, penalty), Fresh(0 * found, 0.0)
        others = [Message(k, SERVER, nothing) for k in range(1, self.masking.clients)]
        return [Message(0, SERVER, total_upload), *others]

    def _tokens(self, total: Words, t: int, holders: Sequence[int]) -> list[Message]:
        found, penalty = self.masking.decoded(total)
        first = Token(0, t, 0, found, 0.0, penalty)
        others = [Token(index, t, 0, 0 * found, 0.0) for index in range(1, len(holders))]
        return [
            Message(k, SERVER, token) for k, token in zip(holders, [first, *others], strict=True)
        ]

    def _pass_on(self, messages: list[Message]) -> Sequence[Message]:
        return [out for message in messages for out in self.server.receive(message)]

    def last_sync(self) -> tuple[int, int] | None:
        return self.server.last_sync()
