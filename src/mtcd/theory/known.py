"""Which walks the theory knows: those that hop as a built-in one does, and those that declare their transitions."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

from mtcd.network.walks import LazyWalk, MetropolisWalk, NonBacktrackingWalk, RandomTourWalk, TourWalk, Walk

BUILT_IN = (LazyWalk, MetropolisWalk, NonBacktrackingWalk, TourWalk, RandomTourWalk)

NOT_KNOWN = "not known for this walk"
DECLARE = (
    "override Walk.transitions to declare the probability of each next client, where it depends on the client alone"
)

W = TypeVar("W", bound=Walk)


def hops_as(walk: Walk, kind: type[W]) -> TypeGuard[W]:
    """Whether the walk hops as this kind does: a subclass with another ``next`` does not."""
    return isinstance(walk, kind) and type(walk).next is kind.next


def declares_transitions(walk: Walk) -> bool:
    """Whether the walk declares its transitions: not if they are those of a class whose ``next`` it overrides."""
    for cls in type(walk).__mro__:
        if "transitions" in vars(cls):
            return cls is not Walk
        if "next" in vars(cls):
            return False
    return False


def is_known(walk: Walk) -> bool:
    """Whether the theory can say anything of the walk."""
    return declares_transitions(walk) or any(hops_as(walk, kind) for kind in BUILT_IN)
