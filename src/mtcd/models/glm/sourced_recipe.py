"""The recipe of a linear model whose blocks are read where their clients are hosted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mtcd.core.arrays import Array
from mtcd.data.sources import BlockSources
from mtcd.data.standardise import Scaling, standardise
from mtcd.data.vertical import Block, VerticalData
from mtcd.methods.method import Method
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.models.glm.reports import Curvature, curvature_of
from mtcd.network.topology import Network
from mtcd.protocol.party import Parties
from mtcd.training.recipes import MethodRecipe


@dataclass(frozen=True, eq=False)
class Surveyed:
    """What this process is told about a block: a few numbers, and two per column if columns are
    scaled."""

    curvature: Curvature
    fingerprint: str
    scaling: Scaling | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class BlockReader:
    """Reads the block of a client and describes it, in another process."""

    data: BlockSources
    model: Glm
    standardise: bool

    def __call__(self, k: int) -> Surveyed:
        data = self.data
        block = data.block(k)
        own = VerticalData(
            # Before scaling: the fingerprint identifies the table, whatever is made of it.
            (data.clients[k],),
            (data.columns[k],),
            (block,),
            data.labels,
            weights=data.weights,
        )
        digest, scaling = own.fingerprint, None
        if self.standardise:
            own, scaling = standardise(own)
        loss, _, _ = self.model.weighted(data.labels, data.weights)
        penalty = self.model.penalties(len(data.clients))[k]
        return Surveyed(
            curvature_of(self.model.block(k, own.blocks[0]), loss, penalty.l2),
            digest,
            scaling,
            own.notes,
        )


@dataclass(eq=False)
class SourcedShare:
    """The parties of a linear model; the blocks of its own clients are read when they are made."""

    method: Method
    network: Network
    seed: int
    model: Glm
    data: BlockSources
    problem: LinearProblem
    """Without blocks."""
    scalings: Mapping[int, Scaling | None]
    _whole: LinearProblem | None = field(default=None, repr=False)

    def parties(self) -> Parties:
        """The parties; blocks of clients elsewhere have no columns here."""
        # Read once: the parties are made again when a training is resumed.
        if self._whole is None:
            self._whole = self.problem.with_blocks({k: self._block(k) for k in self.scalings})
        return self.method.parties(self._whole, self.network, self.seed)

    def _block(self, k: int) -> Block:
        block, scaling = self.data.block(k), self.scalings[k]
        if scaling is not None:
            (block,) = scaling.apply((block,))
        return self.model.block(k, block)

    def aggregate(self, parameters: Mapping[int, Array]) -> Array:
        """The sum of the representations of the clients here."""
        assert self._whole is not None
        return sum(
            (self._whole.blocks[k] @ theta for k, theta in parameters.items()),
            np.zeros(self.problem.labels.shape),
        )


@dataclass(frozen=True, eq=False)
class SourcedProblem(LinearProblem):
    """A linear model without blocks: ``adder`` computes the aggregate where the blocks are."""

    adder: Adder | None = None

    def aggregate(self, parameters: Sequence[Array]) -> Array:
        assert self.adder is not None
        return self.adder.add_up(parameters)


class Adder:
    """Computes the aggregate of parameters in other processes, once an engine has them."""

    add_up: Callable[[Sequence[Array]], Array]


@dataclass(frozen=True, eq=False)
class SourcedRecipe(MethodRecipe):
    """A linear model whose blocks are elsewhere."""

    model: Glm
    data: BlockSources
    problem: SourcedProblem
    scalings: Sequence[Scaling | None]

    def weights(self) -> Sequence[int]:
        """The number of columns of each client."""
        # A client without columns still costs a visit.
        return [max(1, len(columns)) for columns in self.data.columns]

    def share(self, clients: Sequence[int]) -> SourcedShare:
        """The parties with the sources of these clients."""
        common = LinearProblem(
            self.problem.loss, self.problem.labels, self.problem.classes, (), self.problem.penalties
        )
        own = {k: self.scalings[k] for k in clients}
        return SourcedShare(
            # A copy of the network: its caches of walks and tours are of this process.
            self.method,
            replace(self.network),
            self.seed,
            self.model,
            self.data,
            common,
            own,
        )

    def bind(self, add_up: Callable[[Sequence[Array]], Array]) -> None:
        """An engine has started: it adds up the representations."""
        assert self.problem.adder is not None
        self.problem.adder.add_up = add_up
