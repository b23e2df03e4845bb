"""How MTCD and STCD are named in tables and pictures: the settings that tell runs apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mtcd.methods.mtcd.checks import GRADIENT
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.features import ACCELERATIONS

if TYPE_CHECKING:
    from mtcd.methods.mtcd.mtcd import MTCD


def description_of(method: MTCD) -> str:
    """The name of a method with its settings, such as 'STCD, Q=5, tour'."""
    Q = "auto" if method.chooses_steps else method.local_updates
    if method.hops is None:
        return f"STCD, Q={Q}{_beyond_the_paper(method)}"

    tokens = method.tokens
    one_visitor = RULES[method.combine_rule].one_visitor
    if tokens is None and method.clusters is None and not one_visitor:
        tokens = 1
    elif tokens is None and not isinstance(method.clusters, str | None):
        tokens = len(method.clusters)

    batch = "" if method.batch is None else f", B={method.batch}"
    shown = f"Γ={tokens or 'auto'}, S={method.hops}, Q={Q}{batch}, {method.combine_rule}"
    return f"MTCD, {shown}{_beyond_the_paper(method)}"


def _beyond_the_paper(method: MTCD) -> str:
    """The walk, acceleration and local solver, where they are not the paper's."""
    parts = []
    if method.walk != "lazy":
        parts.append(method.walk)
    if method.acceleration:
        parts.append(method.acceleration)
    if method.local_solver != GRADIENT:
        parts.append(method.local_solver)

    shown = "".join(f", {part}" for part in parts)
    if method.acceleration is None or method.chooses_steps:
        return shown
    kind = ACCELERATIONS[method.acceleration]
    if kind.uses_depth:
        shown += f" (M={kind.most_starts(method)})"
    return shown
