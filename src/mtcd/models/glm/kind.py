"""Linear models as a kind of model: see :class:`mtcd.training.kinds.ModelKind`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mtcd.core.errors import ConfigError
from mtcd.data.sources import BlockSources
from mtcd.data.vertical import VerticalData
from mtcd.methods.default import registered
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.training.stop import Stop

if TYPE_CHECKING:
    from mtcd.models.glm.training import LinearTraining
    from mtcd.training.kinds import Request


class LinearKind:
    """Generalised linear models: trained on tables, in this process or where the blocks are."""

    linear = True
    reads_sources = True

    def has_classes(self, model: Any, labels: NDArray[Any]) -> bool:
        _, _, classes = model.weighted(labels)
        return bool(classes)

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

    def default_method(self, model: Any) -> Method:
        """Accelerated tours; an l1 penalty leaves only some accelerations."""
        # A method is a feature, and may be missing here: the fallback is of the core.
        return registered("l1" if model.l1 else "smooth", lambda: STCD(walk="tour"))

    def default_summing(self) -> Method:
        """Rounds, or two tokens: a single one is no sum."""
        return registered("sums", lambda: MTCD(tokens=2))

    def default_stop(self, method: Method) -> Stop:
        """Many iterations: each takes microseconds."""
        return Stop(iterations=10_000)

    def training(self, asked: Request) -> LinearTraining:
        """The training; that of sources where the blocks stay with the processes of an engine."""
        if isinstance(asked.data, BlockSources):
            from mtcd.models.glm.sourced_training import SourcedTraining

            return SourcedTraining(asked)

        from mtcd.models.glm.training import LinearTraining

        return LinearTraining(asked)


LINEAR = LinearKind()
