"""What DCPA tells the planner of itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.planned import Planned, PlanSetting


class PlannedDCPA(Planned):
    """Exchanges between all neighbours."""

    def candidates(self, setting: PlanSetting) -> Iterator[Method]:
        """mu_w smaller or larger, with mu_y such that their product stays: it bounds the steps."""
        if not setting.network.connected or setting.outputs != 1:
            return

        rule = DCPA().stepsize_rules(setting.smoothness).auto
        # Rounded to what a person would write in a config.
        for factor in (1.0, 0.3, 3.0):
            yield DCPA(factor * rule.value, dual_stepsize=float(f"{rule.value / factor:.4g}"))

    def changed(self, setting: PlanSetting, method: Method) -> Iterator[Method]:
        """Another step size of the parameters, or of the dual variable."""
        yield from super().changed(setting, method)

        assert isinstance(method, DCPA)
        for factor in (2.0, 0.5):
            dual = float(f"{method.resolved_dual_stepsize() * factor:.4g}")
            yield replace(method, dual_stepsize=dual)


PLANNED = PlannedDCPA()
