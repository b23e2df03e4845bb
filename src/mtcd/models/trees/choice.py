"""The adaptive choice: how many trees a visit grows, from the gains of the parties that the token
has met."""

from __future__ import annotations

from mtcd.protocol.updates import Gains

# of the largest gain of others: a party whose tree gains less passes the token on unchanged
SHARE = 0.7
MOST = 8  # times Q trees in a visit, while each gains at least as much as others would


class Choice:
    """Q trees where nothing is known of others. Otherwise none where others gain far more, and more
    where none does.

    It is greedy coordinate descent (the Gauss-Southwell rule) with what a token knows: the gains of
    others are those of their last visits. A token that roams without syncs learns the gains of all
    parties before the first tree: trees of weak columns fit noise in proportion to the residuals,
    which are largest at the start.
    """

    def __init__(self, Q: int, gains: Gains | None) -> None:
        self.Q, self.gains = Q, gains

    @property
    def compares(self) -> bool:
        """Whether the token carries gains."""
        return self.gains is not None

    @property
    def most(self) -> int:
        """The most trees of the visit."""
        return self.Q * MOST if self.gains is not None else self.Q

    def accepts(self, place: int, gain: float) -> bool:
        """Whether to grow tree number ``place`` of the visit, which gains so much; the token
        remembers the gain."""
        assert self.gains is not None
        self.gains.own, others = gain, self.gains.others
        if self.gains.awaited:
            return False
        if others is None:
            return place < self.Q
        if place < self.Q:
            return gain > 0.0 and gain >= SHARE * others
        return gain > 0.0 and gain >= others
