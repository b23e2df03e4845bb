"""The nn.Modules of the parties: training and evaluation mode, state, and seeds of random draws."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.instancenorm import _InstanceNorm

from mtcd.core.errors import ConfigError
from mtcd.models.splitnet.optimiser import (
    MakeOptimiser,
    load_optimiser_tensors,
    make_optimiser,
    optimiser_tensors,
    set_rate,
)

State = dict[str, Tensor]
"""Parameters and state of the optimiser, by fixed names."""


class Trainable:
    """A copy of the user's module, with its optimiser.

    Batch norm uses the statistics of the batch during training. Its running statistics, which
    evaluation uses, are updated within ``tracking`` only: once per batch, not once per local
    update.
    """

    def __init__(self, module: nn.Module, device: torch.device, optimiser: MakeOptimiser) -> None:
        self.module: nn.Module = _copied(module).to(device)
        self._layout = torch.contiguous_format
        self.module.train()
        self.parameters: list[Tensor] = [p for p in self.module.parameters() if p.requires_grad]
        self.norms: list[_NormBase] = []
        for part in self.module.modules():
            if isinstance(part, _NormBase) and part.track_running_stats:
                self.norms.append(part)
        self._momenta = [norm.momentum for norm in self.norms]
        self._track(False)
        self.optimiser = make_optimiser(optimiser, self.parameters)

    @property
    def size(self) -> int:
        """The number of trainable parameters."""
        return sum(p.numel() for p in self.parameters)

    def choose_layout(self, x: Tensor) -> None:
        """Use channels-last memory for images, which is fastest, unless the module fails with it
        (views, say)."""
        if x.ndim != 4:  # only saves time
            return
        try:
            self._lay_out(torch.channels_last)
            with self.evaluating():
                self.module(self.laid_out(x))
        except Exception:  # the user's code may raise anything
            self._lay_out(torch.contiguous_format)

    def _lay_out(self, layout: torch.memory_format) -> None:
        self.module.to(memory_format=layout)  # type: ignore[call-overload]
        self._layout = layout

    def laid_out(self, x: Tensor) -> Tensor:
        """A batch in the memory layout of the module."""
        if x.ndim != 4:
            return x
        return x.contiguous(memory_format=self._layout)

    def _track(self, track: bool) -> None:
        for norm, momentum in zip(self.norms, self._momenta, strict=True):
            # without track_running_stats it would not use them in evaluation
            if isinstance(norm, _InstanceNorm):
                norm.momentum = momentum if track else 0.0
            else:
                norm.track_running_stats = track

    @contextmanager
    def tracking(self, track: bool) -> Iterator[None]:
        """The context in which forward passes update running statistics."""
        self._track(track)
        try:
            yield
        finally:
            self._track(False)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Evaluation mode: dropout off, running statistics instead of those of the batch."""
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            self.module.train()

    def gradients(self, loss: Tensor) -> tuple[Tensor, ...]:
        """The gradients of the loss in the parameters; 0 where it does not depend on one."""
        return torch.autograd.grad(loss, self.parameters, materialize_grads=True)

    def set_rate(self, eta: float) -> None:
        """Set the step size."""
        if self.optimiser is not None:
            set_rate(self.optimiser, eta)

    def move(self, gradients: Iterable[Tensor], eta: float | None) -> None:
        """One step of the optimiser with these gradients; without ``eta``, with its current step
        size."""
        if self.optimiser is None:
            return
        if eta is not None:
            self.set_rate(eta)
        # Set by hand: `backward` would also fill the gradients of modules that only pass them on.
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        self.optimiser.step()

    def values(self) -> list[Tensor]:
        """A copy of the parameters."""
        return [p.detach().clone() for p in self.parameters]

    def put(self, values: Sequence[Tensor]) -> None:
        """Copy these values into the parameters, which stay where they are in memory."""
        if self.parameters:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, list(values))

    def state(self) -> State:
        """A copy of the parameters and the state of the optimiser."""
        state: State = {f"parameter.{i}": p for i, p in enumerate(self.parameters)}
        state |= optimiser_tensors(self.optimiser, self.parameters)
        return {name: value.detach().clone() for name, value in state.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Restore what ``state`` gave: parameters and optimiser."""
        self.put([state[f"parameter.{i}"] for i in range(len(self.parameters))])
        load_optimiser_tensors(self.optimiser, self.parameters, state)

    def buffers(self) -> State:
        """A copy of the buffers, such as the running statistics of batch norm."""
        return {
            f"buffer.{name}": value.detach().clone() for name, value in self.module.named_buffers()
        }

    def load_buffers(self, buffers: Mapping[str, Tensor]) -> None:
        """Restore what ``buffers`` gave, in place."""
        for name, value in self.module.named_buffers():
            value.copy_(buffers[f"buffer.{name}"])

    def weights(self) -> State:
        """Parameters and buffers, for measurements: the module's own tensors, not copies."""
        held = {f"parameter.{i}": p.detach() for i, p in enumerate(self.parameters)}
        return held | {f"buffer.{name}": value for name, value in self.module.named_buffers()}

    def load_weights(self, given: Mapping[str, Tensor]) -> None:
        """Copy such weights into the module, except tensors that are its own."""
        for name, value in self.weights().items():
            # The module may be given its own tensors, which `copy_` onto themselves would only cost
            # time.
            if value.data_ptr() != given[name].data_ptr():
                value.copy_(given[name])

    def full_state(self) -> State:
        """The complete state: parameters, optimiser and buffers."""
        return self.state() | self.buffers()

    def restore(self, memory: Mapping[str, Tensor]) -> None:
        """Restore a complete state."""
        self.load(memory)
        self.load_buffers(memory)

    def finished(self) -> nn.Module:
        """A copy of the module for the user: in evaluation mode, with the original settings of
        batch norm."""
        # For the user, statistics are tracked as the module was written.
        self._track(True)
        module = copy.deepcopy(self.module).eval()
        self._track(False)
        module.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        return module


def _copied(module: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(module)
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(
            f"{type(module).__name__} cannot be copied, and training works on copies: {error}"
        ) from None


@contextmanager
def seeded(seed: int | None, device: torch.device) -> Iterator[None]:
    """The context in which random draws depend on the seed alone; the generators are then restored.
    None: no seed."""
    if seed is None:
        yield
        return
    # fork_rng restores the generators: a user's own draws do not depend on what is drawn here.
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        yield


def draws_numbers(module: nn.Module, sample: Tensor) -> bool:
    """Whether the module draws random numbers in training mode, as dropout does."""
    device = sample.device
    # A copy: this pass would move running statistics.
    trial = copy.deepcopy(module).train()
    with seeded(0, device), torch.no_grad():  # any seed will do
        before = _generator_state(device)
        trial(sample)
        return not torch.equal(before, _generator_state(device))


def _generator_state(device: torch.device) -> Tensor:
    if device.type == "cuda":
        return torch.cuda.get_rng_state(device)
    return torch.get_rng_state()
