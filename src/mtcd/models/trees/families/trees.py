"""Boosted trees: a visit grows Q trees on the party's own columns, to the derivatives of the loss
at the token.

This is coordinate descent in function space: h_k is a sum of trees, and a visit moves it along one
more. ``TreeParty.local_update`` is the visit.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mtcd.core.arrays import Array, Rows
from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError
from mtcd.core.seeding import stream
from mtcd.data.vertical import Block
from mtcd.models.trees.boosting import Forest, Grown, Learner, as_bytes
from mtcd.models.trees.ensemble import Ensemble, Tree, summed
from mtcd.models.trees.families.family import FAMILIES, Arrays, Family, Inputs, NoSmoothness
from mtcd.models.trees.gains import GrowthRule
from mtcd.protocol.model import LocalUpdates

# a gain is measured on one fifth of the samples, by a tree that is grown on the other four
FOLDS = 5


@FAMILIES.register("trees")
@dataclass(frozen=True, kw_only=True)
class TreeFamily(Family):
    """The settings of boosted trees, under the names of :class:`mtcd.Trees`, which explains
    them."""

    learning_rate: float = 0.1
    depth: int = 6
    leaves: int = 31
    l2: float = 1.0
    min_samples: int = 20
    columns: float = 1.0
    rows: float = 1.0
    adaptive: bool = True
    bins: int = 255
    threads: int = field(default=1, repr=False)

    kind = "trees"
    keeps_missing = True
    additive = True

    def __post_init__(self) -> None:
        check_number("model.learning_rate", self.learning_rate, above=0)
        check_number("model.l2", self.l2)
        for name, least in (
            ("depth", 0),
            ("leaves", 2),
            ("min_samples", 1),
            ("bins", 2),
            ("threads", 1),
        ):
            check_whole(f"model.{name}", getattr(self, name), least)
        for name in ("columns", "rows"):
            check_number(f"model.{name}", getattr(self, name), above=0)
            if getattr(self, name) > 1:
                raise ConfigError(
                    f"model.{name} is a share, above 0 and at most 1, but is {getattr(self, name)}."
                )

        if not isinstance(self.adaptive, bool):
            raise ConfigError(f"model.adaptive is true or false, but is {self.adaptive!r}.")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings under LightGBM's names."""
        return {
            "learning_rate": self.learning_rate,
            # LightGBM says 'no limit' with -1.
            "max_depth": self.depth or -1,
            "num_leaves": self.leaves,
            "lambda_l2": self.l2,
            "min_data_in_leaf": self.min_samples,
            "feature_fraction": self.columns,
            "bagging_fraction": self.rows,
            "bagging_freq": int(self.rows < 1),  # draws rows only if it is not 0
            "max_bin": self.bins,
        }

    def client(self, inputs: Inputs) -> TreeParty:
        return TreeParty(self, inputs)

    def part(self, arrays: Arrays) -> TreePart:
        text = np.asarray(arrays["trees"], np.uint8).tobytes().decode("ascii")
        return TreePart(Forest.read(text))


@dataclass(frozen=True, eq=False)
class TreePart:
    """The trained trees of a party."""

    forest: Forest

    def margins(self, X: Block) -> Array:
        """The sum of the trees."""
        return self.forest.margins(X)

    def arrays(self) -> Arrays:
        """The trees in LightGBM's text format."""
        return {"trees": as_bytes(self.forest.text)}


