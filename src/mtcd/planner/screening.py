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
from operator import itemgetter
from time import perf_counter

import numpy as np

from mtcd.core.errors import MtcdError
from mtcd.methods.method import Method, resolved_stepsize
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.planner.pilots import PlanTask
from mtcd.protocol.model import LocalUpdates

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
    price = way.wire
    if price is None:
        price = task.iteration_cost(method)

    done = _achieved(task, method)
    if method.acceleration is not None:
        done *= ACCELERATED
    if isinstance(method, MTCD):
        rule = RULES[method.combine_rule]
        if not rule.server_chooses:
            # a sync keeps w of each token's progress; weights that minimise f keep it all
            done *= rule().weight(1, max(1, way.parallel))
    return way.distinct * done / max(price, 1e-12)


def _achieved(task: PlanTask, method: Method) -> float:
    """What a visit achieves, as a part of what can be achieved at a client."""
    if method.stepsize is None:
        return CONJUGATE
    if not method.gradient_steps:
        return PRIMAL_DUAL
    if method.chooses_steps:
        return 1.0

    # Q gradient steps on a quadratic of the mean curvature
    curvature = float(task.smoothness.blocks.mean())
    step = min(1.0, resolved_stepsize(method) * curvature)
    return 1.0 - (1.0 - step) ** method.local_updates


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
        except MtcdError:  # it cannot work here
            continue
        # what was made so far is enough to begin with
        if perf_counter() > until:
            break

    # the best of each kind, then the second best of each ...: the kinds are the columns
    in_turn: list[Method] = []

    columns = [_best_first(found) for found in kinds.values()]
    for row in zip_longest(*columns):
        in_turn += [method for _, method in _best_first(filter(None, row))]

    # of each family, the one that comes first
    firsts = {method.kind: method for method in reversed(in_turn)}
    return [*firsts.values(), *(method for method in in_turn if firsts[method.kind] is not method)]


def _best_first(scored: Iterable[tuple[float, Method]]) -> list[tuple[float, Method]]:
    return sorted(scored, key=itemgetter(0), reverse=True)


def affordable(task: PlanTask, seconds: float) -> int:
    """For how many pilots there is time, if each is to pass all clients a few times; and memory."""
    problem = task.problem
    # the least of three: whatever else the machine does only makes a visit longer
    firsts, laters = zip(_visits(task), _visits(task), _visits(task), strict=True)
    pilot = len(problem.blocks) * (min(firsts) + PASSES * min(laters))

    # each client of a pilot may keep the Gram matrix of its block, over rows or columns
    matrices = sum(8.0 * min(block.shape) ** 2 for block in problem.blocks)
    return int(min(seconds / pilot, MEMORY / matrices))


def _visits(task: PlanTask) -> tuple[float, float]:
    """Seconds of two visits to the client with most columns: at the first, it gets ready."""
    problem = task.problem
    widest = max(range(len(problem.blocks)), key=lambda k: problem.blocks[k].shape[1])
    client = problem.client(widest)
    theta, aggregate = client.initial(), np.zeros(problem.labels.shape)

    began = perf_counter()
    updates = LocalUpdates(VISIT, 1.0 / float(task.smoothness.blocks.max()))
    # the first visit: the client prepares for all that follow
    theta = client.local_update(theta, aggregate, updates)
    between = perf_counter()
    client.local_update(theta, aggregate, updates)
    return between - began, perf_counter() - between
