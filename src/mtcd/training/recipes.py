"""Recipes of trainings: how a part of the parties is made in another process, from its own part of
the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

from mtcd.data.vertical import Block
from mtcd.methods.method import Method
from mtcd.methods.token_method import token_clusters
from mtcd.network.topology import Network
from mtcd.protocol.model import Problem
from mtcd.protocol.party import Parties


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
