"""A party's part of an additive model: trees, or another family, on its own columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError
from mtcd.core.optional import find
from mtcd.data.prepare import ColumnPreparation
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.model import LinearProblem
from mtcd.models.glm.party.own_block import (
    NPZ,
    OwnBlock,
    check_format,
    preparation_of,
    read_npz,
)
from mtcd.models.glm.party.problem import OwnData, own_data, sized_problem
from mtcd.models.label_noise import with_noise
from mtcd.models.predicted import Columns
from mtcd.models.trees.config import AdditiveSection
from mtcd.models.trees.families.family import TrainedPart
from mtcd.models.trees.families.trees import TreeFamily
from mtcd.models.trees.model import Additive, model_from_json
from mtcd.models.trees.problem import AdditiveProblem, fit_of
from mtcd.models.trees.trained import additive_columns, additive_predictions

Labels = NDArray[np.generic]


def additive_of(config: BundleConfig) -> Additive:
    """The additive model of a bundle."""
    if not isinstance(config.model, AdditiveSection):
        raise ConfigError("model.kind: this federation trains another kind of model.")
    given = config.model.model(config.labels.positive)
    model: Additive = with_noise(given, config.label_privacy)
    if not config.is_server and isinstance(model.family(config.name), TreeFamily):
        find("lightgbm")  # whoever has trees needs it, before the training begins
    return model


@dataclass(frozen=True, eq=False)
class OwnAdditive(OwnData):
    """A party's data, and the problem in which only the block of this party, ``number``, has
    columns."""

    model: Additive
    problem: AdditiveProblem

    def held_out_outputs(self, theta: Any) -> Array:
        """The representation of the held-out samples."""
        assert self.held_out is not None
        return self.problem.client(self.number).margins(theta, self.held_out)

    def gap_part(self, theta: Any, aggregate: Array) -> None:
        """None: no bound of the gap is known for trees."""

    def block(self, theta: Any) -> AdditiveBlock:
        """The block of the party, from its final parameters."""
        problem = self.problem
        part = problem.client(self.number).finish(theta)
        # parties predict by adding up their outputs, so exactly one of them adds the constant
        constant = problem.shift if self.number == 0 else np.zeros(problem.shift.shape)
        return AdditiveBlock(
            self.data.clients[0],
            self.model,
            self.number,
            self.data.columns[0],
            problem.classes,
            part,
            constant,
            self.preparation,
        )


def own_additive(
    config: BundleConfig,
    table: PartyTable,
    rows: Sequence[int] | None,
    labels: Labels,
    held_out: Sequence[int] = (),
    weights: Array | None = None,
) -> OwnAdditive:
    """The part of a party: these rows of its table (None: all), in the agreed order, with their
    labels and weights."""
    model = additive_of(config)
    own = own_data(config, table, rows, labels, held_out, weights)
    number = own.number
    data = own.data
    # Families that scale cannot compute a mean with gaps.
    if not model.family(config.name).keeps_missing:
        data.check_complete("its model")
    # The problem of all parties, with the families of all: penalties count in f.
    problem = _problem(config, model, labels, weights, {number: data.categorical[0]})
    problem = problem.with_blocks({number: data.blocks[0]})
    return OwnAdditive(number, data, own.preparation, own.held_out, model, problem)


def _problem(
    config: BundleConfig,
    model: Additive,
    labels: Labels,
    weights: Array | None,
    categorical: Mapping[int, tuple[int, ...]],
) -> AdditiveProblem:
    """The problem of a federation, without the block of any party."""
    fit, shift, classes = fit_of(model, labels, weights)
    families = model.families(config.parties)
    by_party = tuple(categorical.get(k, ()) for k in range(len(families)))
    return AdditiveProblem(families, (), by_party, fit, shift, classes, config.seed)


def additive_server(
    config: BundleConfig, samples: int, outputs: int, labels: Labels | None, weights: Array | None
) -> AdditiveProblem | LinearProblem:
    """The problem at the server: with labels and weights if it may know them, otherwise with sizes
    only."""
    model = additive_of(config)
    if labels is None:
        return sized_problem(model.plain_loss, samples, outputs, len(config.parties))
    return _problem(config, model, labels, weights, {}).with_blocks({})


@dataclass(frozen=True, eq=False)
class AdditiveBlock(OwnBlock):
    """The trained part of one party. The first party has the ``constant``; it is 0 elsewhere."""

    party: str
    model: Additive
    number: int
    columns: tuple[str, ...]
    classes: tuple[str | float, ...]
    part: TrainedPart
    constant: Array
    preparation: ColumnPreparation | None = None

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite: if not, the training diverged."""
        # Trees are texts, so only arrays of floats can be otherwise.
        numbers = [array for array in self.part.arrays().values() if array.dtype.kind == "f"]
        return all(bool(np.isfinite(array).all()) for array in numbers)

    @property
    def outputs(self) -> int:
        """The width of a representation."""
        return self.model.plain_loss.outputs(self.classes)

    def represent(self, table: PartyTable) -> Array:
        """h_k of new samples, in the order of their table."""
        return np.asarray(self.part.margins(self.values(table)) + self.constant)

    def predict(self, aggregate: Array) -> NDArray[np.generic]:
        """The predictions for the sum of all parties' h_k: values in regression, class labels
        otherwise."""
        return additive_predictions(self.model, self.classes, aggregate)

    def columns_of(self, aggregate: Array) -> Columns:
        """The predictions with the probabilities of classes or scores, by the names of their
        columns."""
        return additive_columns(self.model, self.classes, aggregate)

    def files(self) -> dict[str, bytes]:
        """The block as a file, by name."""
        arrays = {f"part/{name}": array for name, array in self.part.arrays().items()}
        about = {"additive": self.model.to_json(), "number": self.number}
        return {NPZ: self.npz(about, {"constant": self.constant, **arrays})}


def read_additive_block(folder: Path) -> AdditiveBlock:
    """Read the block of a run folder."""
    return read_npz(folder, _block)


def _block(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> AdditiveBlock:
    """The block from what a file holds. Raises ValueError, KeyError or TypeError."""
    check_format(about)
    model = model_from_json(about["additive"])
    part_arrays = {}
    for name, array in arrays.items():
        if name.startswith("part/"):
            part_arrays[name.removeprefix("part/")] = array
    block = AdditiveBlock(
        about["party"],
        model,
        int(about["number"]),
        tuple(about["columns"]),
        tuple(about["classes"]),
        model.family(about["party"]).part(part_arrays),
        np.asarray(arrays["constant"], dtype=float),
        preparation_of(about),
    )
    if not block.finite:
        raise ValueError("its parts do not belong together")
    return block
