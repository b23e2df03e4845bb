"""The training of a linear model whose blocks are read where their clients are hosted, and never
come here."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.data.sources import BlockSources
from mtcd.data.standardise import Scaling, standardise
from mtcd.data.vertical import Block, VerticalData
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.models.glm.checkpoints import linear_checkpoints
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.models.glm.reports import Curvature, ReportedSmoothness, curvature_of
from mtcd.models.glm.training import LinearTraining, evaluation_of
from mtcd.models.losses.own import check_own_loss
from mtcd.network.topology import Network
from mtcd.protocol.party import Parties
from mtcd.training.divergence import worst_end_of
from mtcd.training.kinds import Request
from mtcd.training.training import MethodRecipe


class _Outline(VerticalData):
    """Data without its blocks; ``digest`` is what identifies them."""

    digest: str

    @property
    def fingerprint(self) -> str:
        """The digest of all blocks and labels."""
        return self.digest


class SourcedTraining(LinearTraining):
    """As :class:`LinearTraining`, for blocks that only the processes of an engine have."""

    def __init__(self, asked: Request) -> None:
        # Without super().__init__: it would build the problem from blocks, which are not here.
        data, model, network, method = asked.data, asked.model, asked.network, asked.method
        stop, engine = asked.stop, asked.engine
        assert stop is not None  # a request is complete when its training is made
        assert engine is not None  # its processes have the data
        if stop.gap is not None:
            raise ConfigError(
                "stop.gap needs the optimum, and this process does not have the data: use "
                "stop.iterations or plateau."
            )
        self.model, self.network, self.seed, self.sources = model, network, asked.seed, data
        found = engine.map(BlockReader(data, model, asked.standardise), range(len(data.clients)))
        self.scaling = None
        if asked.standardise:
            own = [one.scaling for one in found if one.scaling is not None]
            self.scaling = Scaling(
                tuple(one.means[0] for one in own), tuple(one.scales[0] for one in own)
            )
        outline = data.outline()
        # In the order of clients: the same tables at other clients are other data.
        digest = hashlib.blake2b(
            "".join(one.fingerprint for one in found).encode(), digest_size=16
        ).hexdigest()
        notes = dict.fromkeys(note for one in found for note in one.notes)
        self.data = _Outline(**{**vars(outline), "notes": (*outline.notes, *notes)})
        # The outline is frozen; the digest stands for blocks that it does not have.
        object.__setattr__(self.data, "digest", digest)
        loss, labels, classes = model.weighted(data.labels, data.weights)
        check_own_loss(model.loss, labels)
        empty = SourcedProblem(
            loss, labels, classes, (), model.penalties(len(data.clients)), adder=Adder()
        )
        evaluation = evaluation_of(model, self.data, classes, asked.metrics)
        self.problem = replace(empty.with_blocks({}), evaluation=evaluation)
        self.scalings = [one.scaling for one in found]
        self.stop = stop.at_most(method.conditions.most_iterations(self.problem))
        self.smoothness = ReportedSmoothness(self.problem, tuple(one.curvature for one in found))
        self.method, self._stepsize_notes = resolve_stepsize(method, self.smoothness)
        self.worst_end = worst_end_of(self.method, linear=True)
        self.checkpoints = linear_checkpoints(asked, self.data)

    def recipe(self) -> SourcedRecipe:
        """The parties in the processes that read the blocks."""
        assert isinstance(self.problem, SourcedProblem)
        return SourcedRecipe(
            self.method,
            self.network,
            self.seed,
            self.model,
            self.sources,
            self.problem,
            self.scalings,
        )


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
