"""The step sizes of MTCD and STCD: which of the theorems' limits holds for which settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS
from mtcd.theory.stepsize import (
    Smoothness,
    StepsizeRule,
    StepsizeRules,
    descent_limit,
    theorem_limit,
)

if TYPE_CHECKING:
    from mtcd.methods.mtcd.mtcd import MTCD


class TokenStepsizes(StepsizeRules):
    """The step sizes of MTCD and STCD on one problem."""

    def __init__(self, method: MTCD, smoothness: Smoothness) -> None:
        self._method, self._smoothness = method, smoothness

    @property
    def limit(self) -> StepsizeRule:
        method, rule = self._method, RULES[self._method.combine_rule]
        # Without a server no sync adds changes up: what holds is that no single step raises f.
        if method.hops is None or (rule.never_raises and not rule.covered):
            return descent_limit(self._smoothness)

        # Named in the rule's text: where a theorem does not cover all settings, the user is told
        # which.
        beyond = []
        if not rule.covered and method.tokens != 1:
            beyond.append(f"combine: {method.combine_rule}")
        if method.acceleration:
            beyond.append("acceleration")
        Q, batch = method.local_updates, method.batch
        return theorem_limit(self._smoothness, method.hops, Q, batch, beyond)

    @property
    def auto(self) -> StepsizeRule:
        method, rule = self._method, RULES[self._method.combine_rule]
        if method.chooses_steps and method.acceleration is not None:
            return ACCELERATIONS[method.acceleration].first_stepsize(self._smoothness)

        # With the full batch no visit raises f, and then no sync does either: the steps may be
        # larger than those for which the theorems prove a rate.
        if method.batch is None and ((rule.never_raises and rule.covered) or method.tokens == 1):
            return descent_limit(self._smoothness, averaged=method.tokens not in (None, 1))
        return self.limit
