"""A training: a model on its data, with a method over a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from mtcd.methods.conditions import Account
from mtcd.methods.method import Method
from mtcd.network.topology import Network
from mtcd.protocol.engine import Recipe
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.protocol.transports.transport import TRANSPORTS
from mtcd.training.checkpoints import Checkpoints
from mtcd.training.history import Measurement
from mtcd.training.pace import Growing, Pace
from mtcd.training.recipes import BlockRecipe
from mtcd.training.stop import Stop


class Training(ABC):
    """What differs between kinds of models when they are trained.

    Every kind sets the attributes below. The methods are those of models whose clients hold a block
    of a table each, in this process; other kinds override them.
    """

    network: Network
    method: Method
    """The method, with a step size that is resolved."""
    stop: Stop
    seed: int
    worst_end: float
    """The multiple of the first objective that is allowed at the end."""
    problem: Any
    """The models of all clients, which are measured: a ``Problem`` and a ``Scored``."""
    checkpoints: Checkpoints | None = None
    """The checkpoint file, if any."""

    @property
    def best(self) -> float | None:
        """f*, if a gap is requested."""
        return None

    @property
    def pace(self) -> Pace:
        """The spacing of measurements: one whenever the iterations have grown by 1%."""
        return Growing(self.stop.epoch(self.method, self.problem.samples))

    @property
    @abstractmethod
    def notes(self) -> tuple[str, ...]:
        """The notes of the run, for the user."""

    def computing(self) -> AbstractContextManager[object]:
        """The context in which the training runs."""
        return nullcontext()

    def parties(self) -> Parties:
        """The parties, ready to start."""
        return self.method.parties(self.problem, self.network, self.seed)

    def recipe(self) -> Recipe:
        """How the same parties are made in several processes."""
        return BlockRecipe(self.method, self.network, self.seed, self.problem)

    def ledger(self) -> Ledger:
        """An empty ledger; the bytes of a number are those of the transport."""
        return Ledger(float_bytes=TRANSPORTS[self.method.transport].dtype.itemsize)

    def account(self) -> Account:
        """The account in which the training is entered."""
        return Account()

    @abstractmethod
    def trained(self, parameters: Sequence[Any]) -> Any:
        """The model with these parameters; None if they are not finite."""

    @abstractmethod
    def divergence(self, measured: bool) -> str:
        """The reason of a divergence, and advice; ``measured``: whether there is any
        measurement."""

    def end_notes(self, begun: int, rows: Sequence[Measurement]) -> tuple[str, ...]:
        """The notes on a training that has ended, after so many iterations were begun."""
        return self.method.conditions.end_notes(self.network, begun)
