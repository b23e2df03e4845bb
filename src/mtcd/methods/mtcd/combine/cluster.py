"""The paper's rule for a token per cluster."""

from __future__ import annotations

from mtcd.methods.mtcd.combine.rule import RULES, Combine


@RULES.register("cluster")
class Cluster(Combine):
    """One-hot, w = 1: a token per cluster, no client is visited by two (Theorem 1)."""

    covered = True
    planned = frozenset({"clustered"})
    one_visitor = True

    def weight(self, visitors: int, tokens: int) -> float:
        return 1.0
