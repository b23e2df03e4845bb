"""Fully connected networks: for the rows of a table, and for what all clients' networks gave."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError


class Flat(nn.Module):
    """Each sample as one row of numbers."""

    def forward(self, samples: Tensor) -> Tensor:
        return samples.reshape(len(samples), -1)


def mlp(
    shape: Sequence[int], width: int = 16, hidden: Sequence[int] = (64,), dropout: float = 0.0
) -> nn.Module:
    """For samples of any ``shape``, taken as rows: layers of ``hidden`` numbers, ending in
    ``width``."""
    return nn.Sequential(Flat(), *_layers("mlp", math.prod(shape), hidden, width, dropout))


def mlp_head(
    width: int, outputs: int, hidden: Sequence[int] = (64,), dropout: float = 0.0
) -> nn.Module:
    """A fusion network with layers of ``hidden`` numbers between what it is given and the
    outputs."""
    return nn.Sequential(*_layers("mlp head", width, hidden, outputs, dropout))


def linear(width: int, outputs: int) -> nn.Module:
    """A fusion network of one linear layer."""
    return nn.Sequential(*_layers("linear", width, (), outputs, 0.0))


def _layers(
    name: str, inputs: int, hidden: Sequence[int], outputs: int, dropout: float
) -> list[nn.Module]:
    if not isinstance(hidden, Sequence) or isinstance(hidden, str):
        raise ConfigError(
            f"{name}: hidden must be a list of widths, such as [64], but is {hidden!r}."
        )
    for size in (inputs, *hidden, outputs):
        check_whole(f"{name}: each width", size)
    check_number(f"{name}: dropout", dropout)
    if dropout >= 1:
        raise ConfigError(f"{name}: dropout must be below 1, but is {dropout}.")
    layers: list[nn.Module] = []
    for before, after in pairwise((inputs, *hidden)):
        layers += [nn.Linear(before, after), nn.ReLU()]
        if dropout:
            layers.append(nn.Dropout(dropout))

    last = hidden[-1] if hidden else inputs
    return [*layers, nn.Linear(last, outputs)]
