"""A client with masks: it wraps a client, which knows nothing of them.

What the client sends to the server for a sum leaves masked, with the keys of all clients. A client
that is restarted makes a new key: the server sends the new set to all, and the sync under way begins
anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from mtcd.core.errors import WireError
from mtcd.core.fixed_point import Words
from mtcd.privacy.masked.masking import (
    NO_GENERATION,
    NO_KEYS,
    Masking,
    is_of_tokens,
    signed_content,
    token_sync,
    upload_sync,
)
from mtcd.privacy.masked.pair_masks import PairMasks, new_private_key, public_key
from mtcd.privacy.masked.payloads import (
    MaskedToken,
    MaskedUpload,
    PublicKey,
    PublicKeys,
    SignedKey,
    SignedKeys,
    separated,
)
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.model import Theta
from mtcd.protocol.party import SERVER, Begin, Client, Identity, Message, Party
from mtcd.protocol.token import Token

Offered = tuple[int, int, Words]
"""A sync, a place in it, and the words of the upload before masks."""


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
