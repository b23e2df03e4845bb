"""The paper's rule for tokens whose ways may cross."""

from __future__ import annotations

from mtcd.methods.combine.rule import RULES, Combine


@RULES.register("average")
class Average(Combine):
    """w = 1/Gamma: tokens whose ways may cross; convex objectives (Theorem 2)."""

    covered = True
    never_raises = True  # the average of models that are no worse is no worse
    planned = frozenset({"crossing"})

    def weight(self, visitors: int, tokens: int) -> float:
        return 1.0 / tokens
