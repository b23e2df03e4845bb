"""Recipes of trainings: how a part of the parties is made in another process, from its own part of the data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from mtcd.methods.method import Method
from mtcd.model.linear import LinearProblem
from mtcd.network.topology import Network
from mtcd.protocol.party import Parties


@dataclass(frozen=True, eq=False)
class LinearShare:
    """The parties of a linear model, of which this process has some blocks."""

    method: Method
    network: Network
    seed: int
    problem: LinearProblem

    def parties(self) -> Parties:
        """The parties; blocks of clients elsewhere have no columns here."""
        return self.method.parties(self.problem, self.network, self.seed)

    def aggregate(self, parameters: Mapping[int, Any]) -> Any:
        """The sum of the representations of the clients here."""
        return sum(self.problem.blocks[k] @ theta for k, theta in parameters.items())


@dataclass(frozen=True, eq=False)
class MethodRecipe:
    """What recipes of all models have in common."""

    method: Method
    network: Network
    seed: int

    def together(self) -> Sequence[Sequence[int]] | None:
        """The clusters of tokens."""
        return self.method.token_clusters(self.network, self.seed)

    def device(self) -> str:
        """Where visits compute."""
        return "cpu"

    def bind(self, add_up: Callable[[Sequence[Any]], Any]) -> None:
        """Nothing to do where this process has the data for measurements."""


@dataclass(frozen=True, eq=False)
class LinearRecipe(MethodRecipe):
    """A linear model whose blocks are in this process: each share takes its own along."""

    problem: LinearProblem

    def weights(self) -> Sequence[int]:
        """The number of columns of each client."""
        return [max(1, block.shape[1]) for block in self.problem.blocks]

    def share(self, clients: Sequence[int]) -> LinearShare:
        """The parties with the blocks of these clients."""
        own = {k: self.problem.blocks[k] for k in clients}
        problem = replace(self.problem.with_blocks(own), evaluation=None)
        return LinearShare(self.method, replace(self.network), self.seed, problem)
