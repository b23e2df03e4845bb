"""Checks of modules on two samples before training, with errors that say what does not fit."""

from __future__ import annotations

from contextlib import AbstractContextManager

import torch
from torch import Tensor, nn

from mtcd.core.errors import ConfigError
from mtcd.models.splitnet.aggregation import Aggregation
from mtcd.models.splitnet.client import Loss
from mtcd.models.splitnet.feed import Source, draw_seed
from mtcd.models.splitnet.labels import Classes, check_outputs
from mtcd.models.splitnet.modules import Trainable, draws_numbers, seeded

SAMPLES = 2
FUSION = "The fusion module"


def named(client: str) -> str:
    """The name of a client's network in errors."""
    return f"The network of client {client!r}"


def starting(seed: int, party: int, device: torch.device) -> AbstractContextManager[None]:
    """The context of a first call: the initial values of lazy layers depend on the seed and the
    party alone."""
    return seeded(draw_seed(seed, "lazy layers", party), device)


def begin_client(k: int, client: str, net: Trainable, source: Source, seed: int) -> int:
    """Call client k's network for the first time; returns the width of its representation."""
    x = source.rows(torch.arange(SAMPLES))
    # The layout is chosen by a call, which already makes lazy layers: both under one seed.
    with starting(seed, k, x.device):
        net.choose_layout(x)
        return representation_width(client, net.module, source)


def begin_fusion(
    fusion: Trainable,
    aggregation: Aggregation,
    labels: Tensor,
    classes: Classes | None,
    loss: Loss,
    seed: int,
) -> None:
    """Call the fusion module for the first time."""
    with starting(seed, len(aggregation.widths), labels.device):
        try_fusion(fusion.module, aggregation.width, labels, classes, loss)


def representation_width(client: str, module: nn.Module, source: Source) -> int:
    """Numbers per sample in the representation of a client."""
    x = source.rows(torch.arange(SAMPLES))
    h = _tried(module, x, named(client), f"its features of shape {tuple(x.shape)}")
    if not isinstance(h, Tensor) or h.ndim != 2 or len(h) != SAMPLES or not h.is_floating_point():
        got = tuple(h.shape) if isinstance(h, Tensor) else type(h).__name__
        raise ConfigError(
            f"{named(client)} must give (samples, numbers), but gave {got} for {SAMPLES} samples: "
            "flatten its output, say."
        )
    return h.shape[1]


def try_fusion(
    module: nn.Module, width: int, labels: Tensor, classes: Classes | None, loss: Loss
) -> None:
    """Reject a fusion module that fails on the aggregate, or on whose outputs the loss fails."""
    H = torch.zeros(SAMPLES, width, device=labels.device)
    outputs = _tried(module, H, FUSION, f"an aggregate of shape {tuple(H.shape)}")
    check_outputs(outputs, SAMPLES, classes, loss)
    try:
        value = loss(outputs.float().requires_grad_(), labels[:SAMPLES])
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(
            f"The loss cannot take outputs {tuple(outputs.shape)} with the labels: {error}"
        ) from None
    if not isinstance(value, Tensor) or value.numel() != 1:
        raise ConfigError("The loss must give one number: the mean over the samples.")
    if not value.requires_grad:
        raise ConfigError(
            "The loss must have a gradient in the outputs, but its value does not depend on them."
        )


def trained_on(module: nn.Module, x: Tensor, what: str) -> bool:
    """Reject a module that fails on such a batch in training mode; returns whether it draws random
    numbers."""
    # PyTorch counts writes to a tensor in its version.
    before = x._version
    try:
        draws = draws_numbers(module, x)
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(f"{what} cannot be trained on a batch of {len(x)}: {error}") from None
    if x._version != before:
        raise ConfigError(
            f"{what} changes its input in place, but other parties use it too: begin with a copy, "
            "or without inplace=True."
        )
    return draws


def _tried(module: nn.Module, x: Tensor, what: str, given: str) -> Tensor:
    training = module.training
    # In evaluation mode: batch norm cannot be trained on one sample, and statistics stay as they
    # are.
    module.eval()
    try:
        with torch.no_grad():
            found: Tensor = module(x)
            return found
    except Exception as error:  # the user's code may raise anything
        raise ConfigError(f"{what} cannot take {given}: {error}") from None
    finally:
        module.train(training)
