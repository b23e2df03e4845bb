"""From the model section of a config to a split network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from mtcd.config.schema import SplitSection
from mtcd.data.dataset import VerticalDataset
from mtcd.splitnet.aggregation import check_aggregation, make_aggregation
from mtcd.splitnet.feed import draw_seed, make_source
from mtcd.splitnet.labels import classes_of, find_loss
from mtcd.splitnet.makers import client_maker, fusion_maker, make_clients, make_fusion
from mtcd.splitnet.model import SplitModel
from mtcd.splitnet.modules import seeded
from mtcd.splitnet.nets.scaling import Standardise, scaling_of
from mtcd.splitnet.optimiser import named_optimiser
from mtcd.splitnet.trial import representation_width

CPU = torch.device("cpu")


def check_split(section: SplitSection) -> None:
    """Refuse what cannot work whatever the data."""
    check_aggregation(section.aggregation)
    named_optimiser(section.optimiser.kind, **(section.optimiser.model_extra or {}))
    client_maker(section.client, section.code)
    fusion_maker(section.fusion, section.code)


def split_model(section: SplitSection, data: VerticalDataset, seed: int, standardise: bool = False) -> SplitModel:
    """The modules for this data: what they are made with depends on its shapes and classes.

    With ``standardise``, they begin with scaling by the means and deviations of the training samples.
    """
    clients = _clients(section, data.shapes, seed)
    if standardise:
        clients = {name: nn.Sequential(scaling_of(data.features[name]), module) for name, module in clients.items()}
    sources = {name: make_source(data.features[name], name, CPU) for name in clients}
    with seeded(draw_seed(seed, "lazy layers"), CPU):  # they start when they are first called
        widths = [representation_width(name, module, sources[name]) for name, module in clients.items()]
    classes = classes_of(data.labels) if find_loss(section.loss, data.labels)[1] else None
    return _model(section, clients, widths, classes, seed)


def saved_model(section: SplitSection, about: Mapping[str, Any], seed: int, standardise: bool) -> SplitModel:
    """The modules of a run, from what its folder tells about them."""
    shapes = {client: tuple(shape) for client, shape in zip(about["clients"], about["shapes"], strict=True)}
    clients = _clients(section, shapes, seed)
    if standardise:
        clients = {name: nn.Sequential(Standardise(*shapes[name]), module) for name, module in clients.items()}
    return _model(section, clients, about["widths"], about["classes"], seed)


def _clients(section: SplitSection, shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, nn.Module]:
    return make_clients(client_maker(section.client, section.code), shapes, section.client_settings, seed)


def _model(
    section: SplitSection,
    clients: dict[str, nn.Module],
    widths: Sequence[int],
    classes: Sequence[object] | None,
    seed: int,
) -> SplitModel:
    maker, outputs = fusion_maker(section.fusion, section.code), 1 if classes is None else len(classes)
    width = make_aggregation(section.aggregation, list(clients), widths).width
    fusion = make_fusion(maker, width, outputs, section.fusion_settings, seed)
    optimiser = named_optimiser(section.optimiser.kind, **(section.optimiser.model_extra or {}))
    return SplitModel(clients, fusion, section.aggregation, section.loss, optimiser)
