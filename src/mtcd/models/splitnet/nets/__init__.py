"""Built-in networks, by the names that a config gives them.

A network for a client is made from the keywords that its maker names, out of ``shape`` (of one
sample, without the batch), ``client``, ``index``, ``clients`` and its own settings; a fusion
network from ``width`` (of what it is given), ``outputs`` and its own settings.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from mtcd.models.mlp import linear, mlp, mlp_head
from mtcd.models.splitnet.nets.mvcnn import mvcnn
from mtcd.models.splitnet.nets.resnet import resnet18

NETS: dict[str, Callable[..., nn.Module]] = {"resnet18": resnet18, "mvcnn": mvcnn, "mlp": mlp}
FUSIONS: dict[str, Callable[..., nn.Module]] = {"linear": linear, "mlp": mlp_head}

__all__ = ["FUSIONS", "NETS", "linear", "mlp", "mlp_head", "mvcnn", "resnet18"]
