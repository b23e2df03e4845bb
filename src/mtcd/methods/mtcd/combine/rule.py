"""Combination rules: how a client combines its copies at a sync, and the server the tokens.

A client combines the copies theta_k(gamma) of the n tokens that visited it into

    theta_k^{t+1} = theta_k^t + w * sum_{visitors} (theta_k(gamma) - theta_k^t)

with one weight w that depends on the rule, on n and on Gamma. A client applies it in
``TokenClient.combination``. For linear representations the same
combination of the tokens gives the new aggregate, as long as w is the same at every client. Each
rule has a file here, or in a plugin.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.registry import Registry
from mtcd.protocol.codec.arrays import AggregateField
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.token import Token

if TYPE_CHECKING:
    from mtcd.methods.mtcd.features import Roles
    from mtcd.methods.mtcd.mtcd import MTCD
    from mtcd.methods.planned import PlanSetting


SYNC_CHANGE = declare(
    Extension(
        0,
        "sync_change",
        AggregateField(),
        lambda change: int(change.size),
        wide=False,
        always=False,  # a token that has met no client has none
        former=lambda attributes: attributes["sync_change"],
    )
)
"""The change of the *combined* aggregate by the visits of a token, where the server cannot compute
it from the tokens: the rule's weights differ between clients."""


class Combine(ABC):
    """A rule for the weights of a sync."""

    same_everywhere = True
    """Whether w is the same at every client, so that the tokens alone give the new aggregate."""

    one_visitor = False
    """Whether no client is visited by two tokens, so that its one copy is the combined model.
    Tokens then stay in clusters, which are found unless ``method.clusters`` gives them."""

    covered = False
    """Whether the theorems cover it, given their step sizes."""
    never_raises = False
    """Whether a sync with the full batch never raises a convex f, as long as no visit does."""
    server_chooses = False
    """Whether the server chooses the weights after the roam, from sums that the tokens carry, and
    sends them with the next tokens. The rule then has its own ``roles``, for linear models and the
    full batch."""
    whole_tours = False
    """Whether every client must be visited between two syncs: ``hops`` may not be less than the
    longest tour of a cluster."""
    planned: ClassVar[frozenset[str]] = frozenset()
    """The tokens with which ``mtcd plan`` tries the rule: crossing, clustered, or both."""

    @abstractmethod
    def weight(self, visitors: int, tokens: int) -> float:
        """w at a client that ``visitors`` of the ``tokens`` have visited."""

    @classmethod
    def tried(cls, method: MTCD, setting: PlanSetting) -> Iterator[MTCD]:
        """The settings with which ``mtcd plan`` tries the rule for a token per cluster.

        Parameters
        ----------
        method
            The method with this rule; its roam is a tour of each cluster.
        setting
            The problem and the network.

        Returns
        -------
        iterator of MTCD
            Step sizes are numbers.
        """
        from mtcd.methods.mtcd.planned import steps_of_clusters  # which imports this module

        return steps_of_clusters(method, setting)

    @classmethod
    def roles(cls) -> Roles | None:
        """The parties that the rule needs, if not the plain ones."""
        return None

    def aggregate(self, start: Array, tokens: Sequence[Token]) -> Array:
        """The aggregate of the combined model, from the one at the start and the tokens."""
        # Changes and not tokens: all tokens contain the aggregate at the start.
        changes = (self._change(start, token) for token in tokens)
        weight = 1.0
        if self.same_everywhere:
            weight = self.weight(1, len(tokens))  # it does not depend on the visitors
        return np.asarray(start + weight * sum(changes))

    @staticmethod
    def _change(start: Array, token: Token) -> Array:
        """The change of the aggregate that a token stands for."""
        change: Array | None = token.slots.get(SYNC_CHANGE.name)
        if change is None:
            return np.asarray(token.aggregate - start)
        return change


RULES: Registry[type[Combine]] = Registry(
    Combine, "mtcd.combine", "mtcd.methods.mtcd.combine", "method.combine: no rule is called '{}';"
)
