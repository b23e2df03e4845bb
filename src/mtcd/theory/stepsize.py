"""Step sizes: the limits of the theorems, the stability limit of one client, and the choice of
'auto'."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError


class Smoothness(ABC):
    """The Lipschitz constants of the gradient of f: L overall, L_k block by block. A kind of model
    computes them."""

    problem: Any
    """The problem whose constants they are, with its ``penalties``."""
    named: ClassVar[str] = "L"
    """The name of the overall constant in notes."""

    @property
    @abstractmethod
    def overall(self) -> float:
        """L, the smoothness of f in all parameters together."""

    @property
    @abstractmethod
    def blocks(self) -> Array:
        """L_k, one per client."""

    @property
    @abstractmethod
    def norm(self) -> float:
        """max_k |X_k|^2, whatever the weights of samples."""

    @abstractmethod
    def batch(self, size: int | None) -> float:
        """An upper bound of L for the objective of a mini-batch of this size."""

    @property
    @abstractmethod
    def l2(self) -> float:
        """The weight of the l2 penalty."""


def positive(L: float) -> float:
    """L, or an error if all features are 0."""
    if not L > 0:
        raise DataError(
            "All features are 0, so there is nothing to learn from: check the columns (and the "
            "scaling)."
        )
    return L


@dataclass(frozen=True)
class StepsizeRule:
    """A step size, the reason for it, and whether a theorem covers it."""

    value: float
    reason: str
    proven: bool = True


class StepsizeRules:
    """The step sizes that are known for a method on one problem.

    A method that knows more than a limit overrides ``auto``.

    Parameters
    ----------
    limit
        The largest step size with a guarantee.

    Examples
    --------
    >>> StepsizeRules(StepsizeRule(0.5, "1/L")).auto.value
    0.5
    """

    def __init__(self, limit: StepsizeRule) -> None:
        self._limit = limit

    @property
    def limit(self) -> StepsizeRule:
        """The largest step size with a guarantee: that of the theorems where they apply."""
        return self._limit

    @property
    def auto(self) -> StepsizeRule:
        """The step size for 'auto': the limit, or a larger one that is known to be safe."""
        return self.limit


def theorem_limit(
    smoothness: Smoothness, S: int, Q: int, batch: int | None = None, beyond: Sequence[str] = ()
) -> StepsizeRule:
    """1/(2*L*S*Q): the largest step size of both theorems.

    They hold for smooth objectives; with l1, or with settings ``beyond`` them, it is a rule of
    thumb.

    Parameters
    ----------
    smoothness
        The constants of the problem.
    S, Q
        The hops between two syncs, and the local updates of a visit.
    batch
        The size of a mini-batch; None for all samples.
    beyond
        Names of settings that the theorems do not cover.
    """
    # A mini-batch may hold the samples of largest norm only.
    L = smoothness.batch(batch)
    what = smoothness.named
    if batch:
        what += ", of a mini-batch at worst,"

    # A soft threshold is no gradient step: the proofs need a smooth f.
    if any(penalty.l1 for penalty in smoothness.problem.penalties):
        beyond = ["l1", *beyond]

    whose = "the theorems' limit"
    if beyond:
        whose += f" (here a rule of thumb: they do not cover {' and '.join(beyond)})"

    reason = f"1/(2 L S Q), {whose}, with {what} = {L:.4g}, S = {S}, Q = {Q}"
    return StepsizeRule(1.0 / (2.0 * L * S * Q), reason, proven=not beyond)


def descent_limit(smoothness: Smoothness, averaged: bool = False) -> StepsizeRule:
    """1/max_k L_k: with it, no local step ever raises f, and so neither does a roam.

    Averaging models that are no worse than the start gives one that is no worse, as f is convex.
    """
    largest = float(smoothness.blocks.max())
    never = "no visit raises f"
    if averaged:
        never += ", nor does the average at a sync, f being convex"

    reason = f"1/max_k L_k, with which {never}; max_k L_k = {largest:.4g}"
    return StepsizeRule(1.0 / largest, reason)


def stability_limit(smoothness: Smoothness) -> float:
    """2/max_k L_k: above it, the steps of a single client may diverge."""
    return 2.0 / float(smoothness.blocks.max())


def primal_dual_limit(smoothness: Smoothness, mu_y: float | None) -> StepsizeRule:
    """1/(l2 + 2*mu_y*max_k |X_k|^2), half of the stability limit of primal-dual methods; mu_y =
    mu_w by default."""
    l2 = smoothness.l2
    norm = positive(smoothness.norm)
    if mu_y is None:
        # The positive root of 2 norm mu^2 + l2 mu = 1.
        value = (np.sqrt(l2 * l2 + 8.0 * norm) - l2) / (4.0 * norm)
        what = "mu_y the same"
    else:
        value = 1.0 / (l2 + 2.0 * mu_y * norm)
        what = f"mu_y = {mu_y:.4g}"

    reason = (
        "1/(l2 + 2 mu_y max_k |X_k|^2), half of what primal-dual methods bear, a rule of thumb, "
        f"with {what}"
    )
    return StepsizeRule(float(value), reason, proven=False)
