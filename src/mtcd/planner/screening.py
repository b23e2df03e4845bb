"""Analytic screening: which candidates are worth a pilot, before anything is trained.

The score of a candidate is how much of the model an iteration improves, per unit of what is to be
made small:

    different clients that take part * what a visit achieves / (cost or seconds of an iteration)

where Q steps of size eta on a block of curvature L_k achieve 1 - (1 - eta L_k)^Q of what can be
achieved there, and averaging Gamma tokens leaves a Gamma-th of it. It is a guess: it orders the
candidates, and when there is no time for all of them, the best of each kind go first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import zip_longest
from time import perf_counter

import numpy as np

from mtcd.core.errors import MtcdError
from mtcd.methods.method import Method, resolved_stepsize
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.planner.pilots import PlanTask
from mtcd.protocol.updates import LocalUpdates

# what extrapolation, a primal-dual iteration and one of conjugate gradients are worth, until
# something is known
ACCELERATED, PRIMAL_DUAL, CONJUGATE = 3.0, 0.1, 1.0
VISIT = 20  # local updates of a visit that is timed
# over all clients, that a pilot should at least come to: extrapolation begins after some tours
PASSES = 12
MEMORY = 1e9  # bytes that the matrices of all pilots may take together


def score(task: PlanTask, method: Method) -> float:
    """Progress per unit of cost, or of time on the wire."""
    way = task.travel(method)
    price = task.iteration_cost(method) if way.wire is None else way.wire
    if method.stepsize is None:
        done = CONJUGATE
    elif not method.gradient_steps:
        done = PRIMAL_DUAL
    elif method.chooses_steps:
        done = 1.0
    else:
        curvature = float(task.smoothness.blocks.mean())
        done = 1.0 - (1.0 - min(1.0, resolved_stepsize(method) * curvature)) ** method.local_updates
    if method.acceleration is not None:
        done *= ACCELERATED
    if isinstance(method, MTCD):
        rule = RULES[method.combine_rule]
        done *= 1.0 if rule.server_chooses else rule().weight(1, max(1, way.parallel))
    return way.distinct * done / max(price, 1e-12)


def kind(method: Method) -> tuple[object, ...]:
    """What makes a candidate another kind of thing, and not the same with other numbers."""
    if isinstance(method, MTCD):
        return method.kind, method.walk, method.acceleration, method.combine_rule, method.tokens
    return method.kind, method.acceleration


def ordered(task: PlanTask, methods: Iterable[Method], until: float) -> list[Method]:
    """The best of each family, then of each kind, then the second best of each kind ...; what
    cannot work is left out.

    Methods come one by one, as making them takes time on large networks; those that come after
    ``until`` are not looked at.
    """
    kinds: dict[tuple[object, ...], list[tuple[float, Method]]] = defaultdict(list)
    for method in methods:
        try:
            kinds[kind(method)].append((score(task, method), method))
        except MtcdError:
            continue
        if perf_counter() > until:
            break
    columns = [sorted(found, key=_points, reverse=True) for found in kinds.values()]
    rows = [_best_first(row) for row in zip_longest(*columns)]
    in_turn = [method for row in rows for _, method in row]
    # of each family, the one that comes first
    firsts = {method.kind: method for method in reversed(in_turn)}
    return [*firsts.values(), *(method for method in in_turn if firsts[method.kind] is not method)]


def _points(entry: tuple[float, Method]) -> float:
    return entry[0]


def _best_first(row: Iterable[tuple[float, Method] | None]) -> list[tuple[float, Method]]:
    return sorted((entry for entry in row if entry is not None), key=_points, reverse=True)


def affordable(task: PlanTask, seconds: float) -> int:
    """For how many pilots there is time, if each is to pass all clients a few times; and memory."""
    problem = task.problem
    first, later = (min(times) for times in zip(*(_visits(task) for _ in range(3)), strict=True))
    pilot = len(problem.blocks) * (first + PASSES * later)
    matrices = sum(8.0 * min(block.shape) ** 2 for block in problem.blocks)
    return int(min(seconds / pilot, MEMORY / matrices))


def _visits(task: PlanTask) -> tuple[float, float]:
    """Seconds of two visits to the client with most columns: at the first, it gets ready."""
    problem = task.problem
    client = problem.client(
        max(range(len(problem.blocks)), key=lambda k: problem.blocks[k].shape[1])
    )
    theta, aggregate = client.initial(), np.zeros(problem.labels.shape)
    began = perf_counter()
    updates = LocalUpdates(VISIT, 1.0 / float(task.smoothness.blocks.max()))
    theta = client.local_update(theta, aggregate, updates)
    between = perf_counter()
    client.local_update(theta, aggregate, updates)
    return between - began, perf_counter() - between
