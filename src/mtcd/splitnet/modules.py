"""Plain nn.Modules as the parties use them: in training or evaluation mode, with their randomness under control."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.instancenorm import _InstanceNorm

from mtcd.errors import ConfigError
from mtcd.splitnet.optimiser import (
    MakeOptimiser,
    load_optimiser_tensors,
    make_optimiser,
    optimiser_tensors,
    set_rate,
)

State = dict[str, Tensor]
"""Parameters and what the optimiser remembers, by names that stay the same."""


class Trainable:
    """A copy of somebody's module, with its optimiser.

    Batch norm uses the statistics of the batch while training. Its running statistics, which evaluation uses, take in
    a batch only where ``tracking`` is asked for: once per batch, not once per local update.
    """

    def __init__(self, module: nn.Module, device: torch.device, optimiser: MakeOptimiser) -> None:
        self.module: nn.Module = _copied(module).to(device)
        self._layout = torch.contiguous_format
        self.module.train()
        self.parameters: list[Tensor] = [p for p in self.module.parameters() if p.requires_grad]
        self.norms = [m for m in self.module.modules() if isinstance(m, _NormBase) and m.track_running_stats]
        self._momenta = [norm.momentum for norm in self.norms]
        self._track(False)
        self.optimiser = make_optimiser(optimiser, self.parameters)

    @property
    def size(self) -> int:
        """How many numbers are trained."""
        return sum(p.numel() for p in self.parameters)

    def choose_layout(self, x: Tensor) -> None:
        """Pictures with the channels last, which is fastest, unless the module cannot take them so: with views, say."""
        if x.ndim != 4:
            return
        try:
            self._lay_out(torch.channels_last)
            with self.evaluating():
                self.module(self.laid_out(x))
        except Exception:  # whatever somebody's module does
            self._lay_out(torch.contiguous_format)

    def _lay_out(self, layout: torch.memory_format) -> None:
        self.module.to(memory_format=layout)  # type: ignore[call-overload]
        self._layout = layout

    def laid_out(self, x: Tensor) -> Tensor:
        """A batch in the layout that the module works in."""
        return x.contiguous(memory_format=self._layout) if x.ndim == 4 else x

    def _track(self, track: bool) -> None:
        for norm, momentum in zip(self.norms, self._momenta, strict=True):
            if isinstance(norm, _InstanceNorm):  # without track_running_stats it would not use them in evaluation
                norm.momentum = momentum if track else 0.0
            else:
                norm.track_running_stats = track

    @contextmanager
    def tracking(self, track: bool = True) -> Iterator[None]:
        """Forward passes in here count for the running statistics."""
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
        """Of the loss, in the parameters; 0 where it does not depend on one."""
        return torch.autograd.grad(loss, self.parameters, materialize_grads=True)

    def set_rate(self, eta: float) -> None:
        """The step size from now on."""
        if self.optimiser is not None:
            set_rate(self.optimiser, eta)

    def move(self, gradients: Iterable[Tensor], eta: float | None) -> None:
        """The optimiser's step along these gradients; without ``eta``, with the step size that it has."""
        if self.optimiser is None:
            return
        if eta is not None:
            self.set_rate(eta)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient
        self.optimiser.step()

    def values(self) -> list[Tensor]:
        """The parameters as they are now."""
        return [p.detach().clone() for p in self.parameters]

    def put(self, values: Sequence[Tensor]) -> None:
        """Put parameters in."""
        if self.parameters:
            with torch.no_grad():
                torch._foreach_copy_(self.parameters, list(values))

    def state(self) -> State:
        """The parameters and what the optimiser remembers, as they are now."""
        state: State = {f"parameter.{i}": p for i, p in enumerate(self.parameters)}
        state |= optimiser_tensors(self.optimiser, self.parameters)
        return {name: value.detach().clone() for name, value in state.items()}

    def load(self, state: Mapping[str, Tensor]) -> None:
        """Put a state back."""
        self.put([state[f"parameter.{i}"] for i in range(len(self.parameters))])
        load_optimiser_tensors(self.optimiser, self.parameters, state)

    def buffers(self) -> State:
        """What is not trained: the running statistics of batch norm, say."""
        return {f"buffer.{name}": value.detach().clone() for name, value in self.module.named_buffers()}

    def load_buffers(self, kept: Mapping[str, Tensor]) -> None:
        """Put them back."""
        for name, value in self.module.named_buffers():
            value.copy_(kept[f"buffer.{name}"])

    def weights(self) -> State:
        """Parameters and buffers, to measure with: the module's own tensors, not copies."""
        held = {f"parameter.{i}": p.detach() for i, p in enumerate(self.parameters)}
        return held | {f"buffer.{name}": value for name, value in self.module.named_buffers()}

    def load_weights(self, given: Mapping[str, Tensor]) -> None:
        """Put such weights in. What is the module's own stays where it is."""
        for name, value in self.weights().items():
            if value.data_ptr() != given[name].data_ptr():
                value.copy_(given[name])

    def memory(self) -> State:
        """All of it: with this, a copy of the same module goes on where this one is."""
        return self.state() | self.buffers()

    def remember(self, memory: Mapping[str, Tensor]) -> None:
        """Put it back."""
        self.load(memory)
        self.load_buffers(memory)

    def finished(self) -> nn.Module:
        """A copy of the module, as its owner gets it back: in evaluation mode, and batch norm as it was."""
        self._track(True)
        module = copy.deepcopy(self.module).eval()
        self._track(False)
        module.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
        return module


def _copied(module: nn.Module) -> nn.Module:
    try:
        return copy.deepcopy(module)
    except Exception as error:  # whatever somebody's module holds
        raise ConfigError(f"{type(module).__name__} cannot be copied, and training works on copies: {error}") from None


@contextmanager
def seeded(seed: int | None, device: torch.device) -> Iterator[None]:
    """Draws of dropout in here depend on the seed alone, and leave everybody else's as they were. None: no draws."""
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.default_generator.manual_seed(seed)
        if device.type == "cuda":
            torch.cuda.manual_seed(seed)
        yield


def draws_numbers(module: nn.Module, sample: Tensor) -> bool:
    """Whether the module draws random numbers while training: dropout does."""
    device = sample.device
    trial = copy.deepcopy(module).train()
    with seeded(0, device), torch.no_grad():
        before = _generator_state(device)
        trial(sample)
        return not torch.equal(before, _generator_state(device))


def _generator_state(device: torch.device) -> Tensor:
    return torch.cuda.get_rng_state(device) if device.type == "cuda" else torch.get_rng_state()
