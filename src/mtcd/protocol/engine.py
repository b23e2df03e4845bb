"""The engine protocol: how the parties of one training are run, observed, stopped and resumed.

An engine delivers messages between the parties, wherever they are: in this process, in worker processes, on other
hosts. Whoever trains, plans or measures sees the parties through an engine only, and never touches a party object.
``engines/choose.py`` picks the engine for parties in this process; ``tests/test_engine_contract.py`` holds every engine
against the same assertions.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self

from mtcd.errors import MtcdError
from mtcd.ledger.ledger import Ledger
from mtcd.protocol.keeping import Snapshot
from mtcd.protocol.model import Seen
from mtcd.protocol.party import Progress


class Engine(ABC):
    """Runs the parties of one training. Used as a context manager, it starts and stops by itself.

    Rules for every engine:

    - The order of deliveries is the engine's own; a message is delivered exactly once.
    - Every message is recorded on the ledger as it is sent (``protocol/accounting.py``).
    - What parties send to ``MONITOR`` becomes an observation. Until the next observation is asked for, ``parameters``,
      ``ledger`` and ``snapshot`` are those of the last one. An engine in this process delivers nothing meanwhile. An
      engine with remote parties holds back the party that reported the progress (no other token is under way then),
      or has each party send its parameters along with its report.
    """

    ledger: Ledger
    """What the parties have sent, up to the latest observation."""
    status: str | None = None
    """How the parties ended the training, where they have stop rules of their own; None: only the observer ends it."""

    def start(self) -> None:  # noqa: B027 - parties in this process need nothing
        """Start workers, open links. Called once, before anything else."""

    @abstractmethod
    def run(self, pausing: bool = False) -> Iterator[Progress | None]:
        """Deliver messages; yield whenever the parties hold one model, before it changes. Called once.

        With ``pausing``, None is yielded now and then between two observations, so that the caller can look at the
        clock. The iterator stays valid while it is not advanced: a pause lasts until the next item is asked for. It is
        exhausted when no message is under way, or when the parties have ended the training (``status``).
        """

    def skip_to(self, iteration: float) -> None:  # noqa: B027 - a hint
        """The observer needs no observation before this iteration.

        Engines in this process may ignore it. An engine with remote parties saves the round trips: its parties report
        to it again at the first progress that is not before this iteration.
        """

    @abstractmethod
    def parameters(self) -> list[Any]:
        """theta of the latest observation, client by client; of split networks, theta_0 comes last.

        After an interrupt in between, those that the clients hold. An engine in this process may return the clients'
        own arrays: read them before the next observation is asked for.
        """

    def seen(self) -> Seen | None:
        """What shows at the latest observation whether a split network diverges.

        None: the objective shows it, as of linear models, or the parties look themselves.
        """
        return None

    def snapshot(self) -> Snapshot:
        """The state of all parties at the latest observation."""
        raise MtcdError("These parties keep no checkpoints: train without checkpoint.")

    def resume(self, snapshot: Snapshot) -> None:
        """Continue from this snapshot, of the same training. Called after ``start``, before ``run``."""
        raise MtcdError("These parties keep no checkpoints: train without resume.")

    def stop(self) -> None:  # noqa: B027 - parties in this process need nothing
        """End all that ``start`` began. ``parameters`` can be asked for afterwards. Calling it again does nothing."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
