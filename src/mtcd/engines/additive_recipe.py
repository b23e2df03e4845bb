"""The recipe of trees and mixed families: how the parties of some clients are made in another process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mtcd.engines.recipes import MethodRecipe
from mtcd.families.problem import AdditiveProblem
from mtcd.families.trees import TreeFamily
from mtcd.methods.method import Method
from mtcd.network.topology import Network
from mtcd.protocol.party import Parties

PLACEHOLDER = TreeFamily()  # of clients elsewhere: trees make nothing before their first visit


@dataclass(frozen=True, eq=False)
class AdditiveShare:
    """The parties of an additive model, of which this process has some blocks."""

    method: Method
    network: Network
    seed: int
    problem: AdditiveProblem

    def parties(self) -> Parties:
        """The parties; blocks of clients elsewhere have no columns here."""
        return self.method.parties(self.problem, self.network, self.seed)

    def aggregate(self, parameters: Mapping[int, Any]) -> Any:
        """The sum of the representations of the clients here."""
        return sum(self.problem.client(k).represent(theta) for k, theta in parameters.items())


@dataclass(frozen=True, eq=False)
class AdditiveRecipe(MethodRecipe):
    """Trees or mixed families whose blocks are in this process: each share takes its own along."""

    problem: AdditiveProblem

    def weights(self) -> Sequence[int]:
        """The number of columns of each client."""
        return [max(1, block.shape[1]) for block in self.problem.blocks]

    def share(self, clients: Sequence[int]) -> AdditiveShare:
        """The parties with the families and blocks of these clients."""
        whole, own = self.problem, set(clients)
        nothing = np.zeros((whole.samples, 0))
        K = range(len(whole.blocks))
        part = AdditiveProblem(
            tuple(whole.families[k] if k in own else PLACEHOLDER for k in K),
            tuple(whole.blocks[k] if k in own else nothing for k in K),
            tuple(whole.categorical[k] if k in own else () for k in K),
            whole.fit,
            whole.shift,
            whole.classes,
            whole.seed,
        )
        return AdditiveShare(self.method, replace(self.network), self.seed, part)
