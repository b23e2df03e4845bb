"""Additive models as a kind of model: see :class:`mtcd.training.kinds.ModelKind`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mtcd.core.errors import ConfigError
from mtcd.data.vertical import VerticalData
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.training.stop import Stop

if TYPE_CHECKING:
    from mtcd.models.trees.training import AdditiveTraining
    from mtcd.training.kinds import Request


class AdditiveKind:
    """Boosted trees, and other families whose outputs are added."""

    linear = True
    reads_sources = False

    def has_classes(self, model: Any, labels: NDArray[Any]) -> bool:
        _, _, classes = model.weighted(labels)
        return bool(classes)

    def check(self, asked: Request) -> None:
        """Tables only; trees need no scaling, no device and no start."""
        if not isinstance(asked.data, VerticalData):
            raise ConfigError(
                "Trees are trained on VerticalData, a table: make it with mtcd.split or "
                "mtcd.read_tables."
            )
        asked.refuse("is not for trees: leave it out.", "compute", "standardise", "start")

    def default_method(self, model: Any) -> Method:
        """A plain tour, which visits parties equally often."""
        # Every party is visited equally often, so each has the same chance to grow trees.
        return STCD(walk="tour")

    def default_summing(self) -> Method:
        """Two tokens: trees need tokens, and a single one is no sum."""
        return MTCD(tokens=2)

    def default_stop(self, method: Method) -> Stop:
        """Few iterations, because each grows trees."""
        return Stop(iterations=100)

    def training(self, asked: Request) -> AdditiveTraining:
        """The training of a complete request."""
        from mtcd.models.trees.training import AdditiveTraining

        return AdditiveTraining(asked)


ADDITIVE = AdditiveKind()
