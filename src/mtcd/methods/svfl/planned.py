"""What SVFL tells the planner of itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mtcd.methods.method import Method
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.planned import Planned, PlanSetting, other_transports
from mtcd.methods.svfl.accelerated import accelerated_rounds
from mtcd.methods.svfl.svfl import SVFL

ROUNDS = MTCD(walk="tour", clusters="auto")
"""Rounds are syncs of a token for each client, as far as an acceleration knows."""


class PlannedSVFL(Planned):
    """Rounds with a server: all clients move at once."""

    def candidates(self, setting: PlanSetting) -> Iterator[Method]:
        """Accelerated rounds, then one step per round, or several smaller ones."""
        if not setting.server:
            return

        if setting.batch is None:
            yield from self._accelerated(setting)
        for Q in sorted({1, *setting.local_updates}):
            for part in setting.parts_together:
                yield SVFL(Q, setting.together(part, Q), setting.batch)

    def _accelerated(self, setting: PlanSetting) -> Iterator[Method]:
        """With every acceleration that is planned for such a model."""
        objective = "nonsmooth" if setting.nonsmooth else "smooth"
        for name, made in ACCELERATIONS.usable().items():
            if objective not in made.planned:
                continue
            # the settings of its tours, which rounds have too
            for tried in made.tried(name, replace(ROUNDS, stepsize=setting.alone), setting):
                yield SVFL(
                    tried.local_updates,
                    tried.stepsize,
                    acceleration=name,
                    depth=tried.depth,
                    adaptive=tried.adaptive,
                    local_solver=tried.local_solver,
                )
            if not made.adapts:
                for part in setting.parts_together:
                    yield SVFL(1, setting.together(part, 1), acceleration=name)

    def changed(self, setting: PlanSetting, method: Method) -> Iterator[Method]:
        """The same with another number of steps, step size or depth."""
        assert isinstance(method, SVFL)
        if method.chooses_steps:
            if setting.bytes_count:
                yield from other_transports(method)
            return

        if method.acceleration is not None:
            kind = ACCELERATIONS[method.acceleration]
            most = kind.most_starts(accelerated_rounds(method))
            for depth in (2 * most, most + 2, max(1, most // 2)):
                if kind.uses_depth and depth != most:
                    yield replace(method, depth=depth)
        yield from super().changed(setting, method)


PLANNED = PlannedSVFL()
"""Rounds."""
