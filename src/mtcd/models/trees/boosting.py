"""LightGBM: it grows the trees of one client, evaluates them, and writes them as text. Nothing else
imports it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.arrays import Array, is_sparse
from mtcd.core.errors import MtcdError
from mtcd.core.optional import find
from mtcd.data.vertical import Block
from mtcd.models.losses import Loss
from mtcd.models.trees.ensemble import Ensemble

# LightGBM's text format: a header, the trees from the first "Tree=0" on, "end of trees", and then
# importances and parameters, which are about the whole model
FIRST = "Tree="
END = "end of trees"
LEAVES = re.compile(r"^num_leaves=(\d+)$", re.MULTILINE)


class Learner:
    """LightGBM on the block of one client.

    Columns are binned once, when the learner is made; a visit only supplies derivatives.
    """

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
        fixed: dict[str, Any] = {
            "objective": "none",
            "verbose": -1,
            # the results do not depend on the number of threads: sums are formed column by column,
            # in a fixed order
            "deterministic": True,
            "force_col_wise": True,
            # a block of which no column can be split is no error
            "feature_pre_filter": False,
        }
        self._settings = {**fixed, "num_class": outputs, "num_threads": threads, **settings}

        categorical_feature: Any = list(categorical) or "auto"
        # Binned for the whole training: which thresholds there are must not change from tree to
        # tree.
        dataset = self._lightgbm.Dataset(
            self._X, params=self._settings, categorical_feature=categorical_feature
        )
        self._bins = dataset.construct()

    def grow(self, gradient: Array, hessian: Array, draw: int) -> Grown | None:
        """One more round on these derivatives; ``draw`` seeds its random samples. None if no split
        gains anything."""
        # a new booster for every round, so that its margins are of this round alone: the earlier
        # trees of all parties are in the token, and so in the derivatives
        booster = self._lightgbm.Booster({**self._settings, "seed": draw}, self._bins)
        cannot_split = booster.update(fobj=lambda scores, bins: (gradient, hessian))
        if cannot_split:
            return None
        return Grown(booster, self._X)


class Grown:
    """A round of boosting on the training samples: its text, and its margins on them."""

    def __init__(self, booster: Any, X: Any) -> None:
        self._booster, self._X = booster, X

    def margins(self) -> Array:
        """The margins, as the learner computed them while it grew the trees: no tree is evaluated
        again."""
        # LightGBM gives its scores to functions that evaluate, so one is used that only takes them.
        found: list[Array] = []

        def take(scores: Array, bins: Any) -> tuple[str, float, bool]:
            found.append(scores)
            return "margins", 0.0, False

        self._booster.eval_train(take)
        return found[0]

    def renewed(
        self, loss: Loss, z: Array, y: Array, rate: float, among: Array | None = None
    ) -> Array:
        """Set each leaf to ``rate`` times the shift that minimises the loss of its samples.

        For losses with ``renews_leaves``, whose second derivatives do not say how far to go. They
        have one output, so that the round has one tree.

        Parameters
        ----------
        loss : Loss
            The loss of all samples.
        z : array
            The aggregate before this round.
        y : array
            The encoded labels.
        rate : float
            The learning rate.
        among : array of bool, optional
            The samples that leaf values are computed from; all unless given.

        Returns
        -------
        array
            The margins of the changed tree on all samples.
        """
        # Which leaf each sample falls into; one tree, so one column.
        numbers = np.asarray(self._booster.predict(self._X, pred_leaf=True))
        leaves = numbers.reshape(len(z), -1)[:, 0]
        margins = np.zeros(len(z))
        for leaf in np.unique(leaves):
            held = leaves == leaf
            rows = np.flatnonzero(held if among is None else held & among)
            value = 0.0
            if len(rows):
                # Leaves without samples of `among` keep 0: nothing is known of their loss.
                value = rate * float(loss.at(rows).best_shift(z[rows], y[rows]))
            self._booster.set_leaf_output(0, int(leaf), value)
            margins[held] = value
        return margins

    @property
    def text(self) -> str:
        """The trees as LightGBM writes them, without the parts about the whole model."""
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
        """The trees of an ensemble over this number of columns."""
        trees = "".join(tree.text for tree in ensemble.trees)
        text = _header(columns, outputs) + trees + END + "\n\n"
        booster = find("lightgbm").Booster(model_str=text)

        # the format has no weights of trees: they are multiplied into the leaves
        for number, (tree, weight) in enumerate(zip(ensemble.trees, ensemble.weights, strict=True)):
            if weight == 1.0:
                continue
            # a round of several classes is as many trees, numbered one after the other
            for place, leaves in enumerate(LEAVES.findall(tree.text), number * outputs):
                for leaf in range(int(leaves)):
                    value = booster.get_leaf_output(place, leaf)
                    booster.set_leaf_output(place, leaf, weight * value)
        return Forest(booster, columns, outputs)

    @staticmethod
    def read(text: str) -> Forest:
        """The trees of a text that ``Forest.text`` gave. Raises ValueError if it cannot be read."""
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
        """The number of rounds of boosting."""
        return int(self._booster.num_trees()) // self.outputs

    def margins(self, X: Block) -> Array:
        """The margins of samples: one number each, or one for every class."""
        # LightGBM itself reads columns beyond the end as missing, and predicts something.
        if X.shape[1] != self.columns:
            raise MtcdError(
                f"These trees take {self.columns} columns, but the samples have {X.shape[1]}."
            )
        shape = (X.shape[0],) if self.outputs == 1 else (X.shape[0], self.outputs)
        if not self.rounds or not X.shape[0]:
            return np.zeros(shape)

        scores = self._booster.predict(as_input(X), raw_score=True, num_threads=1)
        return np.asarray(scores, dtype=float).reshape(shape)

    def gains(self) -> Array:
        """The total gain of the splits on each column."""
        return np.asarray(self._booster.feature_importance("gain"), dtype=float)


def as_input(X: Block) -> Any:
    """A block in a form that LightGBM accepts: a dense array, or a matrix of compressed rows."""
    if is_sparse(X):
        return scipy.sparse.csr_matrix(X)
    return np.asarray(X)


def as_bytes(text: str) -> NDArray[np.uint8]:
    """A text as an array of bytes, for files of arrays without pickle."""
    return np.frombuffer(text.encode("ascii"), np.uint8)


def _header(columns: int, outputs: int) -> str:
    """The header that LightGBM expects in front of trees, with the names that it gives columns."""
    # The names are LightGBM's own, so that texts of all parties have the same header.
    names = " ".join(f"Column_{j}" for j in range(columns))
    unknown = " ".join(["none"] * columns)
    return (
        f"tree\nversion=v4\nnum_class={outputs}\nnum_tree_per_iteration={outputs}\nlabel_index=0\n"
        f"max_feature_idx={columns - 1}\nobjective=custom\nfeature_names={names}\n"
        f"feature_infos={unknown}\n\n"
    )
