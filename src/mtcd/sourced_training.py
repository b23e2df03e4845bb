"""The training of a linear model whose blocks are read where their clients are hosted, and never come here."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mtcd.data.scaling import Scaling
from mtcd.data.sources import BlockSources
from mtcd.data.vertical import VerticalData
from mtcd.divergence import worst_end_of
from mtcd.engines.kinds import EngineSettings
from mtcd.engines.sourced_recipe import Adder, SourcedProblem, SourcedRecipe, Survey
from mtcd.errors import ConfigError
from mtcd.ledger.costs import Costs
from mtcd.linear_checkpoints import linear_checkpoints
from mtcd.linear_training import LinearTraining, evaluation_of
from mtcd.methods.method import Method, resolve_stepsize
from mtcd.model.linear import Glm
from mtcd.network.topology import Network
from mtcd.stop import Stop
from mtcd.theory.reports import ReportedSmoothness


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
                "stop.gap needs the optimum, and this process does not have the data: use stop.iterations or plateau."
            )
        self.model, self.network, self.seed, self.sources = model, network, seed, data
        found = engine.map(Survey(data, model, standardise), range(len(data.clients)))
        self.scaling = None
        if standardise:
            own = [one.scaling for one in found if one.scaling is not None]
            self.scaling = Scaling(tuple(one.means[0] for one in own), tuple(one.scales[0] for one in own))
        outline = data.outline()
        digest = hashlib.blake2b("".join(one.fingerprint for one in found).encode(), digest_size=16).hexdigest()
        notes = dict.fromkeys(note for one in found for note in one.notes)
        self.data = _Outline(**{**vars(outline), "notes": (*outline.notes, *notes)})
        object.__setattr__(self.data, "digest", digest)
        loss, labels, classes = model.weighted(data.labels, data.weights)
        empty = SourcedProblem(loss, labels, classes, (), model.penalties(len(data.clients)), adder=Adder())
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
            self.method, self.network, self.seed, self.model, self.sources, self.problem, self.scalings
        )
