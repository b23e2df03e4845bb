"""From the model section of a config to a split network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from mtcd.core.errors import MtcdError
from mtcd.data.dataset import VerticalDataset
from mtcd.data.samples import sample_shape
from mtcd.models.splitnet.aggregation import Aggregation, check_aggregation, make_aggregation
from mtcd.models.splitnet.config import SplitSection
from mtcd.models.splitnet.feed import make_source
from mtcd.models.splitnet.labels import classes_of, find_loss
from mtcd.models.splitnet.makers import (
    Maker,
    client_maker,
    fusion_maker,
    importing,
    make_client,
    make_fusion,
)
from mtcd.models.splitnet.model import SplitModel
from mtcd.models.splitnet.nets.scaling import StandardScaling, scaling_of
from mtcd.models.splitnet.optimiser import MakeOptimiser, named_optimiser
from mtcd.models.splitnet.trial import representation_width, starting

if TYPE_CHECKING:
    from mtcd.config.schema import Config

CPU = torch.device("cpu")


def check_split(section: SplitSection) -> None:
    """Reject settings that are invalid for all data."""
    check_aggregation(section.aggregation)
    optimiser_of(section)
    makers_of(section)


def makers_of(section: SplitSection) -> tuple[Maker, Maker]:
    """The makers of the clients' networks and of the fusion module. Those of the user are imported,
    which runs code."""
    load = importing(section.code)
    return client_maker(section.client, load), fusion_maker(section.fusion, load)


def split_model(
    section: SplitSection, data: VerticalDataset, seed: int, standardise: bool = False
) -> SplitModel:
    """The modules for this data: what they are made with depends on its shapes and classes.

    With ``standardise``, they begin with scaling by the means and deviations of the training
    samples.
    """
    names, (maker, head_maker) = data.clients, makers_of(section)
    made = []
    for k, name in enumerate(names):
        made.append(client_module(section, maker, names, k, data.features[name], seed, standardise))
    widths = [width for _, width in made]
    classes = None
    if find_loss(section.loss, data.labels)[1]:
        classes = classes_of(data.labels)
    modules = {name: module for name, (module, _) in zip(names, made, strict=True)}
    return _model(section, head_maker, modules, widths, classes, seed)


def client_module(
    section: SplitSection,
    maker: Maker,
    clients: Sequence[str],
    k: int,
    features: Any,
    seed: int,
    standardise: bool,
) -> tuple[nn.Module, int]:
    """The module of client k for its features, and the width of its representation, independent of
    other clients."""
    client = clients[k]
    shape = sample_shape(client, features)
    module = make_client(maker, clients, k, shape, section.client_settings, seed)
    if standardise:
        module = nn.Sequential(scaling_of(features), module)
    # A trial run tells the width. The seed is that of the training, as lazy layers get their
    # parameters in it.
    with starting(seed, k, CPU):
        return module, representation_width(client, module, make_source(features, client, CPU))


def model_of_run(place: Path, config: Config, about: Mapping[str, Any]) -> SplitModel:
    """The modules of a run whose folder holds its config, without their weights.

    Parameters
    ----------
    place
        The folder.
    config
        The config in it.
    about
        What run.json says of the model.
    """
    section = config.model
    if not isinstance(section, SplitSection):
        raise MtcdError(f"{place} holds a split network, but its config.yaml is of another model.")
    return saved_model(section, about, config.seed, config.data.standardise)


def saved_model(
    section: SplitSection, about: Mapping[str, Any], seed: int, standardise: bool
) -> SplitModel:
    """The modules of a run, from the description in its folder."""
    shapes = {}
    for client, shape in zip(about["clients"], about["shapes"], strict=True):
        shapes[client] = tuple(shape)
    names, (maker, head_maker) = tuple(shapes), makers_of(section)
    clients = {}
    for k, name in enumerate(names):
        clients[name] = saved_client(section, maker, names, k, shapes[name], seed, standardise)
    return _model(section, head_maker, clients, about["widths"], about["classes"], seed)


def saved_client(
    section: SplitSection,
    maker: Maker,
    clients: Sequence[str],
    k: int,
    shape: tuple[int, ...],
    seed: int,
    standardise: bool,
) -> nn.Module:
    """The module of client k, for saved weights."""
    module = make_client(maker, clients, k, shape, section.client_settings, seed)
    if standardise:
        # Its means and deviations come with the weights.
        return nn.Sequential(StandardScaling(*shape), module)
    return module


def _model(
    section: SplitSection,
    head_maker: Maker,
    clients: dict[str, nn.Module],
    widths: Sequence[int],
    classes: Sequence[object] | None,
    seed: int,
) -> SplitModel:
    aggregation = make_aggregation(section.aggregation, list(clients), widths)
    fusion = fusion_module(section, head_maker, aggregation, classes, seed)
    return SplitModel(clients, fusion, section.aggregation, section.loss, optimiser_of(section))


def fusion_module(
    section: SplitSection,
    maker: Maker,
    aggregation: Aggregation,
    classes: Sequence[object] | None,
    seed: int,
) -> nn.Module:
    """The fusion module for such an aggregate."""
    # Without classes the labels are values: one output.
    outputs = 1 if classes is None else len(classes)
    return make_fusion(maker, aggregation.width, outputs, section.fusion_settings, seed)


def optimiser_of(section: SplitSection) -> MakeOptimiser:
    """The function that makes the optimisers of all parties."""
    return named_optimiser(section.optimiser.kind, **(section.optimiser.model_extra or {}))
