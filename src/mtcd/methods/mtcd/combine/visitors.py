"""Averaging over the tokens that visited a client."""

from __future__ import annotations

from mtcd.methods.mtcd.combine.rule import RULES, Combine


@RULES.register("visitors")
class Visitors(Combine):
    """w = 1/n: average over the tokens that visited the client. A variant of ours, without a
    theorem.

    The weight differs between clients, so every token carries the change of the combined aggregate:
    it is twice as long.
    """

    same_everywhere = False

    def weight(self, visitors: int, tokens: int) -> float:
        return 1.0 / visitors
