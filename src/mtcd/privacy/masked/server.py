"""The server of masked sums: it wraps a server, which sees nothing but the sums.

Before training it collects the public keys of all clients and sends them to all. Then it adds up
what arrives with masks, and passes on the sum alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from mtcd.core.fixed_point import Words
from mtcd.privacy.masked.masking import NO_GENERATION, Masking, token_sync, upload_sync
from mtcd.privacy.masked.pair_masks import I8
from mtcd.privacy.masked.payloads import (
    MaskedToken,
    MaskedUpload,
    PublicKey,
    PublicKeys,
    SignedKey,
    SignedKeys,
    joined,
)
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Message, Party
from mtcd.protocol.token import Token


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
