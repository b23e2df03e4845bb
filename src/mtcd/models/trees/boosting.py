"""LightGBM: it grows the trees of one client, evaluates them, and writes them as text. Nothing else
imports it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import MtcdError
from mtcd.core.optional import find
from mtcd.data.sparse import is_sparse
from mtcd.data.vertical import Block
from mtcd.models.losses import Loss
from mtcd.models.trees.ensemble import Ensemble

FIRST, END = "Tree=", "end of trees"
LEAVES = re.compile(r"^num_leaves=(\d+)$", re.MULTILINE)


class Learner:
    """LightGBM on the block of one client. Columns are binned once; a visit brings gradients
    only."""

    def __init__(
        self,
        X: Block,
        categorical: Sequence[int],
        outputs: int,
        settings: Mapping[str, Any],
        threads: int = 1,
    ) -> None:
        self._lightgbm = find("lightgbm")
        self._X = as_input(X)
        self._outputs = outputs
        # the results do not depend on the number of threads: sums are formed column by column, in a
        # fixed order
        fixed: dict[str, Any] = {
            "objective": "none",
            "verbose": -1,
            "deterministic": True,
            "force_col_wise": True,
        }
        # a block of which no column can be split is no error
        fixed |= {"feature_pre_filter": False}
        self._settings = {**fixed, "num_class": outputs, "num_threads": threads, **settings}
        chosen: Any = list(categorical) or "auto"
        made = self._lightgbm.Dataset(self._X, params=self._settings, categorical_feature=chosen)
        self._bins = made.construct()

    def grow(self, gradient: Array, hessian: Array, draw: int) -> Grown | None:
        """One more round on these derivatives; ``draw`` seeds its random samples. None if no split
        gains anything."""
        booster = self._lightgbm.Booster({**self._settings, "seed": draw}, self._bins)
        if booster.update(fobj=lambda scores, bins: (gradient, hessian)):
            return None
        return Grown(booster, self._X)


class Grown:
    """A round that has been grown: its text, and its margins on the samples that it was grown
    on."""

    def __init__(self, booster: Any, X: Any) -> None:
        self._booster, self._X = booster, X

    def margins(self) -> Array:
        """The margins, as the learner computed them while it grew the trees."""
        found: list[Array] = []

        def take(scores: Array, bins: Any) -> tuple[str, float, bool]:
            found.append(np.array(scores))
            return "margins", 0.0, False

        self._booster.eval_train(take)
        return found[0]

    def renewed(
        self, loss: Loss, z: Array, y: Array, rate: float, among: Array | None = None
    ) -> Array:
        """Set each leaf to ``rate`` times the shift that minimises the loss of its samples; returns
        the margins.

        ``among``: a mask of the samples that count; all unless given.
        """
        leaves = np.asarray(self._booster.predict(self._X, pred_leaf=True)).reshape(len(z), -1)[
            :, 0
        ]
        margins = np.zeros(len(z))
        for leaf in np.unique(leaves):
            held = leaves == leaf
            rows = np.flatnonzero(held if among is None else held & among)
            value = rate * float(loss.at(rows).best_shift(z[rows], y[rows])) if len(rows) else 0.0
            self._booster.set_leaf_output(0, int(leaf), value)
            margins[held] = value
        return margins

    @property
    def text(self) -> str:
        """The trees as LightGBM writes them, without what is about the whole model."""
        whole = self._booster.model_to_string()
        return str(whole[whole.index(FIRST) : whole.index(END)])


class Forest:
    """The trees of an ensemble as one model of LightGBM, with their weights in their leaves."""

    def __init__(self, booster: Any, columns: int, outputs: int) -> None:
        self._booster = booster
        self.columns = columns
        self.outputs = outputs

    @staticmethod
    def of(ensemble: Ensemble, columns: int, outputs: int) -> Forest:
        """The trees of an ensemble over so many columns."""
        trees = "".join(tree.text for tree in ensemble.trees)
        booster = find("lightgbm").Booster(
            model_str=_header(columns, outputs) + trees + END + "\n\n"
        )
        for number, (tree, weight) in enumerate(zip(ensemble.trees, ensemble.weights, strict=True)):
            if weight != 1.0:
                for place, leaves in enumerate(LEAVES.findall(tree.text), number * outputs):
                    for leaf in range(int(leaves)):
                        booster.set_leaf_output(
                            place, leaf, weight * booster.get_leaf_output(place, leaf)
                        )
        return Forest(booster, columns, outputs)

    @staticmethod
    def read(text: str) -> Forest:
        """The trees in a text that ``text`` gave. Raises ValueError."""
        try:
            booster = find("lightgbm").Booster(model_str=text)
        except find("lightgbm").basic.LightGBMError as error:
            raise ValueError(f"the trees cannot be read: {error}") from None
        return Forest(booster, booster.num_feature(), booster.num_model_per_iteration())

    @property
    def text(self) -> str:
        """The model in LightGBM's text format, which ``lightgbm.Booster(model_str=...)`` reads."""
        return str(self._booster.model_to_string())

    @property
    def rounds(self) -> int:
        """How many rounds of boosting it has."""
        return int(self._booster.num_trees()) // self.outputs

    def margins(self, X: Block) -> Array:
        """The margins of samples."""
        if X.shape[1] != self.columns:
            raise MtcdError(
                f"These trees take {self.columns} columns, but the samples have {X.shape[1]}."
            )
        shape = (X.shape[0],) if self.outputs == 1 else (X.shape[0], self.outputs)
        if not self.rounds or not X.shape[0]:
            return np.zeros(shape)
        return np.asarray(
            self._booster.predict(as_input(X), raw_score=True, num_threads=1), dtype=float
        ).reshape(shape)

    def gains(self) -> Array:
        """The gain of the splits on each column."""
        return np.asarray(self._booster.feature_importance("gain"), dtype=float)


def as_input(X: Block) -> Any:
    """A block as LightGBM takes it."""
    return scipy.sparse.csr_matrix(X) if is_sparse(X) else np.asarray(X)


def as_bytes(text: str) -> NDArray[np.uint8]:
    """A text as an array of bytes."""
    return np.frombuffer(text.encode("ascii"), np.uint8)


def _header(columns: int, outputs: int) -> str:
    names = " ".join(f"Column_{j}" for j in range(columns))
    unknown = " ".join(["none"] * columns)
    return (
        f"tree\nversion=v4\nnum_class={outputs}\nnum_tree_per_iteration={outputs}\nlabel_index=0\n"
        f"max_feature_idx={columns - 1}\nobjective=custom\nfeature_names={names}\nfeature_infos={unknown}\n\n"
    )
