"""Parties and messages: a party is what it does when a message arrives. No I/O, no engine.

An engine carries messages between parties and records them on the ledger; the parties are the same
objects in every engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, ClassVar, NamedTuple, Protocol, TypeVar, overload

from mtcd.arrays import Array
from mtcd.protocol.keeping import Keeper, Snapshot
from mtcd.protocol.model import Seen
from mtcd.protocol.transport import Transport
from mtcd.schema.arrays import AggregateField, FusionField
from mtcd.schema.fields import Optional
from mtcd.schema.payloads import Payload, payload, stored
from mtcd.schema.types import Count, Iteration, Number, Parameters

SERVER = -1
MONITOR = -2


@stored
@dataclass(slots=True)
class Message:
    """From one party to another. Clients are 0..K-1, the server is SERVER.

    ``floats`` counts the numbers it carries (0: a signal). ``hop_floats`` is the size of the hop that the
    paper charges for it: a visit ends with a hop, wherever the token then goes.
    MONITOR is no party: progress sent there costs nothing and is for those who watch.
    """

    sender: int
    to: int
    payload: Payload
    floats: int = 0
    hop_floats: int = 0


def send(sender: int, to: int, payload: Payload, hop: bool = False) -> Message:
    """The message that carries this payload, with its size; with ``hop``, the paper charges a hop for it."""
    floats = payload.floats
    return Message(sender, to, payload, floats, floats if hop else 0)


@payload(11, "s>m c>m")
@dataclass(frozen=True, slots=True)
class Progress(Payload):
    """Told to the monitor when the parties hold one model: no other token is under way.

    ``hop`` counts hops per token (t*S + s), ``t`` syncs. Where the full aggregate is known it comes
    along with the penalty, so that the objective can be read off; otherwise it is None. A token that
    is alone tells the same, so it can stand for it. ``parameters``: those of all clients, where the
    clients themselves may be further on by now.
    """

    hop: Count
    t: Iteration
    aggregate: Annotated[Array | None, Optional(AggregateField(), lambda bounds: bounds.split is None)]
    penalty: Number
    parameters: Annotated[
        Sequence[Any] | None, Optional(FusionField(), lambda bounds: bounds.split is not None and not bounds.server)
    ] = None


@payload(10, "c>m")
@dataclass(frozen=True, slots=True)
class Part(Payload):
    """Told to the monitor by a client of a method in which nobody knows all: where it is, and its parameters."""

    iteration: Iteration
    parameters: Parameters


@payload(1, "c>itself")
@dataclass(frozen=True, slots=True)
class Begin(Payload):
    """A client starts its first iteration."""


class Recovery(Enum):
    """What the other parties can do while a party of this kind is down (``mtcd.federation.recovery``)."""

    WAIT = "wait until it is up again"
    RESTART = "undo visits, and restart the iteration or regenerate the token"
    ROUNDS = "continue with the last upload of each client"
    IN_STEP = "wait, and stop at the same iteration"


class Party(Keeper, ABC):
    """A client or the server. Its state is written down between two messages."""

    transport: Transport | None = None
    """What the engine does to arrays that leave this party, or arrive; None: nothing."""
    recovery: ClassVar[Recovery] = Recovery.WAIT
    """A subclass does not inherit RESTART: it may remember more than its base, which cannot be undone."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.recovery is Recovery.RESTART and "recovery" not in vars(cls):
            cls.recovery = Recovery.WAIT

    def state(self) -> dict[str, Any]:
        state = super().state()
        if self.transport is not None and self.transport.kept:
            state["transport"] = self.transport.state()
        return state

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        if self.transport is not None and self.transport.kept:
            self.transport.restore(state["transport"])

    @abstractmethod
    def receive(self, message: Message) -> Sequence[Message]:
        """Do what this message asks for; return what is to be sent, in order."""

    def last_sync(self) -> tuple[int, int] | None:
        """The iteration of the last sync, and hops per token until then; None if only a server knows."""
        return None

    def stop_at_sync(self, t: int, past: Mapping[int, Array]) -> None:
        """The training has ended at sync t: hold the model of that moment. ``past``: see ``Token.past``."""


class Client(Party):
    """A client of any method: it can say which parameters it holds."""

    @abstractmethod
    def parameters(self) -> Array:
        """theta_k as of now."""


C = TypeVar("C", bound=Client)


class OnDemand(Sequence[C]):
    """Clients 0, ..., K - 1, each made when it is first used: a party of a federation makes itself only."""

    def __init__(self, size: int, make: Callable[[int], C]) -> None:
        self._size, self._make = size, make
        self._made: dict[int, C] = {}

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, k: int) -> C: ...

    @overload
    def __getitem__(self, k: slice) -> list[C]: ...

    def __getitem__(self, k: int | slice) -> C | list[C]:
        if isinstance(k, slice):
            return [self[i] for i in range(self._size)[k]]
        number = range(self._size)[k]
        if number not in self._made:
            self._made[number] = self._make(number)
        return self._made[number]


class RoundClient(Client):
    """A client of a method in which all do the same at the same time: offer a vector, take a mix of all offers."""

    @abstractmethod
    def offer(self) -> Array:
        """Begin an iteration: what the neighbours are told."""

    @abstractmethod
    def take(self, mixed: Array) -> None:
        """End it, with the weighted sum of the offers."""


class Rounds(NamedTuple):
    """Such a method as a whole: the mix of client k is row k of ``weights``, a sparse matrix, times the offers.

    In a round ``messages`` of ``floats`` numbers each are sent.
    """

    clients: Sequence[RoundClient]
    weights: Any
    messages: int
    floats: int


class Checkpointed(Protocol):
    """Parties that can be saved when they hold one model, and put back there."""

    def snapshot(self) -> Snapshot:
        """The state of all of them."""

    def resume(self, snapshot: Snapshot) -> Sequence[Message]:
        """Put all of them back; returns the messages that set the training going again."""


@dataclass(frozen=True)
class Parties:
    """All parties of a training, and the messages that set it going. With ``rounds`` they can do without messages.

    ``gather`` puts the model together, of clients and server, where the clients alone do not know it;
    ``checkpointed`` saves the parties; ``seen`` is what shows of a split network whether it diverges.
    """

    clients: Sequence[Client]
    server: Party | None
    opening: Sequence[Message]
    rounds: Rounds | None = None
    gather: Callable[[Sequence[Any], Any], list[Any]] | None = None
    checkpointed: Checkpointed | None = None
    seen: Callable[[], Seen | None] = lambda: None

    def parameters(self) -> list[Any]:
        """theta as of now, client by client; of split networks, theta_0 comes last."""
        return (
            [client.parameters() for client in self.clients]
            if self.gather is None
            else self.gather(self.clients, self.server)
        )
