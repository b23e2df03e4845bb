"""From the model section of a config to a split network."""

from __future__ import annotations

import torch

from mtcd.config.schema import SplitSection
from mtcd.data.dataset import VerticalDataset
from mtcd.splitnet.aggregation import check_aggregation, make_aggregation
from mtcd.splitnet.feed import make_source
from mtcd.splitnet.labels import classes_of, find_loss
from mtcd.splitnet.makers import client_maker, fusion_maker, make_clients, make_fusion
from mtcd.splitnet.model import SplitModel
from mtcd.splitnet.optimiser import named_optimiser
from mtcd.splitnet.trial import representation_width

CPU = torch.device("cpu")


def check_split(section: SplitSection) -> None:
    """Refuse what cannot work whatever the data."""
    check_aggregation(section.aggregation)
    named_optimiser(section.optimiser.kind, **(section.optimiser.model_extra or {}))
    client_maker(section.client, section.code)
    fusion_maker(section.fusion, section.code)


def split_model(section: SplitSection, data: VerticalDataset, seed: int) -> SplitModel:
    """The modules for this data: what they are made with depends on its shapes and classes."""
    clients = make_clients(client_maker(section.client, section.code), data.shapes, section.client_settings, seed)
    sources = {name: make_source(data.features[name], name, CPU) for name in clients}
    widths = [representation_width(name, module, sources[name]) for name, module in clients.items()]
    has_classes = find_loss(section.loss, data.labels)[1]
    fusion = make_fusion(
        fusion_maker(section.fusion, section.code),
        make_aggregation(section.aggregation, list(clients), widths).width,
        len(classes_of(data.labels)) if has_classes else 1,
        section.fusion_settings,
        seed,
    )
    optimiser = named_optimiser(section.optimiser.kind, **(section.optimiser.model_extra or {}))
    return SplitModel(clients, fusion, section.aggregation, section.loss, optimiser)
