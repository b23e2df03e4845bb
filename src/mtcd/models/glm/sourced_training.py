"""The training of a linear model whose blocks are read where their clients are hosted, and never
come here."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mtcd.core.errors import ConfigError
from mtcd.data.sources import BlockSources
from mtcd.data.standardise import Scaling
from mtcd.data.vertical import VerticalData
from mtcd.engines.kinds import EngineSettings
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.models.glm.checkpoints import linear_checkpoints
from mtcd.models.glm.model import Glm
from mtcd.models.glm.reports import ReportedSmoothness
from mtcd.models.glm.sourced_recipe import Adder, SourcedProblem, SourcedRecipe, Survey
from mtcd.models.glm.training import LinearTraining, evaluation_of
from mtcd.models.losses.own import check_own_loss
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.divergence import worst_end_of
from mtcd.training.kinds import Request
from mtcd.training.stop import Stop


class _Outline(VerticalData):
    """Data without its blocks; ``digest`` is what identifies them."""

    digest: str

    @property
    def fingerprint(self) -> str:
        """The digest of all blocks and labels."""
        return self.digest


class SourcedTraining(LinearTraining):
    """As :class:`LinearTraining`, for blocks that only the processes of an engine have."""

    def __init__(
        self,
        data: BlockSources,
        model: Glm,
        network: Network,
        method: Method,
        stop: Stop,
        seed: int,
        standardise: bool,
        engine: EngineSettings,
        costs: Costs | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        metrics: Sequence[str] | None = None,
    ) -> None:
        if stop.gap is not None:
            raise ConfigError(
                "stop.gap needs the optimum, and this process does not have the data: use "
                "stop.iterations or plateau."
            )
        self.model, self.network, self.seed, self.sources = model, network, seed, data
        found = engine.map(Survey(data, model, standardise), range(len(data.clients)))
        self.scaling = None
        if standardise:
            own = [one.scaling for one in found if one.scaling is not None]
            self.scaling = Scaling(
                tuple(one.means[0] for one in own), tuple(one.scales[0] for one in own)
            )
        outline = data.outline()
        digest = hashlib.blake2b(
            "".join(one.fingerprint for one in found).encode(), digest_size=16
        ).hexdigest()
        notes = dict.fromkeys(note for one in found for note in one.notes)
        self.data = _Outline(**{**vars(outline), "notes": (*outline.notes, *notes)})
        object.__setattr__(self.data, "digest", digest)
        loss, labels, classes = model.weighted(data.labels, data.weights)
        check_own_loss(model.loss, labels)
        empty = SourcedProblem(
            loss, labels, classes, (), model.penalties(len(data.clients)), adder=Adder()
        )
        evaluation = evaluation_of(model, self.data, classes, metrics)
        self.problem = replace(empty.with_blocks({}), evaluation=evaluation)
        self.scalings = [one.scaling for one in found]
        self.stop = stop.at_most(method.most_iterations(self.problem))
        self.smoothness = ReportedSmoothness(self.problem, tuple(one.curvature for one in found))
        self.method, self._stepsize_notes = resolve_stepsize(method, self.smoothness)
        self.worst_end = worst_end_of(self.method, linear=True)
        self.checkpoints = None
        if checkpoint is not None:
            self.checkpoints = linear_checkpoints(
                Path(checkpoint), resume, self.data, model, network, method, costs or Costs(), seed
            )

    def recipe(self) -> SourcedRecipe:  # type: ignore[override]
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


class LinearKind:
    """Generalised linear models."""

    linear = True
    reads_sources = True

    def check(self, asked: Request) -> None:
        """Tables only, and no device."""
        if isinstance(asked.data, BlockSources):
            asked.refuse(
                "needs the data in this process: give data.read() instead of its sources.", "start"
            )
        elif not isinstance(asked.data, VerticalData):
            raise ConfigError(
                "A Glm is trained on VerticalData, a table: make it with mtcd.split or "
                "mtcd.read_tables."
            )
        else:
            asked.refuse("is for split networks: leave it out for a Glm.", "compute")

    def default_stop(self, method: Method) -> Stop:
        """Many iterations: each takes microseconds."""
        return Stop(iterations=10_000)

    def training(self, asked: Request) -> LinearTraining:
        """The training; ``SourcedTraining`` where the blocks stay with the processes of an
        engine."""
        a = asked
        assert a.stop is not None
        if isinstance(a.data, BlockSources):
            assert a.engine is not None
            sourced = (
                a.data,
                a.model,
                a.network,
                a.method,
                a.stop,
                a.seed,
                a.standardise,
                a.engine,
            )
            return SourcedTraining(*sourced, a.costs, a.checkpoint, a.resume, a.metrics)
        parts = (a.data, a.model, a.network, a.method, a.stop, a.seed, a.standardise)
        return LinearTraining(*parts, a.costs, a.checkpoint, a.resume, a.metrics, a.start)


LINEAR = LinearKind()
