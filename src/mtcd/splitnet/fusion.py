"""The server of a split network: the fusion module theta_0, updated on the aggregate that the server has."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from mtcd.splitnet.client import Draw, Surroundings
from mtcd.splitnet.feed import Feed
from mtcd.splitnet.modules import State, Trainable


class NetFusion:
    """theta_0, and the labels."""

    def __init__(self, net: Trainable, labels: Feed, around: Surroundings) -> None:
        self.net, self.labels, self.around = net, labels, around

    @property
    def size(self) -> int:
        """Numbers in theta_0."""
        return self.net.size

    def values(self) -> list[Tensor]:
        """theta_0 as it is now."""
        return self.net.values()

    def weights(self) -> State:
        """Parameters and statistics of the module itself, not copies."""
        return self.net.weights()

    def memory(self) -> State:
        """All that it must not forget."""
        return self.net.memory()

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        """Put it back."""
        self.net.remember(memory)

    def improve(self, H: Tensor, t: int, steps: int, eta: float) -> None:
        """Steps of theta_0 on the aggregate of iteration t."""
        y = self.labels.batch(t)
        for q in range(steps if self.net.parameters else 0):
            self.update(H, y, (t,), eta, track=q == 0)

    @property
    def number(self) -> int:
        """Of the server among the parties, for its draws: after all clients."""
        return len(self.around.aggregation.widths)

    def update(self, H: Tensor, y: Tensor, draw: Draw, eta: float | None, track: bool) -> None:
        """One step of theta_0 along its gradient."""
        with self.net.tracking(track), self.around.precision(), self.around.drawing(self.number, draw):
            outputs: Tensor = self.net.module(H)
        self.net.move(self.net.gradients(self.around.loss(outputs.float(), y)), eta)
