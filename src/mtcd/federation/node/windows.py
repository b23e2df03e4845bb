"""The plateau rule at a party that reports to the monitor: what it remembers survives crashes.

Without a server each window may end at another client, so the token carries it: a token that is
regenerated continues with the values of its own history. With a server, the server keeps it, in the
same commit as the sync.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from mtcd.protocol.token import Token, Windows
from mtcd.training.plateau import Plateau


class Keeper(Protocol):
    """Keeps what the rule remembers: a token, or the reliable party of the server."""

    windows: Windows | None


@dataclass(frozen=True)
class PlateauWatch:
    """Applies the rule to reports. ``start``: f before the first update, which no party reports."""

    rule: Plateau
    epoch: int
    start: float

    def reached(
        self, report: Any, keeper: Keeper, objective: Callable[[Any], float | None]
    ) -> bool:
        """Whether the training ends at this report. The objective is evaluated at the end of a
        window only."""
        kept: Keeper = report if isinstance(report, Token) else keeper
        seen = kept.windows or Windows(0, self.start)
        if (
            not self.rule.is_due(seen, report.hop, self.epoch)
            or (value := objective(report)) is None
        ):
            return False
        kept.windows, reached = self.rule.end_window(seen, report.hop, value, self.epoch)
        return reached
