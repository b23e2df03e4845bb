"""A split network as one of its parties knows it: the other clients' networks are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from mtcd.errors import ConfigError
from mtcd.protocol.batches import Batches
from mtcd.splitnet.aggregation import Aggregation
from mtcd.splitnet.client import Loss, NetClient, Surroundings
from mtcd.splitnet.feed import BatchRows, Feed, Source, Stored
from mtcd.splitnet.fusion import NetFusion
from mtcd.splitnet.labels import Classes
from mtcd.splitnet.lanes import Lanes
from mtcd.splitnet.modules import Trainable
from mtcd.splitnet.optimiser import MakeOptimiser
from mtcd.splitnet.problem import Stage
from mtcd.splitnet.trial import FUSION, SAMPLES, begin_client, begin_fusion, named, trained_on

CPU = torch.device("cpu")


@dataclass(frozen=True, eq=False)
class Common:
    """What all parties have, each its own copy of it: the fusion module as it starts, the labels, the settings."""

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
    """What client k alone has."""

    k: int
    client: str
    module: nn.Module
    source: Source


class Elsewhere:
    """The place of a client whose network is on another host: nothing can be asked of it here."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name}: this client is elsewhere")


class OwnProblem:
    """One party's side of a split network, on the CPU; without ``own``, the server's.

    A method makes parties of it as of a whole problem. Of these, the party itself can be used, and the opening.
    """

    def __init__(self, common: Common, own: Own | None = None) -> None:
        self.common, self.own = common, own
        self.fusion = Trainable(common.fusion, CPU, common.optimiser)
        self.net = None if own is None else Trainable(own.module, CPU, common.optimiser)
        if own is not None and self.net is not None:
            width = begin_client(own.k, own.client, self.net, own.source, common.seed)
            if width != (told := common.aggregation.widths[own.k]):
                raise ConfigError(
                    f"{named(own.client)} gives {width} numbers per sample, but the others know of {told}."
                )
        begin_fusion(self.fusion, common.aggregation, common.labels, common.classes, common.loss, common.seed)
        draws = self._try_training(SAMPLES)
        self.around = Surroundings(common.loss, common.aggregation, CPU, common.mixed, common.seed, draws)
        self.head = self.fusion
        """theta_0 as this party last had it: the server its own, a client what the last token brought."""

    def _try_training(self, samples: int) -> bool:
        """Refuse modules that cannot take such a batch while training; tells whether one draws random numbers."""
        draws = trained_on(self.fusion.module, torch.zeros(samples, self.outputs), FUSION)
        if self.own is not None and self.net is not None:
            x = self.own.source.rows(torch.arange(samples))
            draws = trained_on(self.net.module, x, named(self.own.client)) or draws
        return draws

    @property
    def samples(self) -> int:
        """N."""
        return len(self.common.labels)

    @property
    def size(self) -> int:
        """Numbers that are trained here."""
        return (self.net or self.fusion).size

    @property
    def outputs(self) -> int:
        """Numbers per sample in the aggregate."""
        return self.common.aggregation.width

    @property
    def is_finite(self) -> bool:
        """Whether all parameters and statistics that this party holds are."""
        held = [self.head] if self.net is None else [self.head, self.net]
        return all(bool(value.isfinite().all()) for one in held for value in one.module.state_dict().values())

    @property
    def fusion_keeps_statistics(self) -> bool:
        """Whether the fusion module has batch norm."""
        return bool(self.fusion.norms)

    def stage(self, batches: Batches, lanes: int) -> Stage:
        """The party's network among stand-ins, with its data in these batches."""
        if batches.length < SAMPLES:
            self._try_training(batches.length)
        around, labels = self.around, Stored(self.common.labels)
        clients: list[Any] = [Elsewhere() for _ in around.aggregation.widths]

        def feed(source: Source) -> Feed:
            return Feed(source, BatchRows(batches, CPU))

        if self.own is not None and self.net is not None:
            self.head, k = Trainable(self.fusion.module, CPU, self.common.optimiser), self.own.k
            clients[k] = NetClient(k, self.net, self.head, feed(self.own.source), feed(labels), around)
        fusion = NetFusion(self.fusion, feed(labels), around)
        return Stage(clients, fusion, around, self.samples, Lanes(CPU, 1))
