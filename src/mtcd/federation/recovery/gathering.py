"""Custody of a server that gathers uploads (svfl; mtcd with mini-batches): it goes on without clients that are gone.

What each client uploaded last stays in the sum: with the full batch its whole representation, with mini-batches the
last value of each row, 0 for rows that it never told of. Nobody waits for those whom the links believe to be gone, as
long as somebody answers. A client has one question at a time. While it is not answered, it is not asked again, but
the question that waits for it is kept up to date; so it takes part again as soon as it is back.

Uploads lie in a file beside the journal, written before the commit that takes them in. If the process is killed in
between, the envelope comes again, and the same numbers are written once more. They change only when the client answers
its next question: so the uploads that are being summed up need not be in the journal either, only whose are there.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.federation.delivery.envelopes import Envelope
from mtcd.federation.delivery.journal import Journal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.iteration_server import IterationServer
from mtcd.methods.hosting import Share
from mtcd.methods.svfl import Shared, SVFLServer
from mtcd.methods.token_parties import TokenServer
from mtcd.protocol.batches import Batches
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.party import SERVER, Message

Array = NDArray[np.float64]


class GatheringServer(ReliableParty):
    """Of such a server."""

    party: TokenServer | SVFLServer

    def __init__(self, number: int, party: TokenServer | SVFLServer, journal: Journal, *rest: Any) -> None:
        self.party = party
        shape = (party.clients, self.batches.samples, *party.aggregate.shape[1:])
        self.uploads = journal.numbers("uploads", shape)
        """The last that is known of h_k on all samples, client by client."""
        self.penalties = [0.0] * party.clients
        self.asked: dict[int, int] = {}
        """Who has a question that it has not answered: the number of the envelope."""
        super().__init__(number, party, journal, *rest)

    @property
    def waits_for(self) -> frozenset[int]:
        return self.down if len(self.down) == self.party.clients else frozenset()

    # What is different between the methods

    @property
    @abstractmethod
    def batches(self) -> Batches:
        """The batches of the training."""

    @property
    @abstractmethod
    def now(self) -> int:
        """The iteration of the question that is asked now."""

    @property
    @abstractmethod
    def is_gathering(self) -> bool:
        """Whether answers to it are awaited."""

    @property
    def left(self) -> frozenset[int]:
        """Who has left as planned, and is not asked."""
        return frozenset()

    @abstractmethod
    def question(self, client: int) -> Message:
        """The question."""

    @abstractmethod
    def batch_of(self, iteration: int) -> int:
        """The batch that the answer tells of."""

    # The journal

    def record(self) -> dict[str, Any]:
        record = super().record()
        slim = record["party"] | {"gathering": sorted(self.party.gathering.here)}
        return record | {"party": slim, "asked": self.asked, "penalties": self.penalties}

    def reload(self, kept: dict[str, Any]) -> None:
        self.asked, self.penalties = kept["asked"], kept["penalties"]
        here = kept["party"]["gathering"]
        super().reload(kept | {"party": kept["party"] | {"gathering": Gathering(self.party.clients)}})
        self.party.gathering.here = {k: self.last_upload(k) for k in here}

    def commit(self) -> None:
        if self.journal.sync and isinstance(self.uploads, np.memmap):  # no mutants: only the time
            self.uploads.flush()
        super().commit()

    # Uploads

    def last_upload(self, client: int) -> Fresh:
        """What it would answer now, as far as is known."""
        representation: Array = np.array(self.uploads[client, self._rows(self.now)])
        return Fresh(representation, self.penalties[client])

    def _remember(self, client: int, iteration: int, fresh: Fresh) -> None:
        self.uploads[client, self._rows(iteration)] = fresh.representation
        self.penalties[client] = fresh.penalty

    def _rows(self, iteration: int) -> Any:
        rows = self.batches.rows(self.batch_of(iteration))
        return slice(None) if rows is None else rows

    def put(self, message: Message, iteration: int) -> Envelope:
        """A question takes the place of one that has not been answered, if that is still waiting to be sent."""
        k = message.to
        if not isinstance(message.payload, Share | Shared):
            return super().put(message, iteration)
        if k not in self.asked:
            envelope = super().put(message, iteration)
            self.asked[k] = envelope.sequence
            return envelope
        place, term = (k, self.asked[k]), self.term_of(iteration)
        renewed = Envelope(self.number, *place, iteration, term, self.terms_to_send(), message)
        if place in self.outbox:
            self.outbox[place] = renewed
        return renewed

    def process(self, envelope: Envelope) -> list[Message]:
        fresh, k = envelope.message.payload, envelope.sender
        if not isinstance(fresh, Fresh):
            return super().process(envelope)
        self._remember(k, envelope.iteration, fresh)
        self.asked.pop(k, None)
        told: list[Message] = []
        if k in self.party.gathering.here:  # it has left, and this came late
            self.party.gathering.here[k] = self.last_upload(k)
        elif self.is_gathering and envelope.iteration == self.now:
            told = super().process(envelope)
        elif self.is_gathering:
            self.put(self.question(k), self.now)
        return told + self._without_the_dead()

    def _without_the_dead(self) -> list[Message]:
        """If all others have answered, and somebody has: what the dead would answer is taken from their last."""
        here = self.party.gathering.here
        missing = [k for k in range(self.party.clients) if k not in here]
        if not (self.is_gathering and here.keys() - self.left and self.down.issuperset(missing)):
            return []
        told = []
        for k in missing:
            told += self.post(self.party.receive(Message(k, SERVER, self.last_upload(k))), None)
        return told

    def peer_lost(self, k: int) -> None:
        super().peer_lost(k)
        if self.ended is None:
            self.opened += self._without_the_dead()
            self.commit()


class RoundServer(GatheringServer):
    """Of the server of svfl."""

    party: SVFLServer

    is_gathering = True

    @property
    def batches(self) -> Batches:
        return self.party.batches

    @property
    def now(self) -> int:
        return self.party.round

    @property
    def left(self) -> frozenset[int]:
        return self.party.absent(self.now)

    def question(self, client: int) -> Message:
        aggregate = self.party.aggregate
        return Message(SERVER, client, Shared(self.now, aggregate), aggregate.size)

    def batch_of(self, iteration: int) -> int:
        return iteration + 1

    def iteration_of(self, message: Message, cause: Envelope | None) -> int:
        return self.now


class BatchIterationServer(GatheringServer, IterationServer):
    """Of the server of mtcd with mini-batches."""

    party: TokenServer

    @property
    def batches(self) -> Batches:
        return self.party.plan.batches

    @property
    def now(self) -> int:
        return self.party.t

    @property
    def is_gathering(self) -> bool:
        return not self.tokens_out

    def question(self, client: int) -> Message:
        return Message(SERVER, client, Share(self.now))

    def batch_of(self, iteration: int) -> int:
        return iteration


class RoundClientParty(ReliableParty):
    """Of a client of svfl: it needs the server only."""

    @property
    def waits_for(self) -> frozenset[int]:
        return self.down & {SERVER}
