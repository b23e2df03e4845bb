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
    """The margins of one block for ensembles that differ by a few trees."""

    def __init__(self, X: Block, outputs: int) -> None:
        self.X, self.outputs = X, outputs
        shape = (X.shape[0],) if outputs == 1 else (X.shape[0], outputs)
        self._empty: tuple[Ensemble, Array] = Ensemble(), np.zeros(shape)
        self._known: OrderedDict[int, tuple[Ensemble, Array]] = OrderedDict()

    def of(self, ensemble: Ensemble) -> Array:
        """The margins of an ensemble. The caller must not change the array."""
        if id(ensemble) in self._known:
            self._known.move_to_end(id(ensemble))
            return self._known[id(ensemble)][1]
        differences = [
            (summed([(1.0, ensemble), (-1.0, e)]), z)
            for e, z in (self._empty, *self._known.values())
        ]
        missing, known = min(differences, key=lambda pair: len(pair[0]))
        margins = known
        if len(missing):
            margins = known + Forest.of(missing, self.X.shape[1], self.outputs).margins(self.X)
        # the ensemble is kept, so that its id is its own
        self._known[id(ensemble)] = ensemble, margins
        if len(self._known) > KEPT:
            self._known.popitem(last=False)
        return margins
