"""The importance of parties and columns in an additive model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import is_sparse
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError, check_known
from mtcd.core.rows import Rows
from mtcd.core.seeding import stream
from mtcd.models.predicted import true_labels
from mtcd.models.trees.families.trees import TreePart
from mtcd.models.trees.trained import TrainedAdditive

KINDS = ("gain", "permutation")


def gains(trained: TrainedAdditive) -> Rows:
    """The total gain of the splits on each column, and its share of the sum over all columns;
    parties without trees are left out."""
    rows: list[dict[str, Any]] = []
    for client, columns, part in zip(trained.clients, trained.columns, trained.held, strict=True):
        if isinstance(part, TreePart):
            for column, gain in zip(columns, part.forest.gains(), strict=True):
                rows.append({"client": client, "column": column, "gain": float(gain)})
    if not rows:
        raise ConfigError("Gains are of trees, and no party has any: ask for kind='permutation'.")

    total = sum(row["gain"] for row in rows) or 1.0  # without any split, all shares are 0
    return Rows({**row, "share": row["gain"] / total} for row in rows)


def permutation(
    trained: TrainedAdditive, X: Any, y: Any, repeats: int, seed: int, by_column: bool
) -> Rows:
    """The rise of the mean loss when the rows of a party's block, or of one column, are shuffled.

    Every party can compute its own, from its margins and the sum of all others'.
    """
    check_whole("repeats", repeats)
    blocks = trained.checked_blocks(X)
    loss = trained.model.plain_loss

    labels = true_labels(y, trained.classes, blocks[0].shape[0])
    known = labels
    if trained.classes:
        known = np.asarray(trained.classes)[labels.astype(int)]
    encoded, classes = loss.encode(known)
    # With a class missing, the loss would have other outputs than the model.
    if classes != trained.classes:
        raise ConfigError("The samples do not have all classes of the model: give more of them.")

    margins = [part.margins(block) for part, block in zip(trained.held, blocks, strict=True)]
    z = np.asarray(trained.constant + sum(margins))
    before = loss.value(z, encoded) / len(z)
    rows = Rows()
    for k, (client, columns) in enumerate(zip(trained.clients, trained.columns, strict=True)):
        # Only one part changes, so the others are evaluated once.
        others = z - margins[k]
        places: Iterable[int | None] = range(len(columns)) if by_column else [None]
        for place in places:
            rises = []
            for repeat in range(repeats):
                # the draw depends on what is shuffled alone, so that a party finds the same
                # importance by itself
                draw = stream(seed, "permutation", k, -1 if place is None else place, repeat)
                shuffled = _shuffled(blocks[k], draw.permutation(len(z)), place)
                after = loss.value(others + trained.held[k].margins(shuffled), encoded) / len(z)
                rises.append(after - before)

            row: dict[str, Any] = {"client": client}
            if place is not None:
                row["column"] = columns[place]
            row["importance"] = float(np.mean(rises))
            row["deviation"] = float(np.std(rises))
            rows.append(row)
    return rows


def _shuffled(block: Any, order: NDArray[np.intp], place: int | None) -> Any:
    """The block with its rows, or the values of one column, in this order."""
    if place is None:
        return block[order]
    # SciPy warns of assignments to compressed rows, which are slow
    changed = block.tolil() if is_sparse(block) else block.copy()
    changed[:, [place]] = block[order][:, [place]]
    return changed.tocsr() if is_sparse(block) else changed


def importance(
    trained: TrainedAdditive, X: Any, y: Any, kind: str, repeats: int, seed: int, by_column: bool
) -> Rows:
    """The importance of this kind, 'gain' or 'permutation'."""
    check_known(kind, KINDS, f"importance: unknown kind {kind!r}:")
    if kind == "gain":
        return gains(trained)
    if X is None:
        raise ConfigError("Permutation importance needs samples with labels: give X and y.")
    return permutation(trained, X, y, repeats, seed, by_column)
