"""What SVFL tells the planner of itself."""

from __future__ import annotations

from collections.abc import Iterator

from mtcd.methods.method import Method
from mtcd.methods.planned import Planned, PlanSetting
from mtcd.methods.svfl.svfl import SVFL


class PlannedSVFL(Planned):
    """Rounds with a server: all clients move at once."""

    def candidates(self, setting: PlanSetting) -> Iterator[Method]:
        """One step per round, or several smaller ones."""
        if not setting.server:
            return

        for Q in sorted({1, *setting.local_updates}):
            for part in setting.parts_together:
                yield SVFL(Q, setting.together(part, Q), setting.batch)


PLANNED = PlannedSVFL()
