"""ResNet18 for small pictures: a first convolution of 3 x 3 without stride, and no pooling before
the blocks."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn
from torch.nn import functional

from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError

CHANNELS = (64, 128, 256, 512)


class ResidualBlock(nn.Module):
    """Two convolutions, added to what came in; a convolution of 1 x 1 fits that where the shape
    changes."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.short: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.short = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, pictures: Tensor) -> Tensor:
        inner = functional.relu(self.first_norm(self.first(pictures)))
        return functional.relu(self.second_norm(self.second(inner)) + self.short(pictures))


def resnet18(width: int = 16, channels: int = 3, shape: Sequence[int] | None = None) -> nn.Module:
    """ResNet18 as used for CIFAR-10, for pictures of any size, ending in ``width`` numbers.

    ``shape``, where given, is (channels, rows, columns) of a picture, and tells the channels.
    """
    if shape is not None:
        if len(shape) != 3:
            raise ConfigError(
                f"resnet18 needs pictures (channels, rows, columns), but samples are "
                f"{tuple(shape)}."
            )
        channels = shape[0]
    check_whole("resnet18: width", width)
    check_whole("resnet18: channels", channels)
    layers: list[nn.Module] = [nn.Conv2d(channels, CHANNELS[0], 3, padding=1, bias=False)]
    layers += [nn.BatchNorm2d(CHANNELS[0]), nn.ReLU()]
    before = CHANNELS[0]
    for outputs in CHANNELS:
        layers += [
            # The first block of each stage halves the picture, but for the first stage.
            ResidualBlock(before, outputs, 1 if outputs == before else 2),
            ResidualBlock(outputs, outputs, 1),
        ]
        before = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, width))
