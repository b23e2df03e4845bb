"""A client with double masks, and the protocol: the server sums without clients that are down, and
sees sums only.

What a client uploads is the *change* since its last upload that was summed: the server adds it to
the sum that it has, in which the representation of a client that is down stays as it was. So sums
over different clients do not differ by one's representation. A sync takes two exchanges: uploads;
then the server says whose have arrived, and the clients open masks for these (``double_masks.py``).

**Which clients.** The participants of a sync are the clients that were up at the one before; the
server announces them with the request to open masks. Until every sample has been summed once, it
waits for all clients: the first change of a sample is the representation itself. A sum takes
``fewest`` clients or more.

**Faults.** A client that is down before its upload is left out, and its pair masks are opened. If
one goes down after it, the others open the shares that they have with it of their own masks too. If
two do so, some seed is known to these two alone, and the server waits for one of them; if one does
so in a sync in which another is left out, or with the fewest clients, it waits for that one.

**A client that is restarted** makes a new key, and opens no masks of the one before: its journal
may not know what it has opened. Before the request to open masks, the sync begins anew with masks
of the new keys. After it, the others open the client's masks as those of one that is down; where
they cannot, the same uploads are sent once more, and summed over the same clients. So no two sums
differ by the upload of one client.

**A server that lies** gets no more than a sum either: a client opens masks once for each sync, with
one set of uploads and of clients that are gone, and refuses a first sum of a sample that leaves
anyone out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from mtcd.core.errors import WireError
from mtcd.core.fixed_point import Words
from mtcd.privacy.masked.client import MaskingClient
from mtcd.privacy.masked.double_masks import DoubleMasks
from mtcd.privacy.masked.masking import NO_GENERATION, NO_KEYS, Masking
from mtcd.privacy.masked.pair_masks import new_private_key
from mtcd.privacy.masked.payloads import (
    DoubleMaskedUpload,
    OpenedMasks,
    OpenMasks,
    PublicKeys,
    SignedKeys,
)
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Begin, Client, Message, send

Participants = tuple[int, ...]
Asked = tuple[int, Participants, Participants, Participants]
"""A sync, its participants, whose uploads had arrived, and which of them were gone."""


def fewest(clients: int) -> int:
    """The clients of the smallest sum: more than half of four or more, so at least three. In a sum
    of two, each would find the other's part."""
    return clients // 2 + 1


