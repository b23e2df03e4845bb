"""The problem of a party: a linear model of which it has one block, and knows the number of the
others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, DataError, MtcdError
from mtcd.data.checks import check_values
from mtcd.data.prepare import ColumnPreparation, Preparations
from mtcd.data.prepare.preparation import decided, fit_columns
from mtcd.data.standardise import Scaling, standardise
from mtcd.data.vertical import VerticalData
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.participant.table import PartyTable
from mtcd.models.glm.config import GlmSection
from mtcd.models.glm.fit import LabelFit
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.models.glm.penalty import Penalty
from mtcd.models.label_noise import with_noise
from mtcd.models.losses import Loss

Labels = NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class OwnData:
    """The data of party ``number`` with its preparation."""

    number: int
    data: VerticalData
    preparation: ColumnPreparation | None
    held_out: Array | None
    """The block of the held-out samples, prepared (and scaled) as the training samples are."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the data."""
        return self.data.notes


@dataclass(frozen=True, eq=False)
class OwnPart(OwnData):
    """A party's data and problem, with the scaling for new samples.

    The ``problem`` has a block for every client, but only the block of this party, ``number``, has
    columns.
    """

    model: Glm
    problem: LinearProblem
    scaling: Scaling | None

    def held_out_outputs(self, theta: Array) -> Array:
        """The representation of the held-out samples."""
        assert self.held_out is not None
        return np.asarray(self.held_out @ theta)

    def gap_part(self, theta: NDArray[np.float64], aggregate: NDArray[np.float64]) -> float | None:
        """This party's part of the duality gap: the sum of all parts bounds f - f*. None if there
        is no bound.

        With g the derivative of the loss, c_k = X_k^T g and r* the conjugate of r, the parts are
        theta_k . c_k + r(theta_k) + r*(-c_k): each depends on the token's aggregate and on the
        party's block only.
        """
        penalty = self.problem.penalties[self.number]
        # Without an l2 penalty the conjugate of r is infinite outside of |c| <= l1, and a free
        # column has no bound at all.
        if penalty.l2 <= 0 or penalty.free:
            return None
        c = self.problem.blocks[self.number].T @ self.problem.fit.gradient(aggregate)
        # r* of the elastic net: only what exceeds l1 counts.
        beyond = np.maximum(np.abs(c) - penalty.l1, 0.0)
        conjugate = float(np.vdot(beyond, beyond)) / (2.0 * penalty.l2)
        return float(np.vdot(theta, c)) + penalty.value(theta) + conjugate


def start_of(problem: LinearProblem) -> float:
    """f before the first update, where theta is 0."""
    return problem.read_off(np.zeros(problem.labels.shape), 0.0)


def penalty_scale(problem: LinearProblem) -> float:
    """The order of magnitude of r(theta) at the end; f is 0 at the start if no sample with a weight
    can be improved."""
    # Only the order of magnitude matters, so any number above 0 does.
    return start_of(problem) or 1.0


def scale_of(problem: LinearProblem) -> float:
    """The order of magnitude of representations."""
    # Labels may be all 0, or tiny.
    return max(1.0, float(np.abs(problem.labels).max()))


def glm_of(config: BundleConfig) -> Glm:
    """The linear model of a bundle."""
    if not isinstance(config.model, GlmSection):
        raise ConfigError("model.kind: this federation trains a split network, not a linear model.")
    given = Glm(**config.model.model_dump(), positive=config.labels.positive)
    model: Glm = with_noise(given, config.label_privacy)
    return model


def without_classes(config: BundleConfig) -> BundleConfig:
    """The bundle without the positive class, for stand-in labels, which are of other classes."""
    # Labels that stand in for unknown ones are 0 and 1: a positive class would not be among them.
    return config.model_copy(update={"labels": config.labels.model_copy(update={"positive": None})})


def own_part(
    config: BundleConfig,
    table: PartyTable,
    rows: Sequence[int] | None,
    labels: Labels,
    held_out: Sequence[int] = (),
    weights: Array | None = None,
) -> OwnPart:
    """The part of a party: these rows of its table (None: all), in the agreed order, with their
    labels and weights."""
    model, own = glm_of(config), own_data(config, table, rows, labels, held_out, weights)
    number = own.number
    data, scaling = own.data, None
    if config.standardise:
        data, scaling = standardise(own.data)
    loss, encoded, classes = model.weighted(labels, weights)
    # A problem has a block for every client. Those of others have no columns, and add nothing to
    # any sum.
    empty = LinearProblem(loss, encoded, classes, (), model.penalties(len(config.parties)))
    problem = empty.with_blocks({number: model.block(number, data.blocks[0])})
    apart = own.held_out
    if apart is not None:
        if scaling is not None:
            (apart,) = scaling.apply((apart,))
        apart = np.asarray(model.block(number, apart))
    return OwnPart(number, data, own.preparation, apart, model, problem, scaling)


