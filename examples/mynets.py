"""Networks of one's own, for ``examples/split.yaml``: a function for the clients, one for the
fusion.

mtcd calls them with whichever of these they ask for by name: ``client``, ``index``, ``shape`` and
``clients`` (``width`` and ``outputs`` for the fusion), and with the settings of the config.
"""

import math
from collections.abc import Sequence

from torch import nn


def make_client(shape: Sequence[int], hidden: int = 32, width: int = 8) -> nn.Module:
    """The network of one client, from a batch of its features to (samples, width)."""
    return nn.Sequential(
        nn.Linear(math.prod(shape), hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Dropout(0.1),
        nn.Linear(hidden, width),
    )


def make_fusion(width: int, outputs: int) -> nn.Module:
    """From the aggregate of all clients to one output per class."""
    return nn.Sequential(nn.ReLU(), nn.Linear(width, outputs))


if __name__ == "__main__":
    print(make_client(shape=(10,)), make_fusion(width=48, outputs=4), sep="\n")
