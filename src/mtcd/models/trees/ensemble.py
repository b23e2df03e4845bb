"""Ensembles: formal weighted sums of trees. They form a vector space, so that a sync combines
copies of theta_k in the same way as arrays.

An ensemble is immutable, and ensembles share their trees: neither extending an ensemble nor adding
two of them copies a tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtcd.protocol.codec.stored import stored

WORD = 8  # bytes


@stored
@dataclass(frozen=True, eq=False, slots=True)
class Tree:
    """One round of boosting: a tree, or one for every class.

    ``visit`` identifies it among the trees of one client: token, iteration, hop, and place within
    the visit. ``words`` is the learner's text, padded with line ends to whole words of 8 bytes,
    because journals store arrays of words.
    """

    visit: tuple[int, ...]
    words: NDArray[np.int64]

    @staticmethod
    def of(visit: tuple[int, ...], text: str) -> Tree:
        """The tree of a visit, from the text that the learner gave."""
        data = text.encode("ascii")
        # Line ends are harmless at the end of a tree: LightGBM skips them.
        return Tree(visit, np.frombuffer(data + b"\n" * (-len(data) % WORD), "<i8"))

    @property
    def text(self) -> str:
        """The learner's text, with the line ends that pad it."""
        return self.words.tobytes().decode("ascii")


@stored
@dataclass(frozen=True, eq=False, slots=True)
class Ensemble:
    """A weighted sum of trees, in the order in which they were grown."""

    trees: tuple[Tree, ...] = ()
    weights: tuple[float, ...] = ()

    def __len__(self) -> int:
        return len(self.trees)

    def __repr__(self) -> str:
        return f"Ensemble({len(self.trees)} rounds)"

    def extended(self, tree: Tree) -> Ensemble:
        """The ensemble with one more tree, of weight 1."""
        return Ensemble((*self.trees, tree), (*self.weights, 1.0))

    def copy(self) -> Ensemble:
        """The ensemble itself, because it is immutable."""
        return self

    def __add__(self, other: Ensemble) -> Ensemble:
        return summed([(1.0, self), (1.0, other)])

    def __radd__(self, other: int) -> Ensemble:
        assert other == 0  # the start of sum()
        return self

    def __sub__(self, other: Ensemble) -> Ensemble:
        return summed([(1.0, self), (-1.0, other)])

    def __mul__(self, factor: float) -> Ensemble:
        return summed([(float(factor), self)])

    __rmul__ = __mul__
    __array_ufunc__ = None  # NumPy's numbers leave products to this class


def summed(parts: Sequence[tuple[float, Ensemble]]) -> Ensemble:
    """The weighted sum of ensembles. Trees are the same if their visits are; trees of weight 0 are
    left out."""
    # By visit and not by identity: a tree that was sent and came back is the same tree.
    trees: dict[tuple[int, ...], Tree] = {}
    weights: dict[tuple[int, ...], float] = {}
    for factor, part in parts:
        for tree, weight in zip(part.trees, part.weights, strict=True):
            trees.setdefault(tree.visit, tree)
            weights[tree.visit] = weights.get(tree.visit, 0.0) + factor * weight
    # In the order of growth: two sums of the same ensembles are the same ensemble, bit for bit.
    kept = [visit for visit, weight in weights.items() if weight != 0.0]
    return Ensemble(tuple(trees[visit] for visit in kept), tuple(weights[visit] for visit in kept))
