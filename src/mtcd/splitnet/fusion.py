"""The server of a split network: the fusion module theta_0, updated on the aggregate that the server has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.func import functional_call

from mtcd.splitnet.client import Draw, Surroundings
from mtcd.splitnet.feed import Feed
from mtcd.splitnet.modules import State, Trainable

CHUNK = 1000  # samples that are evaluated at once


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

    def local_update(self, H: Tensor, t: int, steps: int, eta: float) -> Tensor:
        """Steps of theta_0 on the aggregate of iteration t; returns the loss before the first."""
        if not self.net.parameters:
            return self.loss(H, (), t)
        y = self.labels.batch(t)
        first, *_ = [self.update(H, y, (t,), eta, track=q == 0) for q in range(steps)]
        return first

    def loss(self, H: Tensor, theta_0: Sequence[Tensor], t: int) -> Tensor:
        """The loss of this aggregate and theta_0 on the batch of iteration t, in training mode. Nothing changes: what
        modules keep in mind of a pass, they keep in copies.
        """
        y, module, around = self.labels.batch(t), self.net.module, self.around
        named = [name for name, value in module.named_parameters() if value.requires_grad]
        held = {name: value.clone() for name, value in module.named_buffers()}
        held |= dict(zip(named, theta_0, strict=True))
        with torch.no_grad(), around.precision(), around.drawing(self.number, (t,)):
            return around.loss(functional_call(module, held, (H,)).float(), y)

    def blank_loss(self) -> float:
        """The loss on all samples, in evaluation mode, if all representations were 0."""
        y, around, total = self.labels.source.rows(None), self.around, 0.0
        with self.net.evaluating(), around.precision():
            for labels in torch.split(y, CHUNK):
                H = torch.zeros(len(labels), around.aggregation.width, device=around.device)
                total += float(around.loss(self.net.module(H).float(), labels)) * len(labels)
        return total / len(y)

    @property
    def number(self) -> int:
        """Of the server among the parties, for its draws: after all clients."""
        return len(self.around.aggregation.widths)

    def update(self, H: Tensor, y: Tensor, draw: Draw, eta: float | None, track: bool) -> Tensor:
        """One step of theta_0 along its gradient; returns the loss before it."""
        with self.net.tracking(track), self.around.precision(), self.around.drawing(self.number, draw):
            outputs: Tensor = self.net.module(H)
        loss = self.around.loss(outputs.float(), y)
        self.net.move(self.net.gradients(loss), eta)
        return loss.detach()
