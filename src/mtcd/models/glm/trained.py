"""A trained model: the parameters of all clients, for inspection and prediction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Array
from mtcd.core.files import LINEAR_CHECKPOINT
from mtcd.core.optional import find
from mtcd.core.rows import Rows
from mtcd.data.checks import check_values
from mtcd.data.prepare import Preparations
from mtcd.data.standardise import Scaling
from mtcd.data.vertical import VerticalData
from mtcd.models.glm.coefficients import INTERCEPT, coefficient_row, shift_of, unscaled
from mtcd.models.glm.evaluation import linear_outputs
from mtcd.models.glm.model import Glm
from mtcd.models.metrics import Outputs
from mtcd.models.predicted import Columns, predicted_columns, true_labels
from mtcd.models.samples import Samples, TakesSamples
from mtcd.models.trained import Trained


@dataclass(frozen=True, eq=False)
class TrainedModel(TakesSamples, Trained):
    """theta_k of every client, as trained: on the scaled columns, where ``scaling`` says that these
    were scaled.

    Clients are in order; ``columns[k]`` are their columns, ``positions[k]`` where these stood in
    the original order. The intercept stands apart (0 if there is none).
    """

    model: Glm
    classes: tuple[str | float, ...]
    clients: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    positions: tuple[tuple[int, ...], ...]
    thetas: tuple[Array, ...]
    trained_intercept: Array
    scaling: Scaling | None = None
    preparations: Preparations | None = None
    """The preparations of the clients, by which ``columns`` were made of the columns as given."""

    entry = "model"
    checkpoint = LINEAR_CHECKPOINT
    what = "a linear model"
    instead = "its parameters or coefficients"
    takes_sparse = True
    offers = frozenset(
        {
            "parameters",
            "coefficients",
            "scaled_coefficients",
            "column_names",
            "intercept",
            "coefficients_table",
        }
    )

    def __repr__(self) -> str:
        about = f"{self.model.kind}, {sum(map(len, self.columns)):,} columns of {len(self.clients):,} client(s)"
        parts = []
        if self.classes:
            parts.append(f", {len(self.classes)} classes")
        if self.model.intercept:
            parts.append(", intercept")
        if self.preparations:
            parts.append(", prepared")
        if self.scaling:
            parts.append(", standardised")
        return f"TrainedModel({about}{''.join(parts)})"

    @staticmethod
    def assemble(
        model: Glm,
        data: VerticalData,
        classes: tuple[str | float, ...],
        thetas: Sequence[Array],
        scaling: Scaling | None,
    ) -> TrainedModel:
        """From the final parameters of the clients: the intercept is the last entry of the first
        client."""
        own, intercept = tuple(thetas), np.zeros(thetas[0].shape[1:])
        if model.intercept:
            # The column of ones is the last one of the first client, see `Glm.block`.
            own, intercept = (thetas[0][:-1], *thetas[1:]), thetas[0][-1]
        return TrainedModel(
            model,
            classes,
            data.clients,
            data.columns,
            data.positions,
            own,
            np.asarray(intercept),
            scaling,
            data.preparations,
        )

    @property
    def known_classes(self) -> tuple[str | float, ...]:
        """The classes; none of values."""
        return self.classes

    @property
    def parameters(self) -> dict[str, Array]:
        """theta_k of every client, its columns in order, as trained: on the scaled columns, where
        ``standardise`` was asked for."""
        return dict(zip(self.clients, self.thetas, strict=True))

    @property
    def coefficients(self) -> Array:
        """The parameters on the columns as given, in their original order: (d,), or (d, classes).

        ``X @ coefficients + intercept`` are the decision values, whether the training scaled the
        columns or not.
        """
        thetas = self.thetas
        if self.scaling is not None:
            thetas = tuple(
                unscaled(theta, s) for theta, s in zip(thetas, self.scaling.scales, strict=True)
            )
        return np.asarray(np.concatenate(thetas)[self.order()])

    @property
    def intercept(self) -> float | Array:
        """The constant that goes with ``coefficients``: a number, or one per class.

        Without ``intercept`` in the model it is 0, unless the columns were standardised: it then
        takes in their means.
        """
        shift = np.zeros_like(self.trained_intercept)
        if self.scaling is not None:
            for theta, mean, scale in zip(
                self.thetas, self.scaling.means, self.scaling.scales, strict=True
            ):
                shift = shift + shift_of(theta, mean, scale)
        intercept = np.asarray(self.trained_intercept - shift)
        if intercept.ndim == 0:
            return float(intercept)
        return intercept

    @property
    def scaled_coefficients(self) -> Array:
        """The parameters as trained, in the original order of the columns: those of standardised
        columns, where ``standardise`` was asked for; the same as ``coefficients`` otherwise.
        """
        return np.asarray(np.concatenate(self.thetas)[self.order()])

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns in the order of ``coefficients``."""
        stacked = [name for names in self.columns for name in names]
        return tuple(stacked[i] for i in self.order())

    def coefficients_table(self) -> Rows:
        """The coefficients by client and column, as a list of dicts with ``to_polars()`` and
        ``to_pandas()``.

        ``coefficient`` is on the column as given, ``scaled_coefficient`` as trained, which is
        another one where ``standardise`` was asked for; of several classes, one of each per class.
        The last row is the intercept. Of prepared data, the columns are those that the preparation
        made.
        """
        holders = []
        for client, names in zip(self.clients, self.columns, strict=True):
            holders += [client] * len(names)
        clients = [holders[i] for i in self.order()]
        parts = zip(
            clients, self.column_names, self.coefficients, self.scaled_coefficients, strict=True
        )
        rows = [coefficient_row(*part, self.classes) for part in parts]
        constants = self.intercept, self.trained_intercept
        return Rows([*rows, coefficient_row(None, INTERCEPT, *constants, self.classes)])

    def decision(self, X: Samples) -> Array:
        """The aggregate sum_k X_k theta_k + intercept of new samples: one number each, or one per
        class."""
        blocks = self.blocks_of(X)
        for client, columns, block in zip(self.clients, self.columns, blocks, strict=True):
            # A NaN would become the prediction of this sample, and a text an error of NumPy.
            check_values(client, columns, block)
        if self.scaling is not None:
            blocks = self.scaling.apply(blocks)
        aggregate = sum(block @ theta for block, theta in zip(blocks, self.thetas, strict=True))
        return np.asarray(aggregate + self.trained_intercept)

    def predict(self, X: Samples) -> NDArray[np.generic]:
        """Values in regression, the labels of the classes otherwise."""
        return predictions(self.model, self.classes, self.decision(X))

    def predict_proba(self, X: Samples) -> Array:
        """The probabilities of the classes, a column each; an error if the model has none."""
        return self.model.loss.probabilities(self.decision(X))

    def columns_of(self, X: Samples) -> Columns:
        """Predictions with probabilities or scores, by the names of their columns."""
        return linear_columns(self.model, self.classes, self.decision(X))

    def outputs(self, X: Samples, y: ArrayLike) -> Outputs:
        """The outputs for samples with known labels, for metrics."""
        aggregate = self.decision(X)
        labels = true_labels(y, self.classes, len(aggregate))
        return linear_outputs(self.model.loss, self.classes, labels, aggregate)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the arrays and the table of coefficients."""
        written: dict[str, Any] = find("mtcd.models.glm.trained_files").write_linear(self, folder)
        return written

    def onnx(self, path: Path) -> dict[Path, bytes]:
        """The model as one file, of the columns as given."""
        return {path: find("mtcd.models.glm.onnx_file").linear_onnx(self)}


def predictions(
    model: Glm, classes: tuple[str | float, ...], aggregate: Array
) -> NDArray[np.generic]:
    """The predictions of an aggregate: values in regression, the labels of the classes
    otherwise."""
    shown = model.loss.predict(aggregate)
    if not classes:
        return shown
    named: NDArray[np.generic] = np.asarray(classes)[shown.astype(int)]
    return named


def linear_columns(model: Glm, classes: tuple[str | float, ...], aggregate: Array) -> Columns:
    """The predictions of an aggregate, with probabilities or scores, by the names of their
    columns."""
    probabilities = None
    if model.loss.gives_probabilities:
        probabilities = model.loss.probabilities(aggregate)
    return predicted_columns(
        predictions(model, classes, aggregate), classes, aggregate, probabilities
    )
