"""A party's block of a linear model: its coefficients, and the scaling and classes for new samples.

``block.npz`` holds all of it, for programs; for people, ``block.csv`` holds the coefficients as
trained, and ``coefficients.csv`` also those on the columns as given.
"""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array, all_finite
from mtcd.core.files import COEFFICIENTS
from mtcd.core.rows import Rows
from mtcd.data.prepare import ColumnPreparation
from mtcd.data.standardise import Scaling
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.coefficients import INTERCEPT, coefficient_row, shift_of, unscaled
from mtcd.models.glm.model import Glm
from mtcd.models.glm.party.own_block import NPZ, OwnBlock, check_format, preparation_of, read_npz
from mtcd.models.glm.party.problem import OwnPart
from mtcd.models.glm.trained import linear_columns, predictions
from mtcd.models.label_noise import settings_to_store
from mtcd.models.predicted import Columns

CSV = "block.csv"


@dataclass(frozen=True, eq=False)
class PartyBlock(OwnBlock):
    """theta_k. The first party has the ``intercept``; it is 0 elsewhere. Shapes: (d,) and (), or
    with classes."""

    party: str
    model: Glm
    columns: tuple[str, ...]
    classes: tuple[str | float, ...]
    theta: Array
    intercept: Array
    scaling: Scaling | None = None
    preparation: ColumnPreparation | None = None

    @staticmethod
    def of(part: OwnPart, parameters: Array) -> PartyBlock:
        """The block of a party from the final parameters of its client."""
        data, problem = part.data, part.problem
        free = part.problem.penalties[part.number].free
        theta, intercept = parameters, np.zeros(parameters.shape[1:])
        # All parties store what belongs to the column of ones apart: new samples have no such
        # column.
        if free:  # the column of ones is the last one
            theta, intercept = parameters[:-1], parameters[-1]

        return PartyBlock(
            data.clients[0],
            part.model,
            data.columns[0],
            problem.classes,
            theta,
            np.asarray(intercept),
            part.scaling,
            part.preparation,
        )

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite: if not, the training diverged."""
        return all_finite(self.theta, self.intercept)

    @property
    def outputs(self) -> int:
        """The width of a representation."""
        return self.model.loss.outputs(self.classes)

    def represent(self, table: PartyTable) -> Array:
        """h_k of new samples, in the order of their table."""
        X = self.values(table)
        if self.scaling is not None:
            (X,) = self.scaling.apply((X,))
        return np.asarray(X @ self.theta + self.intercept)

    def predict(self, aggregate: Array) -> NDArray[np.generic]:
        """The predictions for the sum of all parties' h_k: values in regression, class labels
        otherwise."""
        return predictions(self.model, self.classes, aggregate)

    def columns_of(self, aggregate: Array) -> Columns:
        """The same, with the probabilities of classes or scores, by the names of their columns."""
        return linear_columns(self.model, self.classes, aggregate)

    def files(self) -> dict[str, bytes]:
        """The block as files, by name."""
        return {
            CSV: self._csv(),
            COEFFICIENTS: self.coefficients_table().to_csv().encode(),
            NPZ: self._npz(),
        }

    def coefficients_table(self) -> Rows:
        """A row for each column, and one for this party's part of the intercept."""
        given, constant = self.theta, self.intercept
        if self.scaling is not None:
            means, scales = self.scaling.means[0], self.scaling.scales[0]
            given, constant = unscaled(given, scales), constant - shift_of(given, means, scales)
        # The intercept comes last, as a row of its own: it belongs to no column.
        parts = [
            *zip(self.columns, given, self.theta, strict=True),
            (INTERCEPT, constant, self.intercept),
        ]
        return Rows(coefficient_row(self.party, *part, self.classes) for part in parts)

    def _csv(self) -> bytes:
        """One row per column. Coefficients refer to the scaled columns, if these were scaled."""
        names = ["coefficient"]
        if self.outputs > 1:
            names = [f"coefficient {c}" for c in self.classes]

        rows = []
        for name, theta in zip(self.columns, self.theta, strict=True):
            rows.append([name, *np.atleast_1d(theta).tolist()])

        # A person who computes with these coefficients must scale new values in the same way.
        if self.scaling is not None:
            names += ["mean", "scale"]
            pairs = zip(
                self.scaling.means[0].tolist(), self.scaling.scales[0].tolist(), strict=True
            )
            rows = [[*row, *pair] for row, pair in zip(rows, pairs, strict=True)]
        if self.intercept.any():
            rows.append([INTERCEPT, *np.atleast_1d(self.intercept).tolist()])
        text = io.StringIO(newline="")
        csv.writer(text).writerows([["column", *names], *rows])
        return text.getvalue().encode()

    def _npz(self) -> bytes:
        arrays = {"theta": self.theta, "intercept": self.intercept}
        if self.scaling is not None:
            arrays |= {"means": self.scaling.means[0], "scales": self.scaling.scales[0]}
        return self.npz({"model": settings_to_store(self.model)}, arrays)


def read_block(folder: Path) -> PartyBlock:
    """Read the block of a run folder."""
    return read_npz(folder, _block)


def _block(about: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> PartyBlock:
    check_format(about)
    scaling = None
    if "means" in arrays:
        scaling = Scaling((arrays["means"],), (arrays["scales"],))

    block = PartyBlock(
        about["party"],
        Glm(**about["model"]),
        tuple(about["columns"]),
        tuple(about["classes"]),
        arrays["theta"],
        arrays["intercept"],
        scaling,
        preparation_of(about),
    )

    # read from a file, which may be damaged: the shapes must be those of the model
    # Arrays of npz carry no names of dimensions: shapes are what tells whether they fit.
    width: tuple[int, ...] = (len(block.columns),)
    each: tuple[int, ...] = () if block.outputs == 1 else (block.outputs,)
    scales = () if scaling is None else (*scaling.means, *scaling.scales)
    fitting = block.theta.shape == width + each and block.intercept.shape == each
    if not fitting or any(values.shape != width for values in scales) or not block.finite:
        raise ValueError("its parts do not belong together")
    return block
