"""The engine protocol: how the parties of one training are run, observed, stopped and resumed.

An engine delivers messages between the parties, wherever they are: in this process, in worker
processes, on other hosts. Training, planner and measurements access the parties through an engine
only. ``engines/choose.py`` picks the engine for parties in this process;
``tests/contract/test_engine_contract.py`` runs the same assertions on every engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, Self

from mtcd.core.errors import MtcdError
from mtcd.network.topology import Network
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import EpochLoss
from mtcd.protocol.party import Message, Part, Parties, Progress
from mtcd.protocol.state import Snapshot, Stateful


class HostedShare(Protocol):
    """Makes some of the parties of a training, in the process that hosts them. It can be sent
    there."""

    def parties(self) -> Parties:
        """The parties. Those that are hosted elsewhere must not be used; neither must their first
        messages."""

    def aggregate(self, parameters: Mapping[int, Any]) -> Any:
        """The sum of the representations of the clients here, with these parameters: for
        measurements."""


class Recipe(Protocol):
    """How the parties of a training are made in several processes, each with its own part of the
    data."""

    @property
    def network(self) -> Network:
        """The network of the clients."""

    def together(self) -> Sequence[Sequence[int]] | None:
        """Groups of clients that exchange most messages: the clusters of tokens; None if there are
        none."""

    def weights(self) -> Sequence[int]:
        """The work of a visit at each client, relative to others."""

    def device(self) -> str:
        """Where visits compute: 'cpu', 'cuda', or 'auto' (on a GPU where there is one)."""

    def share(self, clients: Sequence[int]) -> HostedShare:
        """The part for the process that hosts these clients, with the data of no others."""

    def bind(self, add_up: Callable[[Sequence[Any]], Any]) -> None:
        """An engine has started: this computes the aggregate of parameters where the data is."""


class Recorder(Protocol):
    """Stands for a listener in another process, which has some of the parties."""

    def see(self, message: Message) -> None:
        """A message is being sent."""

    def take(self) -> list[Any]:
        """What the listener has to know of the messages since the last call: values that can be
        pickled."""


class Listener(Protocol):
    """Sees every message that an engine sends, and changes none.

    Parties and methods do not know of it. A message is seen after it was recorded on the ledger,
    and before it is delivered.
    """

    def see(self, message: Message) -> None:
        """A message is being sent from one party to another, or to itself."""

    def see_rounds(self, done: int) -> None:
        """All neighbours have exchanged messages, so many times by now. An engine that runs whole
        rounds calls this in place of ``see``."""

    def recorder(self) -> Callable[[], Recorder]:
        """A class or function that makes the recorder in another process. It can be sent there."""

    def replay(self, recorded: Sequence[list[Any]]) -> None:
        """See what recorders of several processes have taken since the last observation.

        The ledger is the one before these messages.
        """

    def state(self) -> dict[str, Any]:
        """What a checkpoint keeps: plain values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from a checkpoint."""


class Engine(ABC):
    """Runs the parties of one training. As a context manager, it calls ``start`` and ``stop``.

    Rules for every engine:

    - The order of deliveries is the engine's own; a message is delivered exactly once.
    - Every message is recorded on the ledger as it is sent (``protocol/ledger/ledger.py``), and
      shown to the listeners.
    - A message to ``MONITOR`` becomes an observation. Until the next observation is requested,
      ``parameters``, ``ledger`` and ``snapshot`` are those of the last one. An engine in this
      process delivers nothing meanwhile. An engine with remote parties holds back the party that
      reported the progress (no other token is under way then), or has each party send its
      parameters along with its report.
    """

    ledger: Ledger
    """The messages sent up to the latest observation."""
    listeners: Mapping[str, Listener] = MappingProxyType({})
    """By name, those who see every message that is sent. Without any, a message costs nothing
    more. Set before the engine starts."""
    status: str | None = None
    """How the parties ended the training, where they have stop rules of their own; None: only the
    observer ends it."""

    seconds: float | None = None
    """The time of the latest observation, where the engine simulates one; None: the observer takes
    it."""

    def start(self) -> None:  # noqa: B027 - parties in this process need nothing
        """Start workers, open links. Called once, before anything else."""

    @abstractmethod
    def run(self, pausing: bool = False) -> Iterator[Progress | None]:
        """Deliver messages; yield whenever the parties hold one model, before it changes. Called
        once.

        With ``pausing``, None is yielded now and then between two observations, so that the caller
        can look at the clock. The iterator stays valid while it is not advanced: a pause lasts
        until the next item is requested. It is exhausted when no message is under way, or when the
        parties have ended the training (``status``).
        """

    def skip_to(self, iteration: float) -> None:  # noqa: B027 - a hint
        """The observer needs no observation before this iteration.

        Engines in this process may ignore it. An engine with remote parties saves the round trips:
        its parties report to it again at the first progress that is not before this iteration.
        """

    @abstractmethod
    def parameters(self) -> list[Any]:
        """theta of the latest observation, client by client; of split networks, theta_0 comes last.

        After an interrupt between two observations, the current ones. An engine in this process may
        return the clients' own arrays: read them before the next observation is requested.
        """

    def epoch_loss(self) -> EpochLoss | None:
        """The loss of a split network at the latest observation, for the divergence rule.

        None if the rule uses the objective (linear models), or if the parties apply it themselves.
        """
        return None

    def snapshot(self) -> Snapshot:
        """The state of all parties at the latest observation."""
        raise MtcdError("This engine does not support checkpoints: train without checkpoint.")

    def resume(self, snapshot: Snapshot) -> None:
        """Continue from this snapshot, of the same training. Called after ``start``, before
        ``run``."""
        raise MtcdError("This engine does not support checkpoints: train without resume.")

    def stop(self) -> None:  # noqa: B027 - parties in this process need nothing
        """Stop all that ``start`` started. ``parameters`` stays available. A second call does
        nothing."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class Monitor(Stateful):
    """Passes progress on. Of methods in which each client reports a part, it waits for the parts of
    all K clients."""

    state_fields = ("reports", "_latest")

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.reports: dict[int, dict[int, Part]] = {}
        """The parts received, by iteration and client, of iterations with missing parts."""
        self._latest: dict[int, int] = {}

    def collect(self, message: Message) -> Any:
        """Add a report; returns the progress that it completes, or None."""
        part = message.payload
        # A lone token, or the progress of a server, tells all by itself.
        if not isinstance(part, Part):
            return part
        self._latest[message.sender] = part.iteration
        parts = self.reports.setdefault(part.iteration, {})
        parts[message.sender] = part
        # Clients may be an iteration apart: each waits for those of the same one.
        if len(parts) < self.clients:
            return None
        del self.reports[part.iteration]
        return Progress(
            part.iteration, 0, None, 0.0, [parts[k].parameters for k in range(self.clients)]
        )

    def ahead(self, sender: int) -> int | None:
        """The latest iteration that this client has reported, while reports of other clients are
        missing; else None."""
        # Its reports are complete otherwise, and the client is not ahead of anybody.
        latest = self._latest.get(sender)
        if latest not in self.reports:
            return None
        return latest
