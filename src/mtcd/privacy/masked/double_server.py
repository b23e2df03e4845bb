"""The server with double masks: see ``double_client.py`` for the protocol."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.core.fixed_point import Words
from mtcd.privacy.masked.double_client import Participants, fewest
from mtcd.privacy.masked.double_masks import unmasked
from mtcd.privacy.masked.masking import NO_GENERATION, Masking
from mtcd.privacy.masked.payloads import (
    DoubleMaskedUpload,
    OpenedMasks,
    OpenMasks,
    PublicKey,
    SignedKey,
)
from mtcd.privacy.masked.server import MaskingServer
from mtcd.protocol.party import SERVER, Message, Party, send


class DoubleMaskingServer(MaskingServer):
    """The server. ``down``, the clients that are down, is set by its owner, who calls ``advance``
    then."""

    state_fields = (
        *("server", "public", "opening", "arrived", "total"),
        *("generation", "sync", "renewed", "repeated"),
        *(
            "batch",
            "participants",
            "following",
            "asked",
            "gone",
            "opened",
            "included",
            "sums",
            "summed",
        ),
    )

    uploads_recovery = "mtcd.privacy.masked.recovery:MaskedUploads"

    def __init__(self, server: Party, masking: Masking, opening: list[Message]) -> None:
        assert masking.upload_batches is not None
        self.recovery, self.upload_batches = server.recovery, masking.upload_batches
        self.down: frozenset[int] = frozenset()
        super().__init__(server, masking, opening)

    def begin(self, opening: Sequence[Message]) -> None:
        """Begin a training with these messages, once all keys are here."""
        super().begin(opening)
        everyone = tuple(range(self.masking.clients))
        self.batch: int | None = None
        """The sync under way; without first messages here, clients upload before the first
        round."""
        if not opening:
            self.batch = 0
        self.participants: Participants = everyone
        self.following: Participants = everyone
        """The participants of the next sync, as announced."""
        self.asked = False
        """Whether the clients that have arrived were asked to open masks."""
        self.gone: Participants = ()
        self.opened: dict[int, OpenedMasks] = {}
        self.included: dict[int, int] = {}
        """By client, one more than the last batch for which an upload of it was summed."""
        self.renewed: dict[int, PublicKey | SignedKey] = {}
        """The new keys of clients that were restarted after the request to open masks: used in the
        next generation."""
        self.repeated: Participants = ()
        """The clients whose uploads are summed, where clients have opened masks of them in an
        earlier generation."""
        self.sums: Words = self.masking.all_zeros
        self.summed = self.upload_batches.none_summed
        """Whether each sample was summed before."""

    def receive(self, message: Message) -> Sequence[Message]:
        payload, k = message.payload, message.sender
        if isinstance(payload, PublicKey | SignedKey):
            return self._requests(self._collect(k, payload))
        if isinstance(payload, DoubleMaskedUpload):
            # After a restart within a sync the same uploads must come again, whoever takes part in
            # the next.
            expected = self.repeated or self.participants
            if (
                payload.t != self.batch
                or self.asked
                or k not in expected
                or payload.generation != self.generation
            ):
                return []  # too late: its own mask stays closed
            self._add(k, payload.words)
            return self.advance()
        if isinstance(payload, OpenedMasks):
            # From a client whose upload is in the sum, with masks of this generation: seeds of
            # other keys would not take its masks off.
            is_asked = self.asked and k in self.arrived and payload.generation == self.generation
            if payload.t != self.batch or not is_asked:
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

        opened = {k: one.opened for k, one in self.opened.items()}
        # All that was opened so far: perhaps one client's answer is enough.
        total = unmasked(self.total, self.participants, self.arrived, opened)
        if total is not None:
            return self._end_sync(self.batch, total)

        # a client went down after its upload: the others can open its masks, once in a sync
        closed = self._closed()
        if not self.gone and self._can_open_without(closed):
            self.gone = tuple(closed)
            return self._request_masks(self.batch, set(self.arrived) - closed)
        # A client with a new key cannot open masks of its old one. Waiting for it would be for
        # ever.
        if closed & self.renewed.keys():
            return self._repeat()
        return []

    # Clients that are restarted

    def _collect(self, client: int, payload: PublicKey | SignedKey) -> Sequence[Message]:
        if self.generation == NO_GENERATION:
            return super()._collect(client, payload)
        latest = self.renewed.get(client, self.public[client])
        # A key that is sent twice must not start a new generation.
        if latest.key.tobytes() == payload.key.tobytes():
            return []

        self.renewed[client] = payload
        if self.asked:
            # masks are being opened: a new generation now would give two sums of one sync
            return self.advance()
        return self._renew()

    def _renew(self) -> Sequence[Message]:
        """Begin a generation with the new keys."""
        self.public |= self.renewed
        self.renewed = {}
        return self._send_keys()

    def _repeat(self) -> Sequence[Message]:
        """A client with a new key cannot open masks of its old one. All send the same uploads with
        masks of new keys.

        Clients may have opened masks for these uploads, and will do so for the same ones only.
        """
        # Only these: a sum over others, after masks were opened for these, would differ by one
        # upload.
        self.repeated = tuple(self.arrived)
        self.asked, self.gone, self.opened = False, (), {}
        return self._renew()

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
            # either the one that is gone or those that have not answered could open the rest
            if not closed:
                return frozenset()
            return closed | self.down.intersection(self.gone)
        if self._can_open_without(closed):
            return frozenset()
        return closed

    def _missing(self) -> frozenset[int]:
        """The clients whose uploads the sum needs."""
        if self.repeated:
            return frozenset(self.repeated) - frozenset(self.arrived)

        missing = frozenset(self.participants) - frozenset(self.arrived)
        # A client that is down counts as missing only if enough others are there for a sum.
        enough = len(self.participants) - len(missing & self.down) >= fewest(self.masking.clients)
        # the first change of a sample is the representation: its first sum has all clients
        if enough and self._were_summed(self.batch or 0):
            return missing - self.down
        return missing

    def _closed(self) -> frozenset[int]:
        """The clients whose uploads have arrived and that have not opened all masks that they were
        asked for."""
        # `mine` holds the shares for those that are gone: a client has answered the second request
        # once they are in it.
        opened = set()
        for k, one in self.opened.items():
            if all(one.mine[other].any() for other in self.gone):
                opened.add(k)
        return frozenset(self.arrived) - opened - frozenset(self.gone)

    def _can_open_without(self, closed: frozenset[int]) -> bool:
        """Whether the others can open all masks of these clients."""
        # Once in a sync, and for one client: with two gone, some seed is known to these two alone.
        whole = len(self.arrived) == len(self.participants) > fewest(self.masking.clients)
        return whole and len(closed) == 1 and closed <= self.down | self.renewed.keys()

    def _were_summed(self, batch: int) -> bool:
        return bool(self.summed[self.upload_batches.rows(batch)].all())

    def _ask(self, batch: int) -> Sequence[Message]:
        """No further upload is taken for this batch: ask for the masks of those that are here."""
        clients = range(self.masking.clients)
        # In order: the set must be the same whoever arrived first, as clients compare it.
        self.asked, self.arrived = True, sorted(self.arrived)
        self.summed[self.upload_batches.rows(batch)] = 1
        self.included |= dict.fromkeys(self.arrived, batch + 1)
        up = tuple(k for k in clients if k not in self.down)
        # Who was up now is in the next sync, if every sample of its batch was in a sum with all
        # clients.
        enough = len(up) >= fewest(len(clients)) and self._were_summed(batch + 1)
        if not self.repeated:  # otherwise they are announced already
            self.following = tuple(clients)
            if enough:
                self.following = up
        return self._request_masks(batch, {*self.arrived, *self.following})

    def _request_masks(self, batch: int, clients: set[int]) -> Sequence[Message]:
        arrived, gone, following = tuple(self.arrived), self.gone, self.following
        sent = []
        for k in sorted(clients):
            included = self.included.get(k, 0)
            request = OpenMasks(batch, self.generation, arrived, gone, following, included)
            sent.append(send(SERVER, k, request))
        return sent

    def _end_sync(self, batch: int, total: Words) -> Sequence[Message]:
        """Add the changes to the sums, and let the server go on with those of the batch."""
        places = self.upload_batches.places(batch, self.masking.width)
        if total.size:
            self.sums[places] += total
            total = self.sums[places]
        # Cleared before the server goes on: its next request begins the next sync.
        self.batch, self.asked, self.participants = None, False, self.following
        self.arrived, self.gone, self.opened, self.repeated = [], (), {}, ()
        self.sync = batch + 1
        requests = self._requests(self._pass_on(self._uploads(total)))
        if not self.renewed:
            return requests
        # clients that were restarted during the sync have waited with their new keys
        return [*requests, *self._renew()]

    def _requests(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Begin a sync with the requests for it, which go to its participants only."""
        sent = []
        # A message that requests an upload begins a sync; those to clients that are not in it are
        # dropped.
        for message in messages:
            batch = self.upload_batches.batch_of(message.payload)
            if batch is not None:
                self.batch = batch
            if batch is None or message.to in self.participants:
                sent.append(message)
        return sent
