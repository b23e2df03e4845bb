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
from mtcd.models.trees.families.family import Part
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
    held: tuple[Part, ...]
    """The parts in the order of the clients."""
    constant: Array
    preparations: Preparations | None = None

    entry = "additive"
    checkpoint = LINEAR_CHECKPOINT
    what = "trees or other models"
    instead = "run.parts"
    offers = frozenset({"parts", "importance"})

    def __repr__(self) -> str:
        families = self.model.families(self.clients)
        held = [
            f"{client}: {part_words(family.kind, part)}"
            for client, family, part in self._each(families)
        ]
        shown = ", ".join(held[:4]) + (", ..." if len(held) > 4 else "")
        return f"TrainedAdditive({self.model.loss}, {shown}{', prepared' if self.preparations else ''})"

    @property
    def known_classes(self) -> tuple[str | float, ...]:
        """The classes; none of values."""
        return self.classes

    @property
    def parts(self) -> dict[str, Part]:
        """The trained part of every client by name: trees, a linear block or a net."""
        return dict(zip(self.clients, self.held, strict=True))

    @property
    def families(self) -> tuple[str, ...]:
        """The family of every client."""
        return tuple(family.kind for family in self.model.families(self.clients))

    def _each(self, families: Sequence[Any]) -> zip[tuple[str, Any, Part]]:
        return zip(self.clients, families, self.held, strict=True)

    @staticmethod
    def assemble(
        model: Additive,
        data: VerticalData,
        classes: tuple[str | float, ...],
        parts: Sequence[Part],
        constant: Array,
    ) -> TrainedAdditive:
        """From the parts of the clients that this data has."""
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
        """The blocks of new samples, in which values are missing only where the training had
        such."""
        blocks = self.blocks_of(X)
        if self.preparations is None:
            kept = [False] * len(blocks)
        else:
            kept = [p.keeps_missing for p in self.preparations.parts]
        for client, columns, block, may_miss in zip(
            self.clients, self.columns, blocks, kept, strict=True
        ):
            check_values(client, columns, block, may_miss)
        return blocks

    def _sum(self, blocks: Sequence[Block]) -> Array:
        return np.asarray(
            self.constant + sum(part.margins(X) for part, X in zip(self.held, blocks, strict=True))
        )

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
        return linear_outputs(
            self.model.plain_loss,
            self.classes,
            true_labels(y, self.classes, len(aggregate)),
            aggregate,
        )

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the parts into a folder; returns the description that ``read_additive`` needs."""
        arrays = {
            f"{k}/{name}": array
            for k, part in enumerate(self.held)
            for name, array in part.arrays().items()
        }
        np.savez(folder / PARTS, constant=self.constant, **arrays)  # type: ignore[arg-type]
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
        """Trees cannot be exported."""
        raise MtcdError(
            "Trees are not exported to ONNX: their parties' texts in the run folder are models of "
            "LightGBM, which "
            "its own runtimes and converters read."
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
        """The importance of columns or parties, as a list of dicts.

        ``kind`` 'gain': the gain of the splits on each column of the parties with trees.
        'permutation': how much the mean loss of samples ``X`` with labels ``y`` rises when the rows
        of a party's block are shuffled, or with ``by`` 'column' those of each column; the mean of
        so many ``repeats``. ``X`` and ``y`` as in ``evaluate``.
        """
        if by not in ("party", "column"):
            raise MtcdError(f"by must be 'party' or 'column', but is {by!r}.")
        if y is None and isinstance(X, VerticalData):
            y = X.labels
        found: Rows = find("mtcd.models.trees.importance").importance(
            self, X, y, kind, repeats, seed, by == "column"
        )
        return found


def part_words(kind: str, part: Part) -> str:
    """A part in a few words."""
    return f"{part.forest.rounds} rounds of trees" if isinstance(part, TreePart) else kind


def read_additive(folder: Path, about: dict[str, Any], _model: object = None) -> TrainedAdditive:
    """The model of a run folder. Raises ValueError, KeyError, TypeError or OSError."""
    model = model_from_json(about["model"])
    clients = tuple(about["clients"])
    try:
        with np.load(io.BytesIO((folder / PARTS).read_bytes()), allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except BadZipFile as error:
        raise ValueError(f"{PARTS} is not a file of arrays: {error}") from None
    parts = []
    for k, family in enumerate(model.families(clients)):
        own = {
            name.partition("/")[2]: array
            for name, array in arrays.items()
            if name.startswith(f"{k}/")
        }
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
    return np.asarray(classes)[shown.astype(int)] if classes else shown


def additive_columns(
    model: Additive, classes: tuple[str | float, ...], aggregate: Array
) -> Columns:
    """The same with probabilities or scores, by the names of their columns."""
    loss = model.plain_loss
    probabilities = loss.probabilities(aggregate) if loss.gives_probabilities else None
    return predicted_columns(
        additive_predictions(model, classes, aggregate), classes, aggregate, probabilities
    )
