"""Client k of a split network: forward passes and local updates on a batch. ``graphs.py`` is the
fast version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

import torch
from torch import Tensor

from mtcd.core.errors import ConfigError
from mtcd.models.splitnet.aggregation import Aggregation
from mtcd.models.splitnet.feed import Feed, draw_seed
from mtcd.models.splitnet.modules import State, Trainable, seeded
from mtcd.models.splitnet.optimiser import STARTS_NONZERO
from mtcd.protocol.model import Visit

Loss = Callable[[Tensor, Tensor], Tensor]
Draw = tuple[int, ...] | None
"""The seed of dropout masks, beside those of the training and the party; None: the caller sets the
generator."""
CONTRIBUTION = "contribution"
HEAD = "head."


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The settings that all parties share. ``draws``: whether any module draws random numbers."""

    loss: Loss
    aggregation: Aggregation
    device: torch.device
    mixed: bool
    seed: int
    draws: bool

    def precision(self) -> AbstractContextManager[object]:
        """The context in which networks run, in bfloat16 with mixed precision."""
        if not self.mixed:
            return nullcontext()
        # Casts are not cached: the cache would hold copies of parameters that an update has changed
        # since.
        return torch.autocast(
            self.device.type,
            dtype=torch.bfloat16,
            cache_enabled=False,
        )

    @contextmanager
    def drawing(self, party: int, draw: Draw) -> Iterator[None]:
        """The context in which dropout draws the masks of this party and draw: the same in all
        updates of a visit."""
        # Without a draw the caller has set the generator, as a recorded graph needs it.
        seed = None
        if self.draws and draw is not None:
            seed = draw_seed(self.seed, "dropout", party, *draw)
        with seeded(seed, self.device):
            yield


