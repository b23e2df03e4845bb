"""A training: a model on its data, with a method over a network; and its recipe, by which a part of the
parties is made in another process, from its own part of the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from mtcd.data.vertical import Block
from mtcd.methods.conditions import Account
from mtcd.methods.method import Method, token_clusters
from mtcd.network.topology import Network
from mtcd.protocol.engine import Recipe
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.model import Problem
from mtcd.protocol.party import Parties
from mtcd.protocol.transports.transport import TRANSPORTS
from mtcd.training.checkpoints import Checkpoints
from mtcd.training.history import Measurement
from mtcd.training.pace import Growing, Pace
from mtcd.training.stop import Stop


@dataclass(frozen=True, eq=False)
class MethodRecipe:
    """What recipes of all models have in common."""

    method: Method
    network: Network
    seed: int

    def together(self) -> Sequence[Sequence[int]] | None:
        """The clusters of tokens."""
        return token_clusters(self.method, self.network, self.seed)

    def device(self) -> str:
        """Where visits compute: NumPy has the CPU alone."""
        return "cpu"

    def bind(self, add_up: Callable[[Sequence[Any]], Any]) -> None:
        """Nothing to do where this process has the data for measurements."""


class BlockProblem(Problem, Protocol):
    """The models of all clients, each on a block: linear models, trees, mixed families."""

    @property
    def blocks(self) -> Sequence[Block]:
        """The block of each client."""

    def with_blocks(self, own: Mapping[int, Block]) -> Self:
        """The problem of a process that has these blocks only."""


@dataclass(frozen=True, eq=False)
class BlockShare:
    """The parties of a model of which this process has some blocks."""

    method: Method
    network: Network
    seed: int
    problem: BlockProblem

    def parties(self) -> Parties:
        """The parties; blocks of clients elsewhere have no columns here."""
        return self.method.parties(self.problem, self.network, self.seed)

    def aggregate(self, parameters: Mapping[int, Any]) -> Any:
        """The sum of the representations of the clients here."""
        # Only those here: the engine adds up what all processes find.
        return sum(self.problem.client(k).represent(theta) for k, theta in parameters.items())


@dataclass(frozen=True, eq=False)
class BlockRecipe(MethodRecipe):
    """A model whose blocks are in this process: each share takes its own along."""

    problem: BlockProblem

    def weights(self) -> Sequence[int]:
        """The number of columns of each client."""
        # At least 1: a client without columns is visited, too.
        return [max(1, block.shape[1]) for block in self.problem.blocks]

    def share(self, clients: Sequence[int]) -> BlockShare:
        """The parties with the blocks of these clients."""
        own = self.problem.with_blocks({k: self.problem.blocks[k] for k in clients})
        # Sizes of all blocks, from the whole problem: a share has only its own.
        method = self.method.conditions.with_sizes(self.method, self.problem)
        return BlockShare(method, replace(self.network), self.seed, own)


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

    def chosen(self, slots: Mapping[str, Any]) -> tuple[str, ...]:
        """Notes on what was chosen on the way, from what the last token carries."""
        return ()

    def end_notes(self, begun: int, rows: Sequence[Measurement]) -> tuple[str, ...]:
        """The notes on a training that has ended, after so many iterations were begun."""
        return self.method.conditions.end_notes(self.network, begun)
