"""The optimiser of local updates: any of PyTorch's, with its state as named tensors that can be
saved and averaged."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from mtcd.core.errors import ConfigError, did_you_mean

MakeOptimiser = Callable[..., Optimizer]
"""Called with the parameters and ``lr``: torch.optim.SGD, say, or a functools.partial of it."""


STARTS_NONZERO = (torch.optim.ASGD, torch.optim.NAdam, torch.optim.Rprop)
"""Optimisers whose state does not start at 0. They cannot be recorded: resets set the state to
0."""


def plain_sgd(parameters: Iterable[Tensor], lr: float | Tensor) -> Optimizer:
    """Plain gradient steps, as in the paper."""
    return torch.optim.SGD(parameters, lr=lr)


def named_optimiser(kind: str, **settings: Any) -> MakeOptimiser:
    """The optimiser of torch.optim with this name."""
    known = [name for name, entry in vars(torch.optim).items() if _is_optimiser(entry)]
    if kind not in known:
        other_case = {name.lower(): name for name in known}.get(kind.lower())
        hint = did_you_mean(kind, known)
        if other_case:
            hint = f"did you mean {other_case!r}?"
        raise ConfigError(f"model.optimiser.kind: torch.optim has no {kind!r}; {hint}")
    if "lr" in settings:
        raise ConfigError("model.optimiser: leave lr out; method.stepsize is the learning rate.")

    def make(parameters: Iterable[Tensor], lr: float | Tensor) -> Optimizer:
        made: Optimizer = getattr(torch.optim, kind)(parameters, lr=lr, **settings)
        return made

    return make


def _is_optimiser(entry: object) -> bool:
    return isinstance(entry, type) and issubclass(entry, Optimizer) and entry is not Optimizer


def make_optimiser(make: MakeOptimiser, parameters: list[Tensor]) -> Optimizer | None:
    """The optimiser of these parameters; None if there are no parameters."""
    if not parameters:
        return None
    try:
        # The rate is set before every visit: the schedule and the settings know it.
        optimiser = make(parameters, lr=0.0)
    except (TypeError, ValueError) as error:
        raise ConfigError(
            f"The optimiser cannot be made ({error}): it is called with the parameters and lr."
        ) from None
    if not isinstance(optimiser, Optimizer):
        raise ConfigError(f"optimiser must make a torch.optim.Optimizer, but made {optimiser!r}.")
    closure = inspect.signature(type(optimiser).step).parameters.get("closure")
    if closure is not None and closure.default is inspect.Parameter.empty:
        name = type(optimiser).__name__
        raise ConfigError(
            f"{name} evaluates the loss itself (a closure): use an optimiser that does not."
        )
    return optimiser


def describe_optimiser(optimiser: Optimizer | None) -> str:
    """Its kind and settings, without the step size and those that change the speed only."""
    if optimiser is None:
        return "none"
    # Left out: these change the speed, or are known elsewhere. A checkpoint stays valid on another
    # device.
    apart = ("lr", "fused", "foreach", "capturable", "differentiable")
    settings = []
    for name, value in sorted(optimiser.defaults.items()):
        if name not in apart:
            settings.append(f"{name}={value!r}")
    return f"{type(optimiser).__name__}({', '.join(settings)})"


def set_rate(optimiser: Optimizer, lr: float) -> None:
    """Set the step size of the next updates."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(lr)
        else:
            group["lr"] = lr


def optimiser_tensors(optimiser: Optimizer | None, parameters: list[Tensor]) -> dict[str, Tensor]:
    """The state of the optimiser (momentum, say) as tensors with fixed names; empty before the
    first step."""
    found: dict[str, Tensor] = {}
    for i, parameter in enumerate(parameters if optimiser else ()):
        assert optimiser is not None
        # Sorted, so that copies of several clients have their tensors in one order.
        for name, value in sorted(optimiser.state.get(parameter, {}).items()):
            if isinstance(value, Tensor):
                found[f"optimiser.{i}.{name}"] = value
            elif value is not None:
                raise ConfigError(
                    f"The optimiser {type(optimiser).__name__} stores {name!r} as "
                    f"{type(value).__name__}, which "
                    "cannot be saved or averaged: use one that stores tensors, such as SGD or Adam."
                )
    return found


def load_optimiser_tensors(
    optimiser: Optimizer | None, parameters: list[Tensor], saved: Mapping[str, Tensor]
) -> None:
    """Restore the result of ``optimiser_tensors``, in place where a tensor of that name exists.
    Missing ones count as 0; without any, the optimiser starts from scratch.

    Some optimisers count their steps on the CPU, on whatever device the parameters are.
    """
    for i, parameter in enumerate(parameters if optimiser else ()):
        assert optimiser is not None
        prefix = f"optimiser.{i}."
        names = {}
        for key, value in saved.items():
            if key.startswith(prefix):
                names[key.removeprefix(prefix)] = value
        state = optimiser.state[parameter]
        # As before the first step. Where steps are recorded the tensors must stay, and 0 stands for
        # it.
        if not names and not _in_place(optimiser):
            state.clear()
            continue
        for name, value in state.items():
            if isinstance(value, Tensor) and name not in names:
                value.zero_()
        for name, value in names.items():
            if isinstance(state.get(name), Tensor):
                state[name].copy_(value)
            elif name == "step" and not _is_capturable(optimiser):
                state[name] = value.clone()
            else:
                state[name] = value.to(parameter.device, copy=True)


def _is_capturable(optimiser: Optimizer) -> bool:
    return any(group.get("capturable") for group in optimiser.param_groups)


def _in_place(optimiser: Optimizer) -> bool:
    """Whether its steps are recorded, so that its state must not move in memory."""
    return any(isinstance(group["lr"], Tensor) for group in optimiser.param_groups)


def capturable(make: MakeOptimiser, device: torch.device) -> MakeOptimiser:
    """The same optimiser in a form whose steps can be recorded in a CUDA graph: the step size is a
    tensor."""

    def remake(parameters: Iterable[Tensor], lr: float | Tensor) -> Optimizer:
        parameters = list(parameters)
        plain = make(parameters, lr=0.0)
        # AdamW has defaults of Adam that are no parameters
        accepted = inspect.signature(type(plain)).parameters
        settings = {name: value for name, value in plain.defaults.items() if name in accepted}
        # The fused form of SGD takes a step size that is a tensor; other forms would read it on the
        # CPU.
        if isinstance(plain, torch.optim.SGD) and not settings["dampening"]:
            settings |= {"fused": True, "foreach": False}
        elif "capturable" in settings and not isinstance(plain, STARTS_NONZERO):
            settings |= {"capturable": True}
        else:
            raise ConfigError(f"{type(plain).__name__} cannot be recorded")
        rate = torch.zeros((), device=device)
        made: Optimizer = type(plain)(parameters, **{**settings, "lr": rate})
        return made

    return remake
