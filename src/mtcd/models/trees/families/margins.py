"""Margins of ensembles on one block: of a new ensemble, only the trees that a known one does not
have are evaluated."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np

from mtcd.core.arrays import Array
from mtcd.data.vertical import Block
from mtcd.models.trees.boosting import Forest
from mtcd.models.trees.ensemble import Ensemble, summed

KEPT = 4  # ensembles whose margins are kept: theta_k, and its latest copies


class GrowingMargins:
    """The margins of one block for ensembles that differ by a few trees.

    A training asks for the margins of an ensemble after every visit. Evaluating all trees each time
    would take time quadratic in their number.
    """

    def __init__(self, X: Block, outputs: int) -> None:
        self.X = X
        self.outputs = outputs
        shape = (X.shape[0],) if outputs == 1 else (X.shape[0], outputs)
        self._empty: tuple[Ensemble, Array] = Ensemble(), np.zeros(shape)
        self._known: OrderedDict[int, tuple[Ensemble, Array]] = OrderedDict()

    def of(self, ensemble: Ensemble) -> Array:
        """The margins of an ensemble. The caller must not change the array."""
        # By identity: ensembles are immutable, and comparing them tree by tree is what this avoids.
        if id(ensemble) in self._known:
            self._known.move_to_end(id(ensemble))
            return self._known[id(ensemble)][1]

        # start from the known ensemble that differs by the fewest trees
        differences = []
        for known, margins_of_known in (self._empty, *self._known.values()):
            difference = summed([(1.0, ensemble), (-1.0, known)])
            differences.append((difference, margins_of_known))
        missing, margins = min(differences, key=lambda pair: len(pair[0]))
        if len(missing):
            margins = margins + Forest.of(missing, self.X.shape[1], self.outputs).margins(self.X)

        # the ensemble is kept beside its margins, so that no other one gets its id
        self._known[id(ensemble)] = ensemble, margins
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return margins
