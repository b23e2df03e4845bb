"""What the parties of MTCD send: which payloads, and how large they may be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mtcd.methods.messages import Messages
from mtcd.methods.mtcd.client import Done, Plan, Share
from mtcd.methods.mtcd.combine.rule import SYNC_CHANGE
from mtcd.protocol.codec.limits import MOST, Bounds
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.ledger.costs import Sizes
from mtcd.protocol.party import Progress
from mtcd.protocol.token import Token

if TYPE_CHECKING:
    from mtcd.methods.mtcd.mtcd import MTCD


@dataclass(frozen=True, eq=False)
class TokenMessages(Messages):
    """The messages of MTCD and STCD on one network."""

    method: MTCD

    @cached_property
    def plan(self) -> Plan:
        """The plan of the method; no message depends on the step size."""
        method = self.method.with_stepsize(1.0)
        return method.plan(self.samples, self.outputs, self.network, self.seed)

    @property
    def sizes(self) -> Sizes:
        """Those of the plan."""
        return self.plan.sizes

    def declared(self, general: Bounds) -> Bounds:
        plan = self.plan
        # A token that returns may roam on while the server is down: its hops have no limit.
        hops = plan.hops
        if hops is None or plan.tokens_return:
            hops = MOST - 1
        bounds = replace(
            general,
            kinds=_payloads(plan),
            server=plan.hops is not None,
            tokens=plan.tokens,
            hops=hops,
        )
        if plan.carries_change:
            bounds = bounds.with_slots(SYNC_CHANGE.name)
        for feature in plan.features:
            bounds = bounds.with_slots(feature.extension.name, **feature.limits)
        return plan.roles.bounds(bounds, plan)


def _payloads(plan: Plan) -> frozenset[type]:
    """The payload classes that the parties send."""
    if plan.hops is None:
        return frozenset({Token})
    if plan.tokens_return:
        return frozenset({Token, Progress})
    return frozenset({Token, Done, Share, Fresh, Progress})
