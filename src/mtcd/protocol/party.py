"""Parties and messages. A party is a state machine: each message that arrives returns the messages
to send.

There is no I/O here. An engine delivers messages between parties and records them on the ledger;
the parties are the same objects in every engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, NamedTuple, Protocol, TypeVar, overload

from mtcd.core.arrays import Array
from mtcd.protocol.batches import Batches
from mtcd.protocol.codec.arrays import AggregateField, SharedField
from mtcd.protocol.codec.fields import Optional
from mtcd.protocol.codec.payloads import Count, Iteration, Number, Parameters, Payload, payload
from mtcd.protocol.codec.stored import stored
from mtcd.protocol.model import EpochLoss, Theta
from mtcd.protocol.state import Snapshot, Stateful
from mtcd.protocol.transports.transport import Transport

# Below 0, as clients are numbered from 0; both are in frames and journals.
SERVER = -1
MONITOR = -2


@stored
@dataclass(slots=True)
class Message:
    """A message from one party to another. Clients are 0..K-1, the server is SERVER.

    ``floats`` is the count of numbers in it (0: a signal). ``hop_floats`` is the size of the hop
    that the paper charges for it: every visit ends with a hop, also one to the server or to the
    same client. MONITOR is not a party: progress reports to it are free. ``unchanged``: the visit
    changed nothing; for the sender's ledger, it does not travel.
    """

    sender: int
    to: int
    payload: Payload
    floats: int = 0
    hop_floats: int = 0
    unchanged: bool = False


def send(sender: int, to: int, payload: Payload, hop: bool = False) -> Message:
    """A message with this payload and its size; with ``hop``, the paper charges a hop for it."""
    # A token that stays, or goes up to the server, is a hop in the paper's count.
    floats = payload.floats
    hop_floats = 0
    if hop:
        hop_floats = floats
    return Message(sender, to, payload, floats, hop_floats)


@payload(11, "s>m c>m")
@dataclass(frozen=True, slots=True)
class Progress(Payload):
    """A report to the monitor when the parties hold one model: no other token is under way.

    ``hop`` counts hops per token (t*S + s), ``t`` syncs. ``aggregate`` and ``penalty`` give the
    objective; the aggregate is None where the sender does not have it for all samples. A lone token
    has the same attributes and is sent instead. ``parameters``: those of all clients, where clients
    may be ahead of this progress.
    """

    hop: Count
    t: Iteration
    # Of tensors a batch alone is known, so that no aggregate of all samples travels.
    aggregate: Annotated[
        Array | None, Optional(AggregateField(), lambda bounds: bounds.tensors is None)
    ]
    penalty: Number
    # Without a server nobody else holds what all parties share.
    parameters: Annotated[
        Sequence[Any] | None,
        Optional(SharedField(), lambda bounds: bounds.tensors is not None and not bounds.server),
    ] = None


@payload(10, "c>m")
@dataclass(frozen=True, slots=True)
class Part(Payload):
    """A client's report to the monitor in methods without a global model: its iteration and its
    parameters."""

    iteration: Iteration
    parameters: Parameters


@payload(1, "c>itself s>c")
@dataclass(frozen=True, slots=True)
class Begin(Payload):
    """The signal by which a client starts its next iteration; from a server, the one to send its
    public key."""

    # It rests on no token, and stays valid when tokens are regenerated.
    depends_on_tokens = False


class Recovery(Enum):
    """What the other parties can do while a party of this kind is down
    (``mtcd.federation.recovery``)."""

    WAIT = "wait until it is up again"
    RESTART = "undo visits, and restart the iteration or regenerate the token"
    ROUNDS = "continue with the last upload of each client"
    IN_STEP = "wait, and stop at the same iteration"


class Identity(Protocol):
    """Who a client is to the others: without signatures, a server could speak in their names."""

    def sign(self, content: bytes) -> bytes:
        """The signature of this client, with all that is needed to verify it."""
        ...

    def verify(self, client: int, content: bytes, signature: bytes) -> None:
        """Raise a WireError unless this client has signed the content for this run."""
        ...


class Party(Stateful, ABC):
    """A client or the server. Its state can be saved between two messages."""

    transport: Transport | None = None
    """The transform of arrays that this party sends and receives; None: no transform. See
    ``equip``."""
    recovery: Recovery = Recovery.WAIT
    """A subclass does not inherit RESTART: it may have state that its base cannot undo."""
    uploads_recovery: str | None = None
    """Of a server whose uploads only it can read: the class that recovery takes for them, as
    'module:Name'. It is made from the policy and this party."""

    @property
    def wrapped(self) -> Party:
        """The party whose visits recovery undoes: itself, or the one inside."""
        return self

    def identify(self, identity: Identity) -> None:
        """In a federation: who this party is. Most sign nothing themselves."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # What a base can undo says nothing of the state that its subclass adds.
        if cls.recovery is Recovery.RESTART and "recovery" not in vars(cls):
            cls.recovery = Recovery.WAIT

    def equip(self, transport: Transport | None) -> None:
        """Transform arrays that this party sends and receives; what the transform remembers is
        part of the party's state."""
        self.transport = transport
        # Of this object, not of the class: other parties of this process may have none.
        if transport is not None and transport.state_fields:
            own = type(self).state_fields
            self.state_fields = (*own, "transport")  # type: ignore[misc]

    @abstractmethod
    def receive(self, message: Message) -> Sequence[Message]:
        """Process a message; returns the messages to send, in order."""

    def restarted(self) -> Sequence[Message] | None:
        """A new process has restored this party from a journal, which may be from an earlier moment
        than its last one.

        Returns the messages to send; None if nothing has changed.
        """
        return None

    def is_early(self, payload: Payload) -> bool:
        """Whether a message must wait for an earlier one, which links may deliver after it."""
        return False

    def last_sync(self) -> tuple[int, int] | None:
        """The iteration of the last sync, and hops per token until then; None for parties without
        that record."""
        return None

    def at_end(self) -> Mapping[str, Any]:
        """What the other parties must know if this one ends the training now, by slot."""
        return {}

    def stop_at_sync(self, t: int, slots: Mapping[str, Any]) -> None:
        """The training has ended at sync t: adopt the model of that sync. ``slots``: see
        ``at_end``."""


