"""Parties with double masks: the server sums without clients that are down, and no upload is ever revealed.

What a client uploads is the *change* since its last upload that was summed: the server adds it to the sum that it has,
in which the representation of a client that is down stays as it was. So sums over different clients do not differ by
one's representation. A sync takes two exchanges: uploads; then the server says whose have arrived, and the clients open
masks for these (``double_masks.py``).

**Which clients.** The participants of a sync are the clients that were up at the one before; the server announces them
with the request to open masks. Until every sample has been summed once, it waits for all clients: the first change of a
sample is the representation itself. A sum takes ``fewest`` clients or more.

**Faults.** A client that is down before its upload is left out, and its pair masks are opened. If one goes down after
it, the others open the shares that they have with it of their own masks too. If two do so, some seed is known to these
two alone, and the server waits for one of them; if one does so in a sync in which another is left out, or with the
fewest clients, it waits for that one.

**A server that lies** gets no more than a sum either: a client opens masks once for each sync, with one set of uploads
and of clients that are gone, and refuses a first sum of a sample that leaves anyone out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from mtcd.errors import WireError
from mtcd.masking.double_masks import DoubleMasks, unmasked
from mtcd.masking.fixed_point import Words
from mtcd.masking.pair_masks import new_private_key
from mtcd.masking.parties import NO_KEYS, Masking, MaskingClient, MaskingServer
from mtcd.masking.payloads import (
    DoubleMaskedUpload,
    OpenedMasks,
    OpenMasks,
    PublicKey,
    PublicKeys,
    SignedKey,
    SignedKeys,
)
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import SERVER, Begin, Client, Message, Party, send

Participants = tuple[int, ...]
Asked = tuple[int, Participants, Participants, Participants]
"""A sync, its participants, whose uploads had arrived, and which of them were gone."""


def fewest(clients: int) -> int:
    """The clients of the smallest sum: more than half of four or more, so at least three. In a sum of two, each would
    find the other's part."""
    return clients // 2 + 1


