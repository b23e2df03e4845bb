"""The paper's rule for overlapping trajectories."""

from __future__ import annotations

from mtcd.methods.mtcd.combine.rule import RULES, Combine


@RULES.register("average")
class Average(Combine):
    """w = 1/Gamma, for tokens with overlapping trajectories; convex objectives (Theorem 2)."""

    covered = True
    never_raises = True  # by convexity
    planned = frozenset({"crossing"})

    def weight(self, visitors: int, tokens: int) -> float:
        return 1.0 / tokens
