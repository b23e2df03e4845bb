"""The training of a linear model whose blocks are read where their clients are hosted, and never
come here."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from mtcd.core.errors import ConfigError
from mtcd.data.standardise import Scaling
from mtcd.data.vertical import VerticalData
from mtcd.methods.method import resolve_stepsize
from mtcd.models.glm.checkpoints import linear_checkpoints
from mtcd.models.glm.reports import ReportedSmoothness
from mtcd.models.glm.sourced_recipe import Adder, BlockReader, SourcedProblem, SourcedRecipe
from mtcd.models.glm.training import LinearTraining, evaluation_of
from mtcd.models.losses.own import check_own_loss
from mtcd.training.divergence import worst_end_of
from mtcd.training.kinds import Request


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
