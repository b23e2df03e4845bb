"""What sealed tours tell the planner of themselves."""

from __future__ import annotations

from mtcd.methods.planned import Planned


class PlannedSealedTours(Planned):
    """One encrypted token; any other method would show parties what the config wants to hide."""

    replaceable = False


PLANNED = PlannedSealedTours()
