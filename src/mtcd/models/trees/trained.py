"""A trained additive model: the parts of all parties and the constant, for prediction and
inspection."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import MtcdError
from mtcd.core.files import IMPORTANCE, LINEAR_CHECKPOINT, PARTS
from mtcd.core.optional import find
from mtcd.core.rows import Rows
from mtcd.data.checks import check_values
from mtcd.data.prepare import Preparations
from mtcd.data.vertical import Block, VerticalData
from mtcd.models.glm.evaluation import linear_outputs
from mtcd.models.metrics import Outputs
from mtcd.models.predicted import Columns, predicted_columns, true_labels
from mtcd.models.samples import Samples, TakesSamples
from mtcd.models.trained import Trained
from mtcd.models.trees.families.family import TrainedPart
from mtcd.models.trees.families.trees import TreePart
from mtcd.models.trees.model import Additive, model_from_json


@dataclass(frozen=True, eq=False)
class TrainedAdditive(TakesSamples, Trained):
    """The part of every client, and the constant that the training started from."""

    model: Additive
    classes: tuple[str | float, ...]
    clients: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    positions: tuple[tuple[int, ...], ...]
    held: tuple[TrainedPart, ...]
    """The parts in the order of the clients."""
    constant: Array
    preparations: Preparations | None = None

    entry = "additive"
    checkpoint = LINEAR_CHECKPOINT
    what = "trees or other models"
    instead = "run.parts"
    offers = frozenset({"parts", "importance"})

    def __repr__(self) -> str:
        held = []
        for client, family, part in zip(self.clients, self.families, self.held, strict=True):
            held.append(f"{client}: {part_words(family, part)}")
        shown = ", ".join(held[:4])
        if len(held) > 4:
            shown += ", ..."
        prepared = ", prepared" if self.preparations else ""
        return f"TrainedAdditive({self.model.loss}, {shown}{prepared})"

    @property
    def known_classes(self) -> tuple[str | float, ...]:
        """The classes in the order of their numbers; empty in regression."""
        return self.classes

    @property
    def parts(self) -> dict[str, TrainedPart]:
        """The trained part of every client by name: trees, a linear block or a net."""
        return dict(zip(self.clients, self.held, strict=True))

    @property
    def families(self) -> tuple[str, ...]:
        """The name of every client's family."""
        return tuple(family.kind for family in self.model.families(self.clients))

    @staticmethod
    def assemble(
        model: Additive,
        data: VerticalData,
        classes: tuple[str | float, ...],
        parts: Sequence[TrainedPart],
        constant: Array,
    ) -> TrainedAdditive:
        """The trained model of the clients of this data, from their parts in the same order."""
        return TrainedAdditive(
            model,
            classes,
            data.clients,
            data.columns,
            data.positions,
            tuple(parts),
            constant,
            data.preparations,
        )

    def decision(self, X: Samples) -> Array:
        """The constant plus the margins of all parties: one number for each sample, or one per
        class."""
        return self._sum(self.checked_blocks(X))

    def checked_blocks(self, X: Samples) -> tuple[Block, ...]:
        """The blocks of new samples.

        Raises
        ------
        DataError
            If values are missing at a client whose columns were not prepared for that.
        """
        blocks = self.blocks_of(X)
        for k, (client, block) in enumerate(zip(self.clients, blocks, strict=True)):
            may_miss = False
            if self.preparations is not None:
                may_miss = self.preparations.parts[k].keeps_missing
            check_values(client, self.columns[k], block, may_miss)
        return blocks

    def _sum(self, blocks: Sequence[Block]) -> Array:
        """The constant plus the margins of all parties on these blocks."""
        margins = [part.margins(X) for part, X in zip(self.held, blocks, strict=True)]
        return np.asarray(self.constant + sum(margins))

    def predict(self, X: Samples) -> NDArray[np.generic]:
        """Values in regression, the labels of the classes otherwise."""
        return additive_predictions(self.model, self.classes, self.decision(X))

    def predict_proba(self, X: Samples) -> Array:
        """The probabilities of the classes, a column each; an error if the loss gives none."""
        return self.model.plain_loss.probabilities(self.decision(X))

    def columns_of(self, X: Samples) -> Columns:
        """Predictions with probabilities or scores, by the names of their columns."""
        return additive_columns(self.model, self.classes, self.decision(X))

    def outputs(self, X: Samples, y: ArrayLike) -> Outputs:
        """The outputs for samples with known labels, for metrics."""
        aggregate = self.decision(X)
        labels = true_labels(y, self.classes, len(aggregate))
        return linear_outputs(self.model.plain_loss, self.classes, labels, aggregate)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the parts into a folder; returns the description that ``read_additive`` needs."""
        arrays: dict[str, NDArray[Any]] = {}
        for k, part in enumerate(self.held):
            for name, array in part.arrays().items():
                arrays[f"{k}/{name}"] = array
        np.savez(folder / PARTS, constant=self.constant, **arrays)  # type: ignore[arg-type]
        # Gains are of trees alone, and `importance` refuses a model without any.
        if any(isinstance(part, TreePart) for part in self.held):
            gains = self.importance()
            (folder / IMPORTANCE).write_bytes(gains.to_csv().encode())

        return {
            "model": self.model.to_json(),
            "classes": list(self.classes),
            "clients": list(self.clients),
            "columns": [list(names) for names in self.columns],
            "positions": [list(places) for places in self.positions],
        }

    def onnx(self, path: Path) -> dict[Path, bytes]:
        """Raise: trees cannot be exported to ONNX."""
        raise MtcdError(
            "Trees are not exported to ONNX: their parties' texts in the run folder are models of "
            "LightGBM, which its own runtimes and converters read."
        )

    def importance(
        self,
        X: Any = None,
        y: Any = None,
        kind: str = "gain",
        by: str = "party",
        repeats: int = 5,
        seed: int = 0,
    ) -> Rows:
        """The importance of columns or parties.

        Parameters
        ----------
        X, y : samples and labels, optional
            As in ``evaluate``; needed for 'permutation'.
        kind : 'gain' or 'permutation', default 'gain'
            'gain': the total gain of the splits on each column of the parties with trees.
            'permutation': how much the mean loss of the samples rises when the rows of a party's
            block are shuffled.
        by : 'party' or 'column', default 'party'
            With 'permutation': shuffle all columns of a party together, or one at a time.
        repeats : int, default 5
            With 'permutation': the number of random orders whose rises are averaged.
        seed : int, default 0
            The seed of these orders.

        Returns
        -------
        Rows
            A list of dicts, one for each party or column.
        """
        if by not in ("party", "column"):
            raise MtcdError(f"by must be 'party' or 'column', but is {by!r}.")
        if y is None and isinstance(X, VerticalData):
            y = X.labels
        found: Rows = find("mtcd.models.trees.importance").importance(
            self, X, y, kind, repeats, seed, by == "column"
        )
        return found


def part_words(kind: str, part: TrainedPart) -> str:
    """A trained part in a few words."""
    if isinstance(part, TreePart):
        return f"{part.forest.rounds} rounds of trees"
    return kind


def read_additive(folder: Path, about: dict[str, Any], _model: object = None) -> TrainedAdditive:
    """The model of a run folder, from its files and their description in run.json.

    Raises ValueError, KeyError, TypeError or OSError if they cannot be read: the caller says of
    which folder.
    """
    model = model_from_json(about["model"])
    clients = tuple(about["clients"])
    try:
        # Read whole before it is decoded: the file is closed, whatever is wrong with it.
        with np.load(io.BytesIO((folder / PARTS).read_bytes()), allow_pickle=False) as stored:
            arrays = dict(stored)
    except BadZipFile as error:
        raise ValueError(f"{PARTS} is not a file of arrays: {error}") from None
    parts = []
    for k, family in enumerate(model.families(clients)):
        prefix = f"{k}/"
        own = {}
        for name, array in arrays.items():
            if name.startswith(prefix):
                own[name.removeprefix(prefix)] = array
        parts.append(family.part(own))
    return TrainedAdditive(
        model,
        tuple(about["classes"]),
        clients,
        tuple(tuple(names) for names in about["columns"]),
        tuple(tuple(places) for places in about["positions"]),
        tuple(parts),
        arrays["constant"],
    )


def read_families(about: Mapping[str, Any]) -> tuple[str, ...]:
    """The family of every client, from the description of a model in run.json."""
    model = model_from_json(about["model"])
    return tuple(family.kind for family in model.families(about["clients"]))


def additive_predictions(
    model: Additive, classes: tuple[str | float, ...], aggregate: Array
) -> NDArray[np.generic]:
    """The predictions of an aggregate with the constant: values in regression, the labels of the
    classes otherwise."""
    shown = model.plain_loss.predict(aggregate)
    if not classes:
        return shown
    named: NDArray[np.generic] = np.asarray(classes)[shown.astype(int)]
    return named


def additive_columns(
    model: Additive, classes: tuple[str | float, ...], aggregate: Array
) -> Columns:
    """The predictions of an aggregate with their probabilities or scores, by the names of the
    columns."""
    loss = model.plain_loss
    predictions = additive_predictions(model, classes, aggregate)
    probabilities = None
    if loss.gives_probabilities:
        probabilities = loss.probabilities(aggregate)
    return predicted_columns(predictions, classes, aggregate, probabilities)
