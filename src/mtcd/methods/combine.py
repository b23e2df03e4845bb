"""The sync: how a client combines its copies, and what the server makes of the tokens.

A client combines the copies theta_k(gamma) of the n tokens that visited it into

    theta_k^{t+1} = theta_k^t + w * sum_{visitors} (theta_k(gamma) - theta_k^t)

with one weight w that depends on the rule, on n and on Gamma. For linear representations the same
combination of the tokens gives the new aggregate, as long as w is the same at every client.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtcd.errors import ConfigError, did_you_mean
from mtcd.protocol.token import Token

Array = NDArray[np.float64]


class Combine(ABC):
    """A rule for the weights of a sync."""

    same_everywhere = True
    """Whether w is the same at every client, so that the tokens alone give the new aggregate."""

    one_visitor = False
    """Whether no client is visited by two tokens, so that its one copy is the combined model."""

    @abstractmethod
    def weight(self, visitors: int, tokens: int) -> float:
        """w at a client that ``visitors`` of the ``tokens`` have visited."""

    def copies(self, start: Array, copies: Sequence[Array], tokens: int) -> Array:
        """theta_k^{t+1} from theta_k^t and the copies of the tokens that came by."""
        weight = self.weight(len(copies), tokens)
        return np.asarray(start + weight * sum(copy - start for copy in copies))

    def aggregate(self, start: Array, tokens: Sequence[Token]) -> Array:
        """The aggregate of the combined model, from the one at the start and the tokens."""
        changes = (token.aggregate - start if token.sync_change is None else token.sync_change for token in tokens)
        weight = self.weight(1, len(tokens)) if self.same_everywhere else 1.0
        return np.asarray(start + weight * sum(changes))


class Average(Combine):
    """w = 1/Gamma: tokens whose ways may cross; convex objectives (Theorem 2)."""

    def weight(self, visitors: int, tokens: int) -> float:
        return 1.0 / tokens


class Cluster(Combine):
    """One-hot, w = 1: a token per cluster, no client is visited by two (Theorem 1)."""

    one_visitor = True

    def weight(self, visitors: int, tokens: int) -> float:
        return 1.0


class Visitors(Combine):
    """w = 1/n: average over the tokens that came by. A variant of ours, without a theorem.

    The weight differs between clients, so every token carries the change of the combined aggregate:
    it is twice as long.
    """

    same_everywhere = False

    def weight(self, visitors: int, tokens: int) -> float:
        return 1.0 / visitors


RULES: dict[str, type[Combine]] = {"average": Average, "cluster": Cluster, "visitors": Visitors}
OPTIMAL = "optimal"
"""The server chooses the weights at each sync: see ``optimal.py``."""


def check_rule(name: str) -> None:
    """Refuse what is no rule."""
    known = [*RULES, OPTIMAL]
    if name not in known:
        raise ConfigError(f"method.combine: no rule is called {name!r}; {did_you_mean(name, known)}")
