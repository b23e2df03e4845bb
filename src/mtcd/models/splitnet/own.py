"""The part of a split network that one party of a federation holds: the other networks are on other
hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mtcd.core.errors import ConfigError
from mtcd.models.splitnet.aggregation import Aggregation
from mtcd.models.splitnet.client import Loss, NetClient, Surroundings
from mtcd.models.splitnet.feed import BatchRows, Feed, Source, Stored
from mtcd.models.splitnet.fusion import NetFusion
from mtcd.models.splitnet.labels import Classes
from mtcd.models.splitnet.lanes import Lanes
from mtcd.models.splitnet.modules import Trainable
from mtcd.models.splitnet.optimiser import MakeOptimiser
from mtcd.models.splitnet.problem import RemoteClient, Stage
from mtcd.models.splitnet.trial import (
    FUSION,
    SAMPLES,
    begin_client,
    begin_fusion,
    named,
    trained_on,
)
from mtcd.protocol.batches import Batches

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Common:
    """The part that all parties hold: the initial fusion module, the labels, the settings."""

    fusion: nn.Module
    aggregation: Aggregation
    loss: Loss
    labels: Tensor
    classes: Classes | None
    optimiser: MakeOptimiser
    mixed: bool
    threads: int | None
    seed: int


@dataclass(frozen=True, eq=False)
class Own:
    """The part that client k alone holds."""

    k: int
    client: str
    module: nn.Module
    source: Source


class OwnProblem:
    """The problem of one party of a split network, on the CPU; without ``own``, that of the server.

    A method makes parties from it as from a whole problem; only this party and the first messages
    can be used.
    """

    def __init__(self, common: Common, own: Own | None = None) -> None:
        self.common, self.own = common, own
        self.fusion = Trainable(common.fusion, CPU, common.optimiser)
        self.net: Trainable | None = None
        if own is not None:
            self.net = Trainable(own.module, CPU, common.optimiser)
            width = begin_client(own.k, own.client, self.net, own.source, common.seed)
            # A table that is not the one of the agreement may give another width. Messages would be
            # refused one by one, without a hint at the reason.
            if width != (agreed := common.aggregation.widths[own.k]):
                raise ConfigError(
                    f"{named(own.client)} gives {width} numbers per sample, but the parties have "
                    f"agreed on {agreed}."
                )
        begin_fusion(
            self.fusion, common.aggregation, common.labels, common.classes, common.loss, common.seed
        )
        draws = self._try_training(SAMPLES)
        self.around = Surroundings(
            common.loss, common.aggregation, CPU, common.mixed, common.seed, draws
        )
        self.head = self.fusion
        """The latest theta_0 of this party: at the server its own, at a client that of the last
        token."""

    def _try_training(self, samples: int) -> bool:
        """Reject modules that fail on such a batch in training mode; returns whether any draws
        random numbers."""
        draws = trained_on(self.fusion.module, torch.zeros(samples, self.outputs), FUSION)
        if self.own is not None:
            assert self.net is not None
            x = self.own.source.rows(torch.arange(samples))
            draws = trained_on(self.net.module, x, named(self.own.client)) or draws
        return draws

    @property
    def samples(self) -> int:
        """The number of samples that the parties have agreed on."""
        return len(self.common.labels)

    @property
    def size(self) -> int:
        """The number of parameters that this party trains."""
        return (self.net or self.fusion).size

    @property
    def outputs(self) -> int:
        """Numbers per sample in the aggregate."""
        return self.common.aggregation.width

    @property
    def is_finite(self) -> bool:
        """Whether all parameters and statistics of this party are finite."""
        held = [self.head] if self.net is None else [self.head, self.net]
        values = [value for one in held for value in one.module.state_dict().values()]
        return all(bool(value.isfinite().all()) for value in values)

    @property
    def fusion_keeps_statistics(self) -> bool:
        """Whether the fusion module has batch norm."""
        return bool(self.fusion.norms)

    def stage(self, batches: Batches, lanes: int) -> Stage:
        """The party's network and placeholders for the others, with its data in these batches."""
        if batches.length == 1:  # all others are no smaller than the batch that was tried
            self._try_training(batches.length)
        around = self.around
        labels = Stored(self.common.labels)
        clients: list[Any] = [RemoteClient() for _ in around.aggregation.widths]

        def feed(source: Source) -> Feed:
            return Feed(source, BatchRows(batches, CPU))

        if self.own is not None:
            assert self.net is not None
            # A copy: the client loads the theta_0 of each token into it, and the problem keeps the
            # initial one.
            self.head = Trainable(self.fusion.module, CPU, self.common.optimiser)
            k = self.own.k
            clients[k] = NetClient(
                k, self.net, self.head, feed(self.own.source), feed(labels), around
            )
        fusion = NetFusion(self.fusion, feed(labels), around)
        return Stage(clients, fusion, around, self.samples, Lanes(CPU, 1))