def own_data(
    config: BundleConfig,
    table: PartyTable,
    rows: Sequence[int] | None,
    labels: Labels,
    held_out: Sequence[int],
    weights: Array | None,
) -> OwnData:
    """These rows of a party's table (None: all), in the agreed order, prepared, with their labels
    and weights."""
    order = check_rows(table, rows, len(labels))
    preparation, columns, values, notes = prepared_rows(config.name, table, order, held_out)
    preparations = None
    if preparation is not None:
        preparations = Preparations((preparation,), (tuple(range(len(columns))),))

    data = VerticalData(
        clients=(config.name,),
        columns=(columns,),
        # Columns first, as in one process: the same products, and the same rounding.
        blocks=(np.asfortranarray(values),),
        labels=labels,
        weights=weights,
        notes=(*table.notes, *notes),
        preparations=preparations,
    )
    apart = None
    if len(held_out):
        apart = held_out_values(config.name, table, held_out, preparation, columns)

    return OwnData(config.parties.index(config.name), data, preparation, apart)


def check_rows(table: PartyTable, rows: Sequence[int] | None, labels: int) -> Sequence[int]:
    """The rows to train on (None: all), of which there must be as many as labels."""
    order = range(table.rows) if rows is None else rows
    if len(order) != labels:
        raise DataError(
            f"{table.path} has {len(order)} rows for {labels} labels: with 'alignment: given "
            f"order' all tables "
            "must hold the same samples in the same order."
        )
    return order


def prepared_rows(
    party: str, table: PartyTable, rows: Sequence[int], held_out: Sequence[int] = ()
) -> tuple[ColumnPreparation | None, tuple[str, ...], Array, list[str]]:
    """The preparation of a party, fitted on these rows; the columns and values that they become,
    and notes.

    These are also on the rows that are held out, and stay with the party: they may hold values of
    its table.
    """
    taken = table.take(rows)
    if taken.frame is None or taken.recipe is None:
        return None, table.columns, taken.values, []
    recipe = taken.recipe
    if table.frame is not None:
        # Kinds of columns are decided on the whole table, so that a rare value decides too.
        recipe = decided(party, table.frame, taken.recipe)
    # Fitted on training rows only: a category that just the held-out rows have must not be known.
    preparation, values, notes = fit_columns(party, taken.frame, recipe)
    if len(held_out) and (apart := table.take(held_out).frame) is not None:
        notes += [f"In the test set: {said}" for said in preparation.notes_on_new(apart)]
    return preparation, preparation.outputs, values, notes


def held_out_values(
    party: str,
    table: PartyTable,
    rows: Sequence[int],
    preparation: ColumnPreparation | None,
    columns: Sequence[str],
) -> Array:
    """The values of held-out rows, prepared as the training rows were. Errors, which others see,
    hold no value."""
    try:
        values = prepared_values(preparation, table.take(rows))
        check_values(party, columns, values, preparation is not None and preparation.keeps_missing)
    except DataError:
        raise DataError(
            f"The held-out rows of {party!r} cannot be prepared as its training rows were: a value "
            f"is missing, too "
            "large, or of a category that no training row has. Prepare with on_unseen: ignore, or "
            "mend the table."
        ) from None
    return values


def prepared_values(preparation: ColumnPreparation | None, table: PartyTable) -> Array:
    """The values of new samples as a block takes them."""
    if preparation is None:
        return table.values
    assert table.frame is not None
    return preparation.apply(table.frame)


@dataclass(frozen=True, eq=False)
class SizedProblem(LinearProblem):
    """A problem of which only the sizes are known, which suffice for a server that sums and
    averages."""

    @property
    def fit(self) -> LabelFit:
        """Raise: the labels are unknown here."""
        raise MtcdError(
            "The server does not know the labels: if it may, write 'labels.shared_with: [parties, "
            "server]' in the "
            "federation file, and create new bundles."
        )


def server_problem(
    config: BundleConfig,
    samples: int,
    outputs: int,
    labels: Labels | None = None,
    weights: Array | None = None,
) -> LinearProblem:
    """The problem at the server: with labels and weights if it may know them, otherwise with sizes
    only."""
    model, K = glm_of(config), len(config.parties)
    if labels is None:
        return sized_problem(model.loss, samples, outputs, K, model.penalties(K))
    loss, encoded, classes = model.weighted(labels, weights)
    return LinearProblem(loss, encoded, classes, (), model.penalties(K)).with_blocks({})


def sized_problem(
    loss: Loss, samples: int, outputs: int, clients: int, penalties: tuple[Penalty, ...] = ()
) -> SizedProblem:
    """The problem at a server that does not know the labels."""
    # `broadcast_to` takes no memory for N numbers that nobody reads.
    unknown = np.broadcast_to(0.0, samples if outputs == 1 else (samples, outputs))
    classes: tuple[float, ...] = ()
    if outputs > 1:
        classes = tuple(float(c) for c in range(outputs))
    return SizedProblem(loss, unknown, classes, (np.zeros((samples, 0)),) * clients, penalties)
