"""Split networks as a kind of model: see :class:`mtcd.training.kinds.ModelKind`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.training.stop import Stop

if TYPE_CHECKING:
    from mtcd.models.splitnet.training import SplitTraining
    from mtcd.training.kinds import Request


class SplitKind:
    """Split networks as a kind of model: how they are checked, and what is taken where nothing is
    given."""

    linear = False
    reads_sources = False

    def has_classes(self, model: Any, labels: NDArray[Any]) -> bool:
        from mtcd.models.splitnet.labels import find_loss

        _, classes = find_loss(model.loss, labels)
        return classes

    def check(self, asked: Request) -> None:
        """No scaling, and no start: the modules have their own parameters."""
        asked.refuse("is for a Glm: scale the features of a split network yourself.", "standardise")
        asked.refuse(
            "is for a Glm: to go on with networks, give the SplitModel the modules and the fusion "
            "of the run.",
            "start",
        )

    def default_method(self, model: Any) -> Method:
        """One that asks for a step size, which cannot be guessed."""
        return MTCD()

    def default_summing(self) -> None:
        """None that could be guessed either."""

    def default_stop(self, method: Method) -> Stop:
        """Epochs of mini-batches, or iterations."""
        if method.batch is None:
            return Stop(iterations=1000)
        return Stop(epochs=10)

    def training(self, asked: Request) -> SplitTraining:
        """The training that a request asks for; PyTorch is imported only now."""
        from mtcd.models.splitnet.training import SplitTraining

        return SplitTraining(asked)


SPLIT = SplitKind()
