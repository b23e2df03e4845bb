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
from collections.abc import Callable, Iterable
from itertools import zip_longest
from operator import itemgetter

from mtcd.core.errors import MtcdError
from mtcd.methods.method import Method, resolved_stepsize
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.planner.pilots import PlanTask

# what extrapolation, a primal-dual iteration and one of conjugate gradients are worth, until
# something is known
ACCELERATED, PRIMAL_DUAL, CONJUGATE = 3.0, 0.1, 1.0
# over all clients, that a pilot should at least come to: extrapolation begins after some tours
PASSES = 12
VISIT = 1e-4  # CPU seconds of a visit, but for its products
SPEED, FAST = 2e9, 1e10  # floating-point operations a second: of a product, of a decomposition
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


def ordered(
    task: PlanTask, methods: Iterable[Method], until: float, clock: Callable[[], float]
) -> list[Method]:
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
        if clock() > until:
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
    """For how many pilots there are CPU seconds, if each is to pass all clients a few times; and
    memory.

    By what a machine of today takes, and not by what this one takes now: a plan must not depend on
    what else it does.
    """
    problem, pilot = task.problem, 0.0
    for block in problem.blocks:
        rows, columns = block.shape
        # two products with the block; at the first visit a matrix of its smaller side, and its
        # eigenvalues
        visit = 4.0 * rows * columns * problem.outputs
        small = float(min(rows, columns))
        first = 2.0 * rows * columns * small + 10.0 * small**3
        pilot += PASSES * (VISIT + visit / SPEED) + first / FAST

    # each client of a pilot may keep the Gram matrix of its block, over rows or columns
    matrices = sum(8.0 * min(block.shape) ** 2 for block in problem.blocks)
    return int(min(seconds / pilot, MEMORY / matrices))
