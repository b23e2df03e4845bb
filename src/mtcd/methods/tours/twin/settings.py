"""Twin tours: the token carries two aggregates, that of models whose blocks are solved and that of
models that take short steps, and every tour starts from the best mix of all that both have done.

Which of the two is better depends on the columns: solved blocks where scales differ or columns are
alike within clients, short steps (conjugate gradients) where what is hard lies across clients. A
mix of both directions is never worse than either, and needs no tuning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtcd.core.errors import ConfigError
from mtcd.methods.mtcd.checks import GRADIENT
from mtcd.methods.mtcd.features import ACCELERATIONS, AccelerationKind, Clusters, Roles
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.roaming import Roaming, StartAt, plan_roaming, through_changes
from mtcd.methods.tours.survey import FIRST, steps_in_words
from mtcd.network.topology import Network
from mtcd.network.walks import WALKS
from mtcd.protocol.transports.transport import DEFAULT
from mtcd.theory.stepsize import Smoothness, StepsizeRule

if TYPE_CHECKING:
    from mtcd.methods.planned import PlanSetting

MOST = 80
"""M, the most directions that are kept: those of 40 tours."""


@ACCELERATIONS.register("twin")
class Twin(AccelerationKind):
    """Two models on the way, and the best mix of both at home."""

    adapts = True
    planned = frozenset({"smooth"})

    @classmethod
    def tried(cls, name: str, method: MTCD, setting: PlanSetting) -> Iterator[MTCD]:
        if method.hops is None:  # it needs no settings, and knows no clusters
            twin = replace(method, acceleration=name, stepsize="auto")
            yield twin.with_stepsize(cls.first_stepsize(setting.smoothness).value)

    @classmethod
    def check_settings(cls, method: MTCD) -> None:
        if not WALKS[method.walk].repeats:
            raise ConfigError(
                "method.acceleration needs a walk that repeats itself: set walk: tour."
            )
        if method.hops is not None:
            raise ConfigError(
                "method.acceleration: twin is for one token without a server: use stcd, or "
                "acceleration: conjugate with mtcd and svfl."
            )
        if method.transport != DEFAULT:
            raise ConfigError(
                f"method.acceleration: twin needs transport: {DEFAULT}, as its mix enlarges what "
                f"{method.transport} rounds: leave transport out, or use acceleration: conjugate."
            )
        chosen = {
            "stepsize": method.stepsize != "auto" and not method.adaptive,
            "local_updates": method.local_updates != 1,
            "local_solver": method.local_solver != GRADIENT,
        }
        given = [name for name, set_ in chosen.items() if set_]
        if given:
            raise ConfigError(
                f"method.acceleration: twin chooses its own steps: leave method.{given[0]} out."
            )

    @classmethod
    def most_starts(cls, method: MTCD) -> int:
        return MOST if method.depth is None else method.depth

    @classmethod
    def first_stepsize(cls, smoothness: Smoothness) -> StepsizeRule:
        return StepsizeRule(
            FIRST / float(smoothness.blocks.sum()),
            "that of the short steps of the first tour, which chooses the others",
        )

    @classmethod
    def roaming(
        cls, method: MTCD, network: Network, tokens: int, clusters: Clusters, seed: int
    ) -> Roaming:
        roaming = plan_roaming(network, tokens, clusters, method.walk, method.start, seed, None)
        if method.start is None:  # all clients then receive the weights soonest
            roaming = replace(
                roaming, starts=[StartAt([walk.best_start()]) for walk in roaming.walks]
            )
        return through_changes(roaming, network, clusters, whole_tours=True)

    @classmethod
    def chosen(cls, slots: Mapping[str, Any], smoothness: Smoothness) -> str:
        order = slots.get("twin")
        if order is None or order.survey:
            return ""
        taken = steps_in_words(order.reach, smoothness)
        if not order.solves:
            return (
                "Twin tours went on with short steps alone after the first one, as there are more "
                f"columns than samples and the penalty is weak: {taken} at an update, one "
                "aggregate a message."
            )
        return (
            "Twin tours: one copy of the model solves its blocks, and the other chose its steps in "
            f"the first tour: {taken} at an update. Messages have two aggregates; acceleration: "
            "conjugate has one, and needs more of them, as a rule."
        )

    @classmethod
    def roles(cls, method: MTCD) -> Roles:
        from mtcd.methods.tours.twin.parties import TwinRoles

        return TwinRoles(cls.most_starts(method))
