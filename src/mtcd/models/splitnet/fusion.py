"""The fusion module theta_0 at the server, updated on the aggregate of the iteration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.func import functional_call

from mtcd.models.splitnet.client import Draw, Surroundings
from mtcd.models.splitnet.feed import Feed
from mtcd.models.splitnet.modules import State, Trainable

CHUNK = 1000  # samples per evaluation batch


class NetFusion:
    """The fusion module and the labels."""

    def __init__(self, net: Trainable, labels: Feed, around: Surroundings) -> None:
        self.net = net
        self.labels = labels
        self.around = around

    @property
    def size(self) -> int:
        """How many numbers theta_0 has: what a token without a server carries beside the
        aggregate."""
        return self.net.size

    def values(self) -> list[Tensor]:
        """A copy of the current theta_0."""
        return self.net.values()

    def weights(self) -> State:
        """Parameters and statistics of the module itself, not copies."""
        return self.net.weights()

    def full_state(self) -> State:
        """All that a training continues from: parameters, running statistics and the optimiser."""
        return self.net.full_state()

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Restore a complete state."""
        self.net.restore(memory)

    def local_update(self, H: Tensor, t: int, steps: int, eta: float) -> Tensor:
        """Steps of theta_0 on the aggregate of iteration t; returns the loss before the first."""
        if not self.net.parameters:
            return self.loss(H, (), t)
        y = self.labels.batch(t)
        # Running statistics see the batch once, however many steps are taken on it.
        losses = [self.update(H, y, (t,), eta, track=q == 0) for q in range(steps)]
        return losses[0]

    def loss(self, H: Tensor, theta_0: Sequence[Tensor], t: int) -> Tensor:
        """The loss of this aggregate and theta_0 on the batch of iteration t, in training mode,
        without side effects: running statistics are updated in copies.
        """
        y = self.labels.batch(t)
        module = self.net.module
        around = self.around
        named = [name for name, value in module.named_parameters() if value.requires_grad]
        # `functional_call` writes new statistics into what it is given, so these are copies.
        held = {name: value.clone() for name, value in module.named_buffers()}
        held |= dict(zip(named, theta_0, strict=True))
        with torch.no_grad(), around.precision(), around.drawing(self.number, (t,)):
            return around.loss(functional_call(module, held, (H,)).float(), y)

    def blank_loss(self) -> float:
        """The loss on all samples, in evaluation mode, if all representations were 0."""
        y = self.labels.source.rows(None)
        around = self.around
        total = 0.0
        with self.net.evaluating(), around.precision():
            for labels in torch.split(y, CHUNK):
                H = torch.zeros(len(labels), around.aggregation.width, device=around.device)
                total += float(around.loss(self.net.module(H).float(), labels)) * len(labels)
        return total / len(y)

    @property
    def number(self) -> int:
        """The number of the server in seeds of dropout masks: K."""
        return len(self.around.aggregation.widths)

    def update(self, H: Tensor, y: Tensor, draw: Draw, eta: float | None, track: bool) -> Tensor:
        """One step of theta_0 along its gradient; returns the loss before it."""
        with (
            self.net.tracking(track),
            self.around.precision(),
            self.around.drawing(self.number, draw),
        ):
            outputs: Tensor = self.net.module(H)
        loss = self.around.loss(outputs.float(), y)
        self.net.move(self.net.gradients(loss), eta)
        return loss.detach()
