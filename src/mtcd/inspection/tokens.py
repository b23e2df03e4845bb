"""What the theory says of a setting of mtcd or stcd: visit probabilities, guarantees, break-even
ratios."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mtcd.core.mappings import positions
from mtcd.core.terminal.findings import LEFT_OUT, NOT_KNOWN, TheoryFinding, finding, not_known
from mtcd.inspection.facts import MethodFacts, Setting
from mtcd.inspection.walks import walk_findings
from mtcd.methods.method import resolve_stepsize, resolved_stepsize
from mtcd.methods.mtcd.client import Plan
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.roaming import StartAt
from mtcd.network.topology import Network
from mtcd.network.walks.walk import Walk, facts_of
from mtcd.protocol.ledger.costs import Costs
from mtcd.theory.bounds import Guarantee, LoneGuarantee
from mtcd.theory.breakeven import Comparison
from mtcd.theory.stepsize import Smoothness
from mtcd.theory.visits import (
    DENSE_SHARE,
    LeastVisits,
    Roam,
    least_visits,
    start_bound,
    uniform_roam,
    unlike,
    walk_bound,
)

VISIT_WORK = 8e9  # operations, one or two seconds; with more, the number is left out


def inspect_tokens(method: MTCD, setting: Setting) -> MethodFacts:
    """The tokens, their sizes, and what is known of their walks."""
    asked = setting.asked
    # any step size: what is sent does not depend on it
    plan = method.with_stepsize(1.0).plan(
        setting.samples, setting.outputs, asked.network, asked.seed
    )
    found = theory_of(method, plan, asked.network, asked.costs, asked.seed)

    if setting.smoothness is not None:
        stepsize = resolved_stepsize(resolve_stepsize(method, setting.smoothness)[0])
        found += guarantee(found, method, setting.smoothness, stepsize)
        changes = bool(asked.network.changes)
        found += lone_guarantee(found, method, setting.smoothness, stepsize, changes)

    return MethodFacts(plan.sizes, plan.floats, plan.tokens, found)


def theory_of(
    method: MTCD, plan: Plan, network: Network, costs: Costs, seed: int
) -> list[TheoryFinding]:
    """All findings for this setting: ``plan`` is that of the method."""
    clusters = method.token_clusters(network, seed)
    everyone = tuple(range(network.size))
    regions = [everyone] * plan.tokens
    if clusters is not None:
        regions = list(clusters)
    walks = plan.roaming.walks
    found: list[TheoryFinding] = []

    if plan.hops is not None:
        starts = zip(regions, plan.roaming.starts, strict=True)
        roams = [_roam(region, start) for region, start in starts]
        overlap = clusters is None and plan.tokens > 1
        found += _visits(network, roams, walks, plan.hops, overlap)

    # the same walk over the same clients has the same properties: each is computed once
    different = [(region, walk) for region, walk, _ in unlike(regions, walks)]
    found += walk_findings(network, different, lone=plan.hops is None)

    if plan.hops is None:
        why = "they are about syncs: stcd has none"
        found.append(TheoryFinding("breakeven_cost", "pi, break-even", None, "none", why))
        return found

    full_batch = method.batch is None
    # against a round of SVFL, which polls all clients
    comparison = Comparison(network.size, plan.tokens, plan.hops, plan.local_updates, full_batch)
    if costs.per == "float":
        # in representations, the unit of the paper: with extrapolation a token is larger than that
        sizes, one = plan.sizes, plan.aggregate_floats
        comparison = replace(
            comparison,
            uplink=sizes.uplink / one,
            downlink=sizes.downlink / one,
            hop=sizes.hop / one,
        )
    found += _breakeven(comparison, costs.ratio)
    return found


def _roam(region: tuple[int, ...], start: StartAt) -> Roam:
    if start.weights is None:
        return uniform_roam(region)

    weights = np.zeros(len(region))
    place = positions(region)
    # not weights[...] += ..., which would count a client that is named twice only once
    np.add.at(weights, [place[k] for k in start.clients], start.weights)
    return Roam(region, tuple((weights / weights.sum()).tolist()))


def _visits(
    network: Network, roams: Sequence[Roam], walks: Sequence[Walk], S: int, overlap: bool
) -> Iterator[TheoryFinding]:
    """pi, the chance of a visit on which the theorems rest: exactly where it can be computed, and
    its bounds."""

    different = unlike(roams, walks)
    known = all(facts_of(walk, network, roam.clients) for roam, walk, _ in different)
    if known:
        exact = None
        if sum(_work(network, roam, walk, S) for roam, walk, _ in different) <= VISIT_WORK:
            exact = least_visits(network, roams, S, walks)
        findings = _exact_visits(exact)
    else:
        findings = [not_known("pi", "pi"), not_known("pi_any_token", "pi, any token")]

    if not overlap:
        findings.pop()  # each cluster has one token: 'any token' is that one
    yield from findings

    yield finding(
        "pi_start_bound",
        "pi, from starts",
        # known for every walk: it needs the starts alone
        start_bound(roams),
        "the paper's bound p_0: the least likely start",
    )
    if known and walks[0].length is None:  # no tour
        yield finding(
            "pi_walk_bound",
            "pi, from walks",
            walk_bound(network, roams, S, walks),
            "the paper's bound p_0 (1 + d_max)^-S from the likeliest start; 0 where S may not be "
            "above the diameter, or the walk takes some link less often than 1/(1 + d_max)",
        )


def _exact_visits(exact: LeastVisits | None) -> list[TheoryFinding]:
    """The chances of a visit by each token and by any; None where they would take too long."""
    of_each, of_any = None, None
    if exact is not None:
        of_each, of_any = exact.per_token, exact.any_token

    return [
        finding(
            "pi",
            "pi",
            of_each,
            "the least chance that a token visits a client in one iteration, exactly; the theorems "
            "promise progress in proportion to it",
        ),
        finding(
            "pi_any_token",
            "pi, any token",
            of_any,
            "the same for a visit by at least one token; the theorem for overlapping tokens rests "
            "on the former",
        ),
    ]


def _work(network: Network, roam: Roam, walk: Walk, S: int) -> float:
    """The multiplications that the exact pi takes, weighted: dense products are faster than sparse
    ones."""
    K = len(roam.clients)
    facts = facts_of(walk, network, roam.clients)
    if facts is not None:
        known = facts.visits_work(S)
        if known is not None:
            return known

    entries: float = K + sum(len(network.neighbours[k]) for k in roam.clients)
    if entries > DENSE_SHARE * K * K:
        entries = K * K / 8  # computed as dense matrices, about eight times as fast per entry
    return float(S) * K * entries


def guarantee(
    found: Sequence[TheoryFinding], method: MTCD, smoothness: Smoothness, stepsize: float
) -> Iterator[TheoryFinding]:
    """The bound of the theorems for the full batch: 2 Delta/(eta pi T), with the exact pi of the
    walk.

    Parameters
    ----------
    found
        What was found before, with pi.
    method
        The method.
    smoothness
        The constants of the model.
    stepsize
        The step size that is used.
    """

    # weights that the server chooses are ours, and the paper has no theorem about them
    limit = method.stepsize_rules(smoothness).limit
    ours = RULES[method.combine_rule].server_chooses
    if method.hops is None or method.batch or ours or not limit.proven:
        return

    # what the walk has found out above is used again: it may take a second
    pi = next((f for f in found if f.key == "pi"), None)
    if pi is None or pi.shown == LEFT_OUT:
        return
    if pi.shown == NOT_KNOWN:
        yield not_known("guarantee", "guarantee")
        return

    # the theorem holds up to the limit, so that beyond it the limit is what a promise can be about
    eta, start = min(stepsize, limit.value), _start_value(smoothness)
    which = "this step size"
    if stepsize > limit.value:
        which = "the step-size limit (for the larger one chosen, nothing)"

    meaning = (
        "what the theorems promise: the mean of |grad f|^2 over T iterations is no more, 2 Δ/(η π "
        f"T) with η = {which} and Δ = f(θ⁰) - f* taken as f(θ⁰) = {start:.4g}"
    )
    if not pi.value:
        why = "some client is never visited: pi is 0"
        yield TheoryFinding("guarantee", "guarantee", None, "none", why)
        return

    S, Q, overall = method.hops, method.local_updates, smoothness.overall
    promise = Guarantee(start, eta, pi.value, S, Q, overall).after(1)
    yield TheoryFinding("guarantee", "guarantee", promise, f"{promise:.4g}/T", meaning)


def lone_guarantee(
    found: Sequence[TheoryFinding],
    method: MTCD,
    smoothness: Smoothness,
    stepsize: float,
    changes: bool,
) -> Iterator[TheoryFinding]:
    """The bound of equation (5) for stcd: C/r, with the Q and the (pi_min/2)-mixing time of the
    setting."""
    smooth = not any(penalty.l1 for penalty in smoothness.problem.penalties)
    if method.hops is not None or method.acceleration or changes or not smooth:
        return  # the equation is not about such a training
    yield _equation_5({f.key: f for f in found}, method.local_updates, smoothness, stepsize)


def _equation_5(
    found: Mapping[str, TheoryFinding], Q: int, smoothness: Smoothness, stepsize: float
) -> TheoryFinding:
    """The promise, or why there is none; ``found`` has the properties of the walk."""
    key, title = "guarantee_stcd", "guarantee, eq. 5"
    mixing = found.get("mixing_time")
    if mixing is not None and mixing.shown == NOT_KNOWN:
        return not_known(key, title)

    tau, pi_min = found.get("mixing_time_pi_min"), found.get("pi_min")
    if tau is None or pi_min is None or tau.shown == "infinite":
        why = (
            "it is about walks that are Markov chains on clients and forget their start: this one "
            "is not"
        )
        return TheoryFinding(key, title, None, "none", why)
    if tau.value is None or not pi_min.value:
        return finding(key, title, None, tau.meaning)

    block = float(smoothness.blocks.max())
    if stepsize >= 2 / block:
        why = f"it holds for step sizes below 2/max_k L_k = {2 / block:.4g}"
        return TheoryFinding(key, title, None, "none", why)

    # f(theta^0) instead of f(theta^0) - f*: an upper bound that needs no optimum
    start = _start_value(smoothness)
    promise = LoneGuarantee(start, stepsize, pi_min.value, tau.value, Q, smoothness.overall, block)
    meaning = (
        "what equation (5) promises: the least |grad f|^2 in r local updates (Q a hop) is, on "
        f"average, no more: (Ω₁ (Q τ - 1)² + Ω₂) Δ/r with Q = {Q}, τ = {tau.value:.6g}, "
        f"Ω₁ = {promise.omega_1:.4g}, Ω₂ = {promise.omega_2:.4g} and Δ = f(θ⁰) - f* taken as "
        f"f(θ⁰) = {start:.4g}"
    )
    return TheoryFinding(key, title, promise.constant, f"{promise.constant:.4g}/r", meaning)


def _start_value(smoothness: Smoothness) -> float:
    """f at theta = 0, which is no less than Delta: no loss is below 0."""
    problem = smoothness.problem
    return float(problem.fit.objective(np.zeros(problem.labels.shape), 0.0))


def _breakeven(comparison: Comparison, ratio: float) -> Iterator[TheoryFinding]:
    cost, time = comparison.cost_ratio, comparison.time_ratio
    if math.isinf(cost):
        never = "with as many tokens as clients no message to the server is saved"
        yield finding("breakeven_cost", "break-even, cost", cost, never)
        yield finding("breakeven_time", "break-even, time", time, never)
        return

    compared = "more expensive"
    if ratio >= cost:
        compared = "no more expensive"
    # with mini-batches all clients upload at a sync, so that only the way down is saved
    saved = "(K - Γ)"
    if comparison.full_batch:
        saved = "(2K - 2Γ)"
    rule = f"S Γ/{saved}"
    if comparison.hop != 1:
        rule = f"S Γ Z/(2K - Γ - Γ Z), tokens being Z = {comparison.hop:g} representations"

    yield finding(
        "breakeven_cost",
        "break-even, cost",
        cost,
        f"{rule}, the R_C from which an iteration costs no more than a client-server round; "
        f"with R_C = {ratio:g} it is {compared}",
    )
    yield finding(
        "breakeven_time",
        "break-even, time",
        time,
        f"S/{saved}, the same for time: how many hops a message to the server must last at least",
    )
