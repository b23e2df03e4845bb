"""A small convolutional network for the views of an object, in the manner of MVCNN."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError

CHANNELS = (16, 32, 64, 128)
# rows and columns left at the end, so that the network knows where in the picture a thing is
GRID = 4


class Views(nn.Module):
    """The same convolutions for each view, then the largest of each number over the views, then a
    linear layer."""

    def __init__(self, width: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in zip((1, *CHANNELS[:-1]), CHANNELS, strict=True):
            layers += [
                nn.Conv2d(inputs, outputs, 3, padding=1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(),
            ]
            layers += [nn.MaxPool2d(2)]
        self.one_view = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(GRID), nn.Flatten())
        self.last = nn.Linear(CHANNELS[-1] * GRID**2, width)

    def forward(self, pictures: Tensor) -> Tensor:
        samples, views = pictures.shape[:2]
        # All views are one batch for the convolutions, so they share statistics of batch norm.
        seen: Tensor = self.one_view(pictures.flatten(0, 1).unsqueeze(1))
        # The maximum over views does not depend on their order.
        joined: Tensor = self.last(seen.reshape(samples, views, -1).amax(dim=1))
        return joined


def mvcnn(shape: Sequence[int], width: int = 64) -> nn.Module:
    """A network for samples of ``shape`` (views, rows, columns), ending in ``width`` numbers.

    It does not matter in which order the views are given.
    """
    least = 2 ** len(CHANNELS)
    if len(shape) != 3 or min(shape[1:]) < least:
        raise ConfigError(
            f"mvcnn needs samples of (views, rows, columns), with {least} rows and columns or "
            f"more, but they are {tuple(shape)}."
        )
    check_whole("mvcnn: width", width)
    return Views(width)