class DoubleMaskingClient(MaskingClient):
    """Client ``number`` of a sum with double masks: uploads changes, and opens masks when asked.

    Each of its checks keeps a promise to the other clients, whatever the server says: see above.
    """

    state_fields = (
        *("client", "private", "public", "generation", "early"),
        *("answered", "replaced", "previous"),
        *("known", "offered", "change", "included", "summed", "asked", "uploads_of"),
    )

    def __init__(
        self, number: int, client: Client, masking: Masking, opening: list[Message]
    ) -> None:
        super().__init__(number, client, masking, opening)
        assert masking.upload_batches is not None
        self.recovery, self.upload_batches = client.recovery, masking.upload_batches
        self._begin()

    def _begin(self) -> None:
        self.private, self.public, self.previous = new_private_key(), NO_KEYS, NO_KEYS
        self.generation = NO_GENERATION
        self._forget_masks()
        self.known: tuple[int, Participants] | None = None
        """The latest sync whose participants are known; None: all take part in the first, whatever
        its number."""
        self.offered: tuple[int, Words] | None = None
        """The last upload, unless the server has told whether it is in the sum: its sync, and all
        of its words."""
        self.change: tuple[int, Participants, Words] | None = None
        """The last upload before its masks: its sync, the participants, and the words that were
        sent."""
        self.included: Words = self.masking.all_zeros
        """The words of this client in the server's sums."""
        self.summed = self.upload_batches.none_summed
        """Whether each sample was in a sum over all clients."""
        self.asked: Asked | None = None
        """The last sync for which masks were opened."""
        self.uploads_of = [0] * self.masking.clients
        """By client, one more than the last sync for which this one has opened masks of its
        upload."""

    @cached_property
    def double_masks(self) -> DoubleMasks:
        """From the keys of all clients."""
        return DoubleMasks(self.number, self.private, self.public, self.generation)

    def _forget_masks(self) -> None:
        self.__dict__.pop("double_masks", None)

    # Before the keys only their exchange can be processed. Afterwards a request may overtake the
    # answer to the last one: it waits until the sync that it belongs to is known.
    def is_early(self, payload: Any) -> bool:
        if not len(self.public):
            return not isinstance(payload, Begin | PublicKeys | SignedKeys)
        if isinstance(payload, OpenMasks):
            return payload.generation > self.generation or self._leaves_out_first(payload)
        batch = self.upload_batches.batch_of(payload)
        return batch is not None and self.known is not None and batch > self.known[0]

    def receive(self, message: Message) -> Sequence[Message]:
        payload = message.payload
        if isinstance(payload, OpenMasks):
            return self._open(payload)
        if isinstance(payload, Begin):
            # In a federation a second beginning could make this client open masks twice, for two
            # sets of uploads.
            if self.generation != NO_GENERATION and self.identity is not None:
                raise WireError("keys", "were exchanged before")
            self._begin()
        return super().receive(message)

    def _use_keys(self, payload: PublicKeys | SignedKeys) -> Sequence[Message]:
        before = self.generation
        sent = super()._use_keys(payload)
        if self.generation != before and self.asked is not None:
            # The seeds of the new keys are others: those of clients that are gone are not open yet.
            self.asked = (*self.asked[:3], ())
        return sent

    def _uploads_known(self) -> int:
        if self.change is None:
            return 0
        return self.change[0] + 1

    def _fewest_uploads(self, client: int) -> int:
        return self.uploads_of[client]

    def _again(self, sync: int) -> list[Message]:
        if self.change is None or self.change[0] < sync:
            return []
        payload = self._masked_change()
        return [send(self.number, SERVER, payload)]

    def _process(self, message: Message) -> Sequence[Message]:
        batch = self.upload_batches.batch_of(message.payload)
        if batch is not None and not self._takes_part(batch):
            return []
        return super()._process(message)

    def _takes_part(self, batch: int) -> bool:
        """Whether to upload for a batch; not if another sync has begun."""
        if self.known is None:
            return True
        latest, participants = self.known
        return (
            batch == latest
            and self.number in participants
            and (self.offered is None or self.offered[0] < batch)
        )

    def _mask(self, message: Message, cause: Message) -> None:
        payload, masking = message.payload, self.masking
        # Signals to the server are not summed, and stay as they are.
        if not isinstance(payload, Fresh):
            return
        # without a request: before the first round
        batch = self.upload_batches.batch_of(cause.payload) or 0
        # All clients take part in the first sync: no sum has anything of theirs yet.
        _, participants = self.known = self.known or (batch, tuple(range(masking.clients)))
        words = masking.encoded(payload.representation, payload.penalty, masking.clients)
        # Kept until the server says whether it was summed: the next change starts from what was.
        self.offered = batch, words
        change = words
        # No words stand for numbers that did not fit: the sum has none then.
        if words.size:
            change = words - self.included[self._places(batch)]
        self.change = batch, participants, change
        message.payload = self._masked_change()

    def _masked_change(self) -> DoubleMaskedUpload:
        assert self.change is not None
        batch, participants, words = self.change
        return DoubleMaskedUpload(
            batch, self.generation, self.double_masks.masked(words, batch, participants)
        )

    def _places(self, batch: int) -> Any:
        return self.upload_batches.places(batch, self.masking.width)

    def _open(self, payload: OpenMasks) -> Sequence[Message]:
        """Note what the server has summed and who takes part next, and open masks if it has this
        client's upload."""
        asked = self.asked
        # The participants of the sync are those of this client's own upload, whatever the request
        # says now.
        if self.known is not None and self.known[0] == payload.t:
            asked = payload.t, self.known[1], payload.arrived, ()

        # no masks of earlier keys are opened: this process may not know what it has opened of them
        is_current = payload.generation == self.generation
        opens = (
            asked is not None
            and asked[0] == payload.t
            and self.number in payload.arrived
            and is_current
        )
        if asked is not None and opens:
            self._check(payload, asked)
            # links may deliver the first request after the second
            asked = *asked[:3], payload.gone or asked[3]
        # Checked also where no masks are opened: it decides who is in the next sum.
        self._check_next(payload)
        self._settle(payload)
        self.asked = asked
        # A request that comes late must not set this client back.
        if self.known is None or self.known[0] <= payload.t:
            self.known = payload.t + 1, payload.participants
        if asked is None or not opens:
            return []
        # Noted before the seeds leave: once they are known, the server has a sum with these
        # uploads.
        for k in payload.arrived:
            self.uploads_of[k] = max(self.uploads_of[k], payload.t + 1)

        opened = self.double_masks.opened(*asked)
        masks = OpenedMasks(payload.t, self.generation, opened.theirs, opened.mine)
        return [send(self.number, SERVER, masks)]

    def _settle(self, payload: OpenMasks) -> None:
        """Note whether the last upload is in the server's sums: the next change starts there."""
        if self.offered is None:
            return

        batch, words = self.offered
        # The server counts one more than the last batch that it has summed, so this upload is in
        # its sums.
        if batch + 1 == payload.included and words.size:
            self.included[self._places(batch)] = words
        if batch <= payload.t:
            self.offered = None

    def _check(self, payload: OpenMasks, asked: Asked) -> None:
        """Open masks for one set of uploads only, and for no small one; a server that lies must not
        get more."""
        _, participants, arrived, gone = asked
        # `gone` may be empty at first and given in a second request, but never another set: both
        # together would open one upload.
        remaining = set(arrived) - set(payload.gone)
        if payload.arrived != arrived or (gone and payload.gone and payload.gone != gone):
            raise WireError(
                "arrived", "is not the set for which this client has opened masks before"
            )
        if not set(arrived) <= set(participants) or self.number not in remaining:
            raise WireError("arrived", "is not a set of clients that take part")
        # In a smaller sum the others could find out the part of one.
        if len(remaining) < fewest(self.masking.clients):
            raise WireError("arrived", f"are fewer than {fewest(self.masking.clients)} clients")
        # Otherwise the change would count from an older upload, and the next sum would contain it
        # twice.
        if payload.included != payload.t + 1:
            raise WireError("included", "leaves out an upload that has arrived")

    def _check_next(self, payload: OpenMasks) -> None:
        """The first sum of a sample has all clients: without one, its next change would be its
        representation."""
        if len(set(payload.participants)) < fewest(self.masking.clients):
            raise WireError(
                "participants", f"are fewer than {fewest(self.masking.clients)} clients"
            )
        if self._leaves_out_first(payload):
            raise WireError("arrived", "are not all clients, at the first sum of a sample")
        if len(payload.arrived) == self.masking.clients:
            self.summed[self.upload_batches.rows(payload.t)] = 1

    def _leaves_out_first(self, payload: OpenMasks) -> bool:
        """Whether a sum has not all clients, though some of its samples were in no sum with all; or
        it came early."""
        everyone = len(set(payload.arrived)) == self.masking.clients
        return not everyone and not self.summed[self.upload_batches.rows(payload.t)].all()
