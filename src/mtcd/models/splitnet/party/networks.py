"""A party's own part of a split network: its module is made on its host, from its own table, and
stays there.

Before training, every party needs the widths of all representations. So every
party builds its network first, reports ``width``, and builds its problem when all widths are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from mtcd.config.schema import ComputeSection
from mtcd.core.errors import ConfigError, DataError
from mtcd.data.prepare import ColumnPreparation
from mtcd.data.samples import as_samples, check_samples
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.own_code import OwnCode
from mtcd.federation.participant.table import PartyTable
from mtcd.methods.method import Method
from mtcd.models.glm.party.problem import held_out_values, prepared_rows
from mtcd.models.splitnet.aggregation import make_aggregation
from mtcd.models.splitnet.config import SplitSection
from mtcd.models.splitnet.configured import client_module, fusion_module, optimiser_of
from mtcd.models.splitnet.feed import make_source
from mtcd.models.splitnet.labels import classes_of, encode, find_loss
from mtcd.models.splitnet.makers import Maker, client_maker, fusion_maker
from mtcd.models.splitnet.own import Common, Own, OwnProblem
from mtcd.models.splitnet.training import few_threads
from mtcd.protocol.codec.limits import TensorShapes

Labels = NDArray[np.generic]
WIDEST = 2**20  # numbers per sample


def section_of(config: BundleConfig) -> SplitSection:
    """The split network that a bundle names."""
    if not isinstance(config.model, SplitSection):
        raise ConfigError("model.kind: this federation trains a linear model, not a split network.")
    if config.compute is not None and config.compute.device.startswith("cuda"):
        raise ConfigError(
            "compute.device: a federation trains on the CPU. Leave it out, or ask the "
            "administrator for 'cpu'."
        )
    return config.model


def own_maker(config: BundleConfig, code: OwnCode) -> Maker:
    """The maker of a party's network: built in, or code that this party has agreed to run."""
    return client_maker(section_of(config).client, code.load)


def own_fusion_maker(config: BundleConfig, code: OwnCode) -> Maker:
    """The same for the fusion module."""
    return fusion_maker(section_of(config).fusion, code.load)


def fusion_code(config: BundleConfig, code: OwnCode) -> str | None:
    """The sha256 of the file with the fusion module; None if it is built in."""
    name = section_of(config).fusion
    if ":" not in name:
        return None
    return code.source_of(name, "model.fusion").sha256


@dataclass(frozen=True, eq=False)
class OwnNetwork:
    """The initial network of a party, with the party's samples in the agreed order."""

    config: BundleConfig
    code: OwnCode
    number: int
    columns: tuple[str, ...]
    """The columns of a table; empty for samples of other kinds."""
    features: NDArray[Any]
    module: nn.Module
    width: int
    """The width of its representation, which the other parties have to know."""
    preparation: ColumnPreparation | None = None
    held_out: NDArray[Any] | None = None
    """The held-out samples, prepared as the training samples are."""
    notes: tuple[str, ...] = ()
    """Notes on the party's own columns, which stay with it."""

    def problem(self, labels: Labels, widths: Sequence[int]) -> OwnProblem:
        """The problem that the party trains, given the widths of all parties."""
        if len(labels) != len(self.features):
            raise DataError(
                f"The table of {self.config.name!r} has {len(self.features)} rows for "
                f"{len(labels)} labels: with "
                "'alignment: given order' all tables must hold the same samples in the same order."
            )
        source = make_source(self.features, self.config.name, torch.device("cpu"))
        own = Own(self.number, self.config.name, self.module, source)
        return OwnProblem(_common(self.config, self.code, labels, widths), own)


def own_network(
    config: BundleConfig,
    code: OwnCode,
    table: PartyTable,
    rows: Sequence[int] | None,
    held_out: Sequence[int] = (),
) -> OwnNetwork:
    """The network of a party, for these rows of its table (None: all)."""
    order = range(table.rows) if rows is None else rows
    preparation, columns, values, notes = prepared_rows(config.name, table, order, held_out)
    apart = None
    if len(held_out):
        apart = in_single(held_out_values(config.name, table, held_out, preparation, columns))
        # Here too: a value may be finite in double precision only.
        check_samples(config.name, apart, len(held_out), columns)
    made = network_for(config, code, values, columns)
    return replace(made, preparation=preparation, held_out=apart, notes=tuple(notes))


def network_for(
    config: BundleConfig, code: OwnCode, features: NDArray[Any], columns: tuple[str, ...] = ()
) -> OwnNetwork:
    """The same for samples of any shape: pictures, say."""
    section = section_of(config)
    number = config.parties.index(config.name)
    samples = in_single(as_samples(config.name, features))
    check_samples(config.name, samples, len(samples), columns or None)
    # Means per column say nothing of pixels.
    if config.standardise and samples.ndim != 2:
        raise DataError(
            f"standardise is for columns of a table, but samples here are of shape "
            f"{samples.shape[1:]}."
        )
    maker = own_maker(config, code)
    module, width = client_module(
        section, maker, config.parties, number, samples, config.seed, config.standardise
    )
    # Such a party would visit without an effect.
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise ConfigError(
            f"model.client: the network made for {config.name!r} has no parameters to train."
        )
    return OwnNetwork(config, code, number, columns, samples, module, width)


def in_single(values: NDArray[Any]) -> NDArray[Any]:
    """Convert floats to single precision; values out of its range become infinite, which a check
    refuses."""
    with np.errstate(over="ignore"):
        if values.dtype.kind == "f":
            return np.ascontiguousarray(values, dtype=np.float32)
        return values


def server_network(
    config: BundleConfig, code: OwnCode, labels: Labels, widths: Sequence[int]
) -> OwnProblem:
    """The problem that the server trains: the fusion module."""
    return OwnProblem(_common(config, code, labels, widths))


def _common(config: BundleConfig, code: OwnCode, labels: Labels, widths: Sequence[int]) -> Common:
    section = section_of(config)
    # From the agreement, so over a network: a width of 0 or of millions must not reach torch.
    if len(widths) != len(config.parties) or not all(0 < width <= WIDEST for width in widths):
        raise ConfigError(
            f"The widths of the representations, {list(widths)}, are not one for every party of "
            f"the bundle."
        )
    loss, has_classes = find_loss(section.loss, labels, config.label_privacy)
    classes = None
    if has_classes:
        classes = classes_of(labels)
    aggregation = make_aggregation(section.aggregation, config.parties, widths)
    compute = config.compute or ComputeSection()
    return Common(
        fusion_module(section, own_fusion_maker(config, code), aggregation, classes, config.seed),
        aggregation,
        loss,
        encode(labels, classes),
        classes,
        optimiser_of(section),
        compute.precision == "mixed",
        compute.threads,
        config.seed,
    )


def threads_for(problem: OwnProblem, method: Method) -> int | None:
    """The number of threads per operation, for ``torch.set_num_threads``; None keeps PyTorch's
    default."""
    batch = method.batch or problem.samples
    return problem.common.threads or few_threads(problem.size, batch)


def split_shapes(problem: OwnProblem) -> TensorShapes:
    """The shapes of the tensors that other parties may send."""
    return TensorShapes.of(problem.common.aggregation.widths, problem.fusion.values())
