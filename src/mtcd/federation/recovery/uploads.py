"""The last upload of each client, with which a server that gathers uploads continues while clients
are down.

What each client uploaded last stays in the sum: with the full batch its whole representation, with
mini-batches the last value of each row, 0 for rows that it never uploaded. The server does not wait
for clients that are down, as long as one client answers. A client has one request at a time. While
it has not answered, it gets no other one, but the request that waits for it is kept up to date; so
it takes part again as soon as it is up.

Uploads lie in a file beside the journal, written before the commit of their envelope. If the
process crashes in between, the envelope comes again, and the same numbers are written once more.
They change only when the client answers its next request: so the uploads that are being summed up
need not be in the journal either, only whose are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mtcd.core.arrays import Array
from mtcd.federation.delivery.policy import RecoveryPolicy, UploadRules
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.party import SERVER, Message


class Gatherer(Protocol):
    """The policy of a server that gathers uploads."""

    delivery: ReliableParty

    @property
    def now(self) -> int:
        """The iteration whose uploads are requested."""

    @property
    def is_gathering(self) -> bool:
        """Whether uploads are awaited."""

    @property
    def left(self) -> frozenset[int]:
        """The clients that have left as planned, and get no requests."""

    def request(self, client: int) -> Message:
        """The request for an upload."""

    def batch_of(self, iteration: int) -> int:
        """The batch that an upload of this iteration is for."""


class GatheringServer(Protocol):
    """A server that adds up the uploads of clients."""

    clients: int
    gathering: Gathering

    @property
    def aggregate(self) -> Array:
        """The sum of all representations."""

    def receive(self, message: Message) -> Sequence[Message]:
        """Process an upload of a client, in the iteration to which it belongs."""


MakeUploads = Callable[[RecoveryPolicy], UploadRules]
"""Makes what takes the place of ``Uploads`` in a policy."""


class Uploads:
    """Of one server. The policy calls its methods in place of its own."""

    kinds: tuple[type, ...] = (Fresh,)
    """The payloads that it processes."""
    array: Array
    """The last known h_k on all samples, client by client."""

    def __init__(self, policy: Gatherer, party: GatheringServer, batches: Batches) -> None:
        self.policy, self.party, self.batches = policy, party, batches
        self.penalties = [0.0] * party.clients
        self.requested: dict[int, int] = {}
        """By client, the sequence number of the request that it has not answered."""

    @property
    def waits_for(self) -> frozenset[int]:
        """The server needs at least one client."""
        down = self.policy.delivery.down
        if len(down) < self.party.clients:
            return frozenset()
        return down

    # The journal

    def snapshot(self, record: dict[str, Any]) -> dict[str, Any]:
        """Only whose uploads are there: they are in the file."""
        party = record["party"] | {"gathering": sorted(self.party.gathering.here)}
        return record | {"party": party, "requested": self.requested, "penalties": self.penalties}

    def restore(self, record: dict[str, Any] | None) -> None:
        """Open the file, and take from it what the journal names."""
        party, samples = self.party, self.batches.samples
        shape = (party.clients, samples, *party.aggregate.shape[1:])
        self.array = self.policy.delivery.journal.numbers("uploads", shape)
        if record is not None:
            self.requested, self.penalties = record["requested"], record["penalties"]
            here = record["party"]["gathering"]
            party.gathering = Gathering(party.clients)
            party.gathering.here = {k: self.last_upload(k) for k in here}

    # Uploads

    def last_upload(self, client: int) -> Fresh:
        """The upload that the client would send now, as far as is known."""
        representation: Array = np.array(self.array[client, self._rows(self.policy.now)])
        return Fresh(representation, self.penalties[client])

    def _remember(self, client: int, iteration: int, fresh: Fresh) -> None:
        self.array[client, self._rows(iteration)] = fresh.representation
        self.penalties[client] = fresh.penalty
        if self.policy.delivery.journal.sync and isinstance(self.array, np.memmap):
            self.array.flush()

    def _rows(self, iteration: int) -> Any:
        rows = self.batches.rows(self.policy.batch_of(iteration))
        if rows is None:
            return slice(None)
        return rows

    def receive(self, envelope: Envelope) -> list[Message]:
        """Process an upload. Returns the reports for the monitor."""
        policy = self.policy
        here = self.party.gathering.here
        k, fresh = envelope.sender, envelope.message.payload
        assert isinstance(fresh, Fresh)
        self._remember(k, envelope.iteration, fresh)
        self.requested.pop(k, None)
        reports: list[Message] = []
        if k in here:  # the client has left, and this came late
            here[k] = self.last_upload(k)
        elif policy.is_gathering and envelope.iteration == policy.now:
            reports = policy.delivery.run_party(envelope)
        elif policy.is_gathering:
            self._send_request(policy.request(k))
        return reports + self._complete()

    def complete_without_down(self) -> None:
        """A client is down: perhaps the others have all answered."""
        delivery = self.policy.delivery
        if delivery.ended is None:
            delivery.reports += self._complete()
            delivery.commit()

    def _complete(self) -> list[Message]:
        """If all clients that are up have answered, and there is one: take the last uploads of the
        others."""
        policy, here = self.policy, self.party.gathering.here
        missing = [k for k in range(self.party.clients) if k not in here]
        if not (
            policy.is_gathering
            and here.keys() - policy.left
            and policy.delivery.down.issuperset(missing)
        ):
            return []
        reports = []
        for k in missing:
            answer = self.party.receive(Message(k, SERVER, self.last_upload(k)))
            reports += policy.delivery.send(answer, None)
        return reports

    # Requests

    def route(self, message: Message) -> Message | None:
        """A request takes the place of one that was not answered, if that is still waiting to be
        sent."""
        delivery, k = self.policy.delivery, message.to
        if k not in self.requested:
            self.requested[k] = delivery.sent.get(k, 0)
            return message
        place = k, self.requested[k]
        if place in delivery.outbox:
            iteration = self.policy.now
            term, terms = delivery.policy.term_of(iteration), delivery.terms
            delivery.outbox[place] = Envelope(SERVER, *place, iteration, term, terms, message)
        return None

    def _send_request(self, message: Message) -> None:
        routed = self.route(message)
        if routed is not None:
            self.policy.delivery.enqueue(routed, self.policy.now)