class Client(Party):
    """A client of any method, with its parameters."""

    @abstractmethod
    def parameters(self) -> Theta:
        """The current theta_k of this client."""


C = TypeVar("C", bound=Client)


class OnDemand(Sequence[C]):
    """Clients 0, ..., K - 1, each made when it is first used: a party of a federation makes itself
    only."""

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
        # As a list would have it: negative numbers count from the end, others are an IndexError.
        number = range(self._size)[k]
        # Made once: a party has state.
        if number not in self._made:
            self._made[number] = self._make(number)
        return self._made[number]


class RoundClient(Client):
    """A client of a synchronous method: in each round it sends a vector and receives a weighted sum
    of all vectors."""

    @abstractmethod
    def offer(self) -> Array:
        """Begin an iteration: the vector to send to the neighbours."""

    @abstractmethod
    def take(self, mixed: Array) -> None:
        """End the iteration with the weighted sum of the offers."""


class Rounds(NamedTuple):
    """All clients of a synchronous method: client k takes row k of ``weights``, a sparse matrix,
    times the offers.

    A round sends ``messages`` of ``floats`` numbers each.
    """

    clients: Sequence[RoundClient]
    weights: Any
    messages: int
    floats: int


class Checkpointed(Protocol):
    """Saves and restores the parties at a moment when they hold one model."""

    def snapshot(self) -> Snapshot:
        """The state of all parties."""

    def resume(self, snapshot: Snapshot) -> Sequence[Message]:
        """Restore all parties; returns the messages that continue the training."""


@dataclass(frozen=True, eq=False)
class Summed:
    """What the server of a training only sums: nothing depends on one upload alone.

    Parameters
    ----------
    like
        An aggregate, whose kind and shape sums have.
    token_holders
        By iteration, the client from which each token returns to the server; None where clients
        upload representations instead.
    batches
        The batches of the samples, one for each sync of uploads.
    batch_of
        The batch for which a message requests an upload; None for other messages.
    """

    like: Any
    token_holders: Callable[[int], Sequence[int]] | None = None
    batches: Batches | None = None
    batch_of: Callable[[Any], int | None] = lambda payload: None


@dataclass(frozen=True)
class Parties:
    """All parties of a training, and its first messages. With ``rounds`` they can also run in
    synchronous rounds.

    ``gather`` computes the model from clients and server, where it does not follow from the clients
    alone; ``checkpointed`` saves the parties; ``epoch_loss`` is the loss of a split network, for
    the divergence rule; ``adopt`` takes over what is under way in these messages, where states of
    parties in other processes are restored. ``summed`` says what may reach the server as a sum only.
    """

    clients: Sequence[Client]
    server: Party | None
    opening: Sequence[Message]
    rounds: Rounds | None = None
    gather: Callable[[Sequence[Any], Any], list[Any]] | None = None
    checkpointed: Checkpointed | None = None
    epoch_loss: Callable[[], EpochLoss | None] = lambda: None
    adopt: Callable[[Iterable[Message]], None] = lambda messages: None
    summed: Summed | None = None

    def parameters(self) -> list[Any]:
        """The current theta, client by client; of split networks, theta_0 comes last."""
        # Networks: theta_0 is held by the server, or was carried by a token.
        if self.gather is not None:
            return self.gather(self.clients, self.server)
        return [client.parameters() for client in self.clients]