class DoubleMaskingClient(MaskingClient):
    """Client ``number``."""

    state_fields = ("client", "private", "public", "early", "known", "offered", "included", "summed", "asked")

    def __init__(self, number: int, client: Client, masking: Masking, opening: list[Message]) -> None:
        super().__init__(number, client, masking, opening)
        assert masking.numbered is not None
        self.recovery, self.numbered = client.recovery, masking.numbered
        self._begin()

    def _begin(self) -> None:
        self.private, self.public = new_private_key(), NO_KEYS
        self.__dict__.pop("double_masks", None)
        self.known: tuple[int, Participants] | None = None
        """The latest sync whose participants are known; None: all take part in the first, whatever its number."""
        self.offered: tuple[int, Words] | None = None
        """The last upload, unless the server has told whether it is in the sum: its sync, and all of its words."""
        self.included: Words = self.masking.all_zeros
        """The words of this client in the server's sums."""
        self.summed = self.numbered.none_summed
        """Whether each sample was in a sum over all clients."""
        self.asked: Asked | None = None
        """The last sync for which masks were opened."""

    @cached_property
    def double_masks(self) -> DoubleMasks:
        """From the keys of all clients."""
        return DoubleMasks(self.number, self.private, self.public)

    def is_early(self, payload: Any) -> bool:
        if not len(self.public):
            return not isinstance(payload, Begin | PublicKeys | SignedKeys)
        if isinstance(payload, OpenMasks):
            return self._leaves_out_first(payload)
        batch = self.numbered.batch_of(payload)
        return batch is not None and self.known is not None and batch > self.known[0]

    def receive(self, message: Message) -> Sequence[Message]:
        payload = message.payload
        if isinstance(payload, OpenMasks):
            return self._open(payload)
        if isinstance(payload, Begin | PublicKeys | SignedKeys) and len(self.public) and self.identity is not None:
            raise WireError("keys", "were exchanged before")
        if isinstance(payload, Begin):
            self._begin()
        return super().receive(message)

    def _process(self, message: Message) -> Sequence[Message]:
        batch = self.numbered.batch_of(message.payload)
        if batch is not None and not self._takes_part(batch):
            return []
        return super()._process(message)

    def _takes_part(self, batch: int) -> bool:
        """Whether to upload for a batch; not if another sync has begun."""
        if self.known is None:
            return True
        latest, participants = self.known
        return batch == latest and self.number in participants and (self.offered is None or self.offered[0] < batch)

    def _mask(self, message: Message, cause: Message) -> None:
        payload, masking = message.payload, self.masking
        if not isinstance(payload, Fresh):
            return
        batch = self.numbered.batch_of(cause.payload) or 0  # without a request: before the first round
        _, participants = self.known = self.known or (batch, tuple(range(masking.clients)))
        words = masking.encoded(payload.representation, payload.penalty, masking.clients)
        self.offered = batch, words
        change = words - self.included[self._places(batch)] if words.size else words
        message.payload = DoubleMaskedUpload(batch, self.double_masks.masked(change, batch, participants))

    def _places(self, batch: int) -> Any:
        return self.numbered.places(batch, self.masking.width)

    def _open(self, payload: OpenMasks) -> Sequence[Message]:
        """Note what the server has summed and who takes part next, and open masks if it has this client's upload."""
        asked = self.asked
        if self.known is not None and self.known[0] == payload.t:
            asked = payload.t, self.known[1], payload.arrived, ()
        opens = asked is not None and asked[0] == payload.t and self.number in payload.arrived
        if asked is not None and opens:
            self._check(payload, asked)
            asked = *asked[:3], payload.gone or asked[3]  # links may deliver the first request after the second
        self._check_next(payload)
        self._settle(payload)
        self.asked = asked
        if self.known is None or self.known[0] <= payload.t:
            self.known = payload.t + 1, payload.participants
        if asked is None or not opens:
            return []
        opened = self.double_masks.opened(*asked)
        return [send(self.number, SERVER, OpenedMasks(payload.t, opened.theirs, opened.mine))]

    def _settle(self, payload: OpenMasks) -> None:
        if self.offered is not None:
            batch, words = self.offered
            if batch + 1 == payload.included and words.size:
                self.included[self._places(batch)] = words
            if batch <= payload.t:
                self.offered = None

    def _check(self, payload: OpenMasks, asked: Asked) -> None:
        """Open masks for one set of uploads only, and for no small one; a server that lies must not get more."""
        _, participants, arrived, gone = asked
        remaining = set(arrived) - set(payload.gone)
        if payload.arrived != arrived or (gone and payload.gone and payload.gone != gone):
            raise WireError("arrived", "is not the set for which this client has opened masks before")
        if not set(arrived) <= set(participants) or self.number not in remaining:
            raise WireError("arrived", "is not a set of clients that take part")
        if len(remaining) < fewest(self.masking.clients):
            raise WireError("arrived", f"are fewer than {fewest(self.masking.clients)} clients")
        if payload.included != payload.t + 1:
            raise WireError("included", "leaves out an upload that has arrived")

    def _check_next(self, payload: OpenMasks) -> None:
        """The first sum of a sample has all clients: without one, its next change would be its representation."""
        if len(set(payload.participants)) < fewest(self.masking.clients):
            raise WireError("participants", f"are fewer than {fewest(self.masking.clients)} clients")
        if self._leaves_out_first(payload):
            raise WireError("arrived", "are not all clients, at the first sum of a sample")
        if len(payload.arrived) == self.masking.clients:
            self.summed[self.numbered.rows(payload.t)] = 1

    def _leaves_out_first(self, payload: OpenMasks) -> bool:
        """Whether a sum has not all clients, though some of its samples were in no sum with all; or it came early."""
        everyone = len(set(payload.arrived)) == self.masking.clients
        return not everyone and not self.summed[self.numbered.rows(payload.t)].all()