class NetClient:
    """Client k: its network, its own copy of the fusion module, its features and the labels.

    ``contribution`` is h_k as contained in the token, which an update replaces. It is None, which
    counts as 0, before the first: without a server, a token visits its clients one after the other.
    The network holds one of the copies theta_k(gamma); the party holds the others, each as a
    ``State``.
    """

    def __init__(
        self,
        k: int,
        net: Trainable,
        fusion: Trainable,
        features: Feed,
        labels: Feed,
        around: Surroundings,
    ) -> None:
        self.k = k
        self.net = net
        self.fusion = fusion
        self.around = around
        self.features, self.labels = features, labels
        self.contribution: Tensor | None = None

    def represent(self, t: int) -> Tensor:
        """h_k on the batch of iteration t, in training mode; this pass updates the running
        statistics."""
        self.contribution = self.forward(
            self.net.laid_out(self.features.batch(t)), (t,), track=True
        )
        return self.contribution

    def join(self, H: Tensor, t: int) -> Tensor:
        """H with h_k on the batch of iteration t added, unless H contains it."""
        if self.contribution is not None:
            return H
        return self.around.aggregation.put(H, self.k, self.represent(t))

    def forward(self, x: Tensor, draw: Draw, track: bool) -> Tensor:
        """h_k of these samples, without gradients."""
        with (
            torch.no_grad(),
            self.net.tracking(track),
            self.around.precision(),
            self.around.drawing(self.k, draw),
        ):
            h: Tensor = self.net.module(x)
        return h.float()

    def local_update(self, H: Tensor, theta_0: Sequence[Tensor], visit: Visit) -> Tensor:
        """Q local updates of theta_k, and of theta_0 in place if ``visit.fuses``; returns the new H
        of the token."""
        x = self.net.laid_out(self.features.batch(visit.t))
        y = self.labels.batch(visit.t)
        aggregation = self.around.aggregation
        # Before the first contribution of this client, the token does not contain it.
        rest = H if self.contribution is None else aggregation.rest(H, self.k, self.contribution)
        self.fusion.put(theta_0)
        for _ in range(visit.local_updates):
            self.update(rest, x, y, visit.draw, visit.stepsize, visit.fuses)
        # The token must contain what the new theta_k gives: H + h_k(new) - h_k(old) of the paper.
        self.contribution = self.forward(x, visit.draw, track=visit.updates_statistics)
        if visit.fuses:
            for carried, updated in zip(theta_0, self.fusion.values(), strict=True):
                carried.copy_(updated)
        return aggregation.put(rest, self.k, self.contribution)

    def update(
        self, rest: Tensor, x: Tensor, y: Tensor, draw: Draw, eta: float | None, fuse: bool
    ) -> None:
        """One step of theta_k along its partial gradient; with ``fuse``, of theta_0 along its own.

        Without ``eta``, the step size is the one that was set last.
        """
        moving = [self.net, self.fusion] if fuse else [self.net]
        parameters = [parameter for one in moving for parameter in one.parameters]
        loss = self.objective(rest, x, y, draw)
        # One backward pass for both: theta_k and theta_0 step from the same point, as in the paper.
        # Parameters that the loss does not depend on get zeros.
        gradients = iter(torch.autograd.grad(loss, parameters, materialize_grads=True))
        for one in moving:
            one.move([next(gradients) for _ in one.parameters], eta)

    def objective(self, rest: Tensor, x: Tensor, y: Tensor, draw: Draw) -> Tensor:
        """f on the batch, as a function of theta_k; ``rest``: the contribution of the others."""
        around = self.around
        with around.precision(), around.drawing(self.k, draw):
            h = self.net.module(x).float()
            outputs: Tensor = self.fusion.module(around.aggregation.put(rest, self.k, h))
        return around.loss(outputs.float(), y)

    def state(self) -> State:
        """The copy in the network, with its contribution."""
        if self.contribution is None:
            contribution = {}
        else:
            contribution = {CONTRIBUTION: self.contribution.clone()}
        return self.net.state() | contribution

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Load a copy into the network."""
        self.net.load(state)
        contribution = state.get(CONTRIBUTION)
        if contribution is None:
            self.contribution = None
        else:
            self.contribution = contribution.to(self.around.device, copy=True)

    def weights(self) -> State:
        """Parameters and statistics of the network itself, not copies."""
        return self.net.weights()

    def full_state(self) -> State:
        """The complete state, from which a new client continues."""
        state = self.state() | self.net.buffers()
        for name, value in self.fusion.full_state().items():
            state[HEAD + name] = value
        return state

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Restore a complete state."""
        self.load(memory)
        self.net.load_buffers(memory)
        head = {}
        for name, value in memory.items():
            if name.startswith(HEAD):
                head[name.removeprefix(HEAD)] = value
        self.fusion.restore(head)

    def mixed(
        self, start: Mapping[str, Tensor], copies: Sequence[Mapping[str, Tensor]], weight: float
    ) -> State:
        """start + weight * sum_gamma (copy - start), elementwise; missing tensors count as 0.

        The contribution of the average is not the average of the contributions: it has to be
        recomputed.
        """
        states = (start, *copies)
        # A dictionary keeps the order of the names, and with it that of the parameters.
        names = dict.fromkeys(name for state in states for name in state if name != CONTRIBUTION)
        # Momenta and the like are missing until the first step. Counting them as 0 is right only
        # where the optimiser itself starts them there.
        complete = all(name in start for name in names)
        if isinstance(self.net.optimiser, STARTS_NONZERO) and not complete:
            kind = type(self.net.optimiser).__name__
            raise ConfigError(
                f"The state of {kind} does not start at 0, so copies of it cannot be averaged: use "
                f"SGD or Adam."
            )
        return {name: _mix([state.get(name) for state in states], weight) for name in names}


def _mix(values: Sequence[Tensor | None], weight: float) -> Tensor:
    present = [value for value in values if value is not None]
    zero = torch.zeros_like(present[0])
    start, *copies = [zero if value is None else value for value in values]
    return start + weight * torch.stack([copy - start for copy in copies]).sum(dim=0)