class TreeParty(NoSmoothness):
    """The trees of one client: theta_k is an ensemble, h_k(theta_k) the sum of its trees."""

    def __init__(self, family: TreeFamily, inputs: Inputs) -> None:
        self.family = family
        self.inputs = inputs
        self.fit = inputs.fit
        self._margins: dict[int, GrowingMargins] = {}

    def initial(self) -> Ensemble:
        """The ensemble without trees."""
        return Ensemble()

    def represent(self, theta: Ensemble, rows: Rows | None = None) -> Array:
        """The margins of all samples, or of these rows. Trees that were evaluated for an earlier
        theta are not evaluated again."""
        margins = self.margins(theta, self.inputs.X)
        if rows is None:
            return margins
        return margins[rows]

    def margins(self, theta: Ensemble, X: Block) -> Array:
        """The margins of these samples: the training block, or the block of a test set."""
        # a GrowingMargins keeps its block, so that no other block gets its id
        if id(X) not in self._margins:
            self._margins[id(X)] = GrowingMargins(X, self.inputs.outputs)
        return self._margins[id(X)].of(theta)

    def finish(self, theta: Ensemble) -> TreePart:
        """The trees with their weights."""
        return TreePart(Forest.of(theta, self.inputs.X.shape[1], self.inputs.outputs))

    def penalty(self, theta: Ensemble) -> float:
        """0: l2 acts on each tree while it is grown, and is no part of f."""
        return 0.0

    def penalty_product(self, a: Ensemble, b: Ensemble) -> float:
        """0, as the penalty."""
        return 0.0

    @cached_property
    def learner(self) -> Learner:
        """The learner with the binned columns, made at the first visit: a process that only
        evaluates this client never bins them."""
        return Learner(
            self.inputs.X,
            self.inputs.categorical,
            self.inputs.outputs,
            self.family.settings,
            self.family.threads,
        )

    def local_update(self, theta: Ensemble, aggregate: Array, updates: LocalUpdates) -> Ensemble:
        """Grow as many trees as the rule allows, as long as each lowers the loss.

        Returns theta itself, and leaves the aggregate as it is, if no tree is grown.
        """
        value = self.fit.objective(aggregate, 0.0)
        gains = updates.gains if self.family.adaptive else None
        rule = GrowthRule(updates.Q, gains)
        for place in range(rule.most):
            visit = (*updates.visit, place)
            if rule.compares and not rule.accepts(place, self._held_out_gain(aggregate, visit)):
                break
            grown = self._grown(aggregate, visit)
            if grown is None:
                break

            # A Newton step may overshoot where the second derivative falls (logistic, Poisson), and
            # a tree on a sample of the rows may raise the loss of the others.
            after = aggregate + self._margins_of(grown, aggregate)
            lower = self.fit.objective(after, 0.0)
            if not lower < value:
                break
            value = lower
            aggregate[...] = after
            # The token and theta_k change together: the aggregate contains exactly these trees.
            theta = theta.extended(Tree.of(visit, grown.text))
        return theta

    def _grown(
        self, aggregate: Array, visit: tuple[int, ...], rows: Array | None = None
    ) -> Grown | None:
        """A tree grown at this aggregate, on all samples or on those of ``rows``, a mask; None if
        no split gains."""
        loss = self.fit.loss
        y = self.fit.labels
        # the same visit draws the same rows and columns, in any engine and after a crash
        draw = int(stream(self.inputs.seed, "tree", self.inputs.number, *visit).integers(2**31 - 1))
        gradient = loss.gradient(aggregate, y)
        hessian = loss.curvatures(aggregate, y)
        if rows is not None:
            # samples without derivatives do not count, and the binned columns stay as they are
            kept = rows.reshape(-1, *[1] * (aggregate.ndim - 1))
            gradient = gradient * kept
            hessian = hessian * kept
        return self.learner.grow(gradient, hessian, draw)

    def _margins_of(self, grown: Grown, aggregate: Array, rows: Array | None = None) -> Array:
        """The margins of a tree; leaves that are set anew are set by all samples or by those of
        ``rows``."""
        if self.fit.loss.renews_leaves:
            return grown.renewed(
                self.fit.loss, aggregate, self.fit.labels, self.family.learning_rate, rows
            )
        return grown.margins()

    def _held_out_gain(self, aggregate: Array, visit: tuple[int, ...]) -> float:
        """By how much a tree grown on four fifths of the samples lowers the loss of the others,
        scaled to all N samples; 0 if it does not lower it.

        Trees fit noise: on the samples that it was grown on, nearly every tree gains.
        """
        draw = stream(self.inputs.seed, "held-out", self.inputs.number, *visit)
        # The same fifth in every engine and after a crash; another one at every visit.
        held_out = draw.permutation(self.inputs.samples) % FOLDS == 0
        # `~held_out`: grown on four fifths.
        grown = self._grown(aggregate, visit, ~held_out)
        if grown is None:
            return 0.0

        rows = np.flatnonzero(held_out)
        loss = self.fit.loss.at(rows)
        y = self.fit.labels[rows]
        after = (aggregate + self._margins_of(grown, aggregate, ~held_out))[rows]
        decrease = loss.value(aggregate[rows], y) - loss.value(after, y)
        gain = decrease * self.inputs.samples / len(rows)
        if not np.isfinite(gain):  # tokens carry neither NaN nor infinity
            return 0.0
        return max(gain, 0.0)


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