class DoubleMaskingServer(MaskingServer):
    """The server. ``down``, the clients that are down, is set by its owner, who calls ``advance`` then."""

    state_fields = (
        *("server", "public", "opening", "arrived", "total"),
        *("batch", "participants", "following", "asked", "gone", "opened", "included", "sums", "summed"),
    )

    def __init__(self, server: Party, masking: Masking, opening: list[Message]) -> None:
        assert masking.numbered is not None
        self.recovery, self.numbered = server.recovery, masking.numbered
        self.down: frozenset[int] = frozenset()
        super().__init__(server, masking, opening)

    def begin(self, opening: Sequence[Message]) -> None:
        """Begin a training with these messages, once all keys are here."""
        super().begin(opening)
        everyone = tuple(range(self.masking.clients))
        self.batch: int | None = None if opening else 0
        """The sync under way; without first messages here, clients upload before the first round."""
        self.participants: Participants = everyone
        self.following: Participants = everyone
        """The participants of the next sync, as announced."""
        self.asked = False
        """Whether the clients that have arrived were asked to open masks."""
        self.gone: Participants = ()
        self.opened: dict[int, OpenedMasks] = {}
        self.included: dict[int, int] = {}
        """By client, one more than the last batch for which an upload of it was summed."""
        self.sums: Words = self.masking.all_zeros
        self.summed = self.numbered.none_summed
        """Whether each sample was summed before."""

    def receive(self, message: Message) -> Sequence[Message]:
        payload, k = message.payload, message.sender
        if isinstance(payload, PublicKey | SignedKey):
            return self._requests(self._collect(k, payload))
        if isinstance(payload, DoubleMaskedUpload):
            if payload.t != self.batch or self.asked or k not in self.participants:
                return []  # too late: its own mask stays closed
            self._add(k, payload.words)
            return self.advance()
        if isinstance(payload, OpenedMasks):
            if payload.t != self.batch or not self.asked or k not in self.arrived:
                return []
            self.opened[k] = payload
            return self.advance()
        return self._requests(self.server.receive(message))

    def advance(self) -> Sequence[Message]:
        """The next messages of the sync, if all clients that are up have answered."""
        if self.batch is None or (not self.asked and self._missing()):
            return []
        if not self.asked:
            return self._ask(self.batch)
        total = unmasked(self.total, self.participants, self.arrived, {k: one.opened for k, one in self.opened.items()})
        if total is not None:
            return self._end_sync(self.batch, total)
        closed = self._closed()
        if self.gone or not self._can_open_without(closed):
            return []
        self.gone = tuple(closed)
        return self._request_masks(self.batch, set(self.arrived) - closed)

    def waits_for(self) -> frozenset[int]:
        """The clients that are down and without which the sync cannot continue."""
        if len(self.public) < self.masking.clients:
            return self.down - self.public.keys()
        if self.batch is None:
            return frozenset()
        if not self.asked:
            return self._missing() & self.down
        closed = self._closed() & self.down
        if self.gone:
            return closed | (self.down.intersection(self.gone) if closed else frozenset())
        return frozenset() if self._can_open_without(closed) else closed

    def _missing(self) -> frozenset[int]:
        """The clients whose uploads the sum needs."""
        missing = frozenset(self.participants) - frozenset(self.arrived)
        enough = len(self.participants) - len(missing & self.down) >= fewest(self.masking.clients)
        return missing - self.down if enough and self._were_summed(self.batch or 0) else missing

    def _closed(self) -> frozenset[int]:
        """The clients whose uploads have arrived and that have not opened all masks that they were asked for."""
        opened = {k for k, one in self.opened.items() if all(one.mine[other].any() for other in self.gone)}
        return frozenset(self.arrived) - opened - frozenset(self.gone)

    def _can_open_without(self, closed: frozenset[int]) -> bool:
        """Whether the others can open all masks of these clients."""
        whole = len(self.arrived) == len(self.participants) > fewest(self.masking.clients)
        return whole and len(closed) == 1 and closed <= self.down

    def _were_summed(self, batch: int) -> bool:
        return bool(self.summed[self.numbered.rows(batch)].all())

    def _ask(self, batch: int) -> Sequence[Message]:
        """No further upload is taken for this batch: ask for the masks of those that are here."""
        clients = range(self.masking.clients)
        self.asked, self.arrived = True, sorted(self.arrived)
        self.summed[self.numbered.rows(batch)] = 1
        self.included |= dict.fromkeys(self.arrived, batch + 1)
        up = tuple(k for k in clients if k not in self.down)
        enough = len(up) >= fewest(len(clients)) and self._were_summed(batch + 1)
        self.following = up if enough else tuple(clients)
        return self._request_masks(batch, {*self.arrived, *self.following})

    def _request_masks(self, batch: int, clients: set[int]) -> Sequence[Message]:
        arrived = tuple(self.arrived)
        return [
            send(SERVER, k, OpenMasks(batch, arrived, self.gone, self.following, self.included.get(k, 0)))
            for k in sorted(clients)
        ]

    def _end_sync(self, batch: int, total: Words) -> Sequence[Message]:
        """Add the changes to the sums, and let the server go on with those of the batch."""
        places = self.numbered.places(batch, self.masking.width)
        if total.size:
            self.sums[places] += total
        found = self.sums[places] if total.size else total
        self.batch, self.asked, self.participants = None, False, self.following
        self.arrived, self.gone, self.opened = [], (), {}
        return self._requests(self._pass_on(self._uploads(found)))

    def _requests(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Begin a sync with the requests for it, which go to its participants only."""
        sent = []
        for message in messages:
            batch = self.numbered.batch_of(message.payload)
            self.batch = self.batch if batch is None else batch
            if batch is None or message.to in self.participants:
                sent.append(message)
        return sent
