"""What sealed tours refuse, because it would tell labels or columns whatever the encryption."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mtcd.core.arrays import Array, dense
from mtcd.core.errors import ConfigError, DataError
from mtcd.models.glm.model import LinearProblem
from mtcd.privacy.sealed.plan import SealedPlan
from mtcd.protocol.model import Problem

if TYPE_CHECKING:
    from mtcd.privacy.sealed.settings import SealedTours

FEWEST_ROWS = 10


class SealedChecks:
    """The checks of a training, of one party's block, and of the sizes of all.

    Parameters
    ----------
    tours
        The method.
    """

    def __init__(self, tours: SealedTours) -> None:
        self._tours = tours

    def problem(self, problem: Problem) -> None:
        """Reject a problem whose gradients cannot be computed on ciphertexts, or would tell
        labels."""
        if not isinstance(problem, LinearProblem):
            raise ConfigError("privacy.mode: sealed is for linear models only.")
        if problem.loss.sample_weights is not None:
            raise ConfigError(
                "privacy.mode: sealed takes no weights of samples or classes: leave them out."
            )
        # a(z) - y z: the label holder subtracts y by itself, so that labels never meet g of others.
        if not problem.loss.separable or problem.outputs != 1:
            raise ConfigError(
                "privacy.mode: sealed needs a loss of the form a(z) - y z with one number per "
                "sample: ridge, linear or logistic."
            )
        if problem.nonsmooth:
            raise ConfigError("privacy.mode: sealed needs a smooth penalty: set model.l1 to 0.")
        for k, X in enumerate(problem.blocks):
            self.block(X, f"client {k}")

    def resolution(self, plan: SealedPlan, X: Any, party: str) -> None:
        """Refuse a column of which rounding to integers would leave too little."""
        plan.scales(plan.parameters()).check_resolution(np.asarray(dense(X), float), party)

    def block(self, X: Any, party: str) -> None:
        """Refuse a block whose gradients would tell labels."""
        check_columns(X, party)

    def sizes(self, columns: Sequence[int], samples: int, parties: Sequence[str]) -> None:
        """Refuse numbers of columns from which labels, or a whole column, could be read.

        Parameters
        ----------
        columns : sequence of int
            The d_k of all parties, as they have declared them.
        samples : int
            The number of training samples.
        parties : sequence of str
            The names of the parties, for errors.

        Raises
        ------
        ConfigError
            With the name of the party, and of the setting that allows it.
        """
        for d, party in zip(columns, parties, strict=True):
            self.width(d, samples, party)

        # A single column is known up to a factor once its product with a known vector is.
        alone = [
            party for k, party in enumerate(parties) if k != self._tours.holder and columns[k] == 1
        ]
        if alone and not self._tours.server and not self._tours.accept_revealed_columns:
            raise ConfigError(
                f"privacy.mode: sealed: {alone[0]} has one column, and a single tour without a "
                "server reveals it to the label holder, up to a factor. Use method.kind: mtcd, "
                "whose server keeps the key; or, if the label holder may know that column, set "
                "privacy.accept_revealed_columns: true."
            )

    def width(self, columns: int, samples: int, party: str) -> None:
        """Refuse a party with half as many columns as there are samples, or more."""
        # d equations for N labels of two values: about half are enough to solve them.
        if 2 * columns < samples or self._tours.accept_revealed_labels:
            return
        raise ConfigError(
            f"privacy.mode: sealed: {party} has {columns} columns (with that of the intercept) for "
            f"{samples} training samples. With half as many columns as samples, or more, a party "
            "reads labels from its own gradients (the label holder: the others' scores), whatever "
            "the encryption. Use fewer columns or more samples; or, if that party may know them, "
            "set privacy.accept_revealed_labels: true."
        )


def check_columns(X: Any, party: str) -> None:
    """Reject a column that singles out fewer than ten rows: its gradients would tell their labels.

    A column singles out the rows in which it does not have its most frequent value; a constant one,
    as that of the intercept, singles out none.
    """
    for j, column in enumerate(np.asarray(dense(X), float).T):
        apart = _singled_out(column)
        if 0 < apart < FEWEST_ROWS:
            raise DataError(
                f"Column {j + 1} of {party} differs from its usual value in {apart} rows only: in "
                "a sealed training its gradient would tell the labels of these rows. Leave out "
                f"columns with fewer than {FEWEST_ROWS} such rows."
            )


def _singled_out(column: Array) -> int:
    return len(column) - int(np.unique(column, return_counts=True)[1].max())
