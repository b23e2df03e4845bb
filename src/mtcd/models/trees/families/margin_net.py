"""A small PyTorch network whose outputs are margins, with its parameters as one NumPy vector.

It is apart from ``net.py`` so that PyTorch is imported only where a party has a network.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from mtcd.core.arrays import Array
from mtcd.models.mlp import mlp


class MarginNet:
    """Fully connected layers on the rows of a table, in double precision."""

    def __init__(self, columns: int, hidden: Sequence[int], outputs: int) -> None:
        self._module = mlp((columns,), outputs, hidden).double()

    @property
    def size(self) -> int:
        """The number of parameters."""
        return sum(parameter.numel() for parameter in self._module.parameters())

    def initial(self, draw: int) -> Array:
        """Parameters drawn from a seed; those of the last layer are 0, so that all outputs are
        0."""
        # the process's generator is left as it was: the user may draw from it
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(draw)
            layers = [layer for layer in self._module.modules() if isinstance(layer, nn.Linear)]
            for layer in layers:
                layer.reset_parameters()
        with torch.no_grad():
            for parameter in layers[-1].parameters():
                # The last layer starts at 0, so that Z^0 is 0 and the first token is free, as for
                # all models.
                parameter.zero_()
        return np.array(parameters_to_vector(self._module.parameters()).detach().numpy())

    def outputs(self, theta: Array, X: Array) -> Array:
        """The margins of these rows."""
        with torch.no_grad():
            return np.array(self._forward(theta, X).numpy())

    def pullback(self, theta: Array, X: Array) -> tuple[Array, _Pullback]:
        """The margins, and a function from the derivative in them to that in the parameters."""
        margins = self._forward(theta, X)
        return np.array(margins.detach().numpy()), _Pullback(self._module, margins)

    def _forward(self, theta: Array, X: Array) -> torch.Tensor:
        """The margins at these parameters, which the module then holds."""
        # A copy: `vector_to_parameters` makes views of what it is given.
        vector_to_parameters(torch.tensor(theta), self._module.parameters())
        found: torch.Tensor = self._module(torch.as_tensor(np.ascontiguousarray(X)))
        # One output per sample is a plain vector, as in all losses.
        return found.squeeze(1)


class _Pullback:
    """The derivative of the parameters, for one evaluation of the network."""

    def __init__(self, module: nn.Module, margins: torch.Tensor) -> None:
        self._module, self._margins = module, margins

    def __call__(self, slope: Array) -> Array:
        parts = torch.autograd.grad(
            self._margins, list(self._module.parameters()), torch.as_tensor(slope)
        )
        return np.concatenate([part.numpy().ravel() for part in parts])
