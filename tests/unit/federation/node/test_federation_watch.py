"""What a party says of how far the run is."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.federation.node.log import Log
from mtcd.federation.node.watch import Watch
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.network.topology import make_network
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.token import Token
from mtcd.training.divergence import DIVERGED
from mtcd.training.stop import Stop


def watching(method: Method) -> Watch:
    return Watch(
        Stop(iterations=100),
        method,
        make_network("cycle", ["a", "b", "c", "d"]),
        Costs(),
        2,
        10,
        Log("a", None),
    )


@pytest.mark.parametrize(
    ("method", "seen", "iterations"),
    [
        (MTCD(tokens=2, hops=4, stepsize=0.1), [(2, 3), (2, 1)], [11, 11]),
        # at 9, as the server is gone
        (MTCD(tokens=2, hops=4, stepsize=0.1), [(2, 9), (3, 1)], [12, 13]),
        (STCD(stepsize=0.1), [(0, 8), (0, 9)], [8, 9]),
    ],
)
def test_iterations_are_counted_by_syncs_and_hops_between_them(
    method: Method, seen: list[tuple[int, int]], iterations: list[int]
) -> None:
    watch = watching(method)
    told = []
    for t, hop in seen:
        watch.visited(Token(0, t, hop, np.zeros(10), 0.0))
        told.append(watch.facts()["iteration"])
    assert told == iterations


def test_tokens_are_told_in_order_with_milliseconds_since_their_last_visit() -> None:
    watch = watching(MTCD(tokens=2, hops=4, stepsize=0.1))
    now = [10.0]
    watch.now = lambda: now[0]  # type: ignore[method-assign]
    for index, t, hop in ((1, 0, 2), (0, 1, 3)):
        watch.visited(Token(index, t, hop, np.zeros(10), 0.0))
        now[0] += 0.1234
    assert watch.tokens() == [
        {"token": 0, "sync": 1, "hop": 3, "seconds_ago": 0.123},
        {"token": 1, "sync": 0, "hop": 2, "seconds_ago": 0.247},
    ]


class Report:
    """A report to the monitor at an iteration."""

    def __init__(self, iteration: int, penalty: float = 0.0) -> None:
        self.iteration = iteration
        self.penalty = penalty


def test_a_run_ends_at_the_report_that_reaches_its_limit() -> None:
    watch = watching(STCD(stepsize=0.1))
    assert [watch.limit(Report(iteration)) for iteration in (0, 99, 100, 101)] == [
        None,
        None,
        "iterations",
        "iterations",
    ]
    assert watch.iteration == 101
    assert watch.limit(object()) is None, "it counts nothing"
    assert watch.iteration == 101


def test_a_penalty_that_is_not_finite_ends_a_run_before_any_limit() -> None:
    watch = watching(STCD(stepsize=0.1))
    assert watch.limit(Report(3, math.inf)) == watch.limit(Report(100, math.nan)) == DIVERGED


def test_an_engine_that_observes_a_party_has_the_last_word() -> None:
    watch, told = watching(STCD(stepsize=0.1)), []
    watch.report = lambda payload, status: told.append(status) or "pausing"  # type: ignore[func-returns-value]
    assert [watch.limit(Report(iteration)) for iteration in (3, 100)] == ["pausing", "pausing"]
    assert told == [None, "iterations"]


class Pacing:
    """Checks after 5 iterations, then after 10, ..."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def next(self, iteration: int, near: bool) -> float:
        assert not near
        self.asked.append(iteration)
        return iteration + 5


def test_divergence_is_looked_for_at_the_pace_of_its_checks() -> None:
    watch, pace, seen = watching(STCD(stepsize=0.1)), Pacing(), []
    watch._check_pace = pace  # type: ignore[assignment]
    watch._seen = lambda: seen.append("looked")  # type: ignore[func-returns-value, assignment]
    for iteration in (0, 4, 5, 6, 12):
        assert watch.limit(Report(iteration)) is None
    assert pace.asked == [0, 5, 12]
    assert seen == 3 * ["looked"]


class Problem:
    """Reads the objective off an aggregate: its sum."""

    def read_off(self, aggregate: np.ndarray, penalty: float) -> float:
        return float(aggregate.sum()) + penalty


def test_the_objective_is_measured_twice_a_second_and_at_the_end() -> None:
    watch = watching(STCD(stepsize=0.1))
    now = [10.0]
    watch.now = lambda: now[0]  # type: ignore[method-assign]
    token, found = Token(0, 0, 0, np.ones(3), 0.5), []
    for later in (0.0, 0.4, 0.11):
        now[0] += later
        watch.look(token, Problem(), lambda: 0.25)
        found.append(watch.facts()["objective"])
        token = Token(0, 0, 0, 2 * token.aggregate, 0.5)
    assert found == [3.5, 3.5, 12.5]
    assert (watch.facts()["gap_part"], watch.final) == (0.25, False)
    watch.look(token, Problem(), lambda: math.inf, ended=True)
    assert (watch.facts()["objective"], watch.facts()["gap_part"]) == (24.5, None)
    assert watch.final
    watch.look(Token(0, 0, 0, np.zeros(3), 0.0), None, ended=True)
    assert watch.facts()["objective"] == 24.5, "of a part of the samples nothing is measured"


def test_progress_is_logged_every_five_seconds_where_the_run_went_on() -> None:
    watch = watching(STCD(stepsize=0.1))
    now = [10.0]
    watch.now = lambda: now[0]  # type: ignore[method-assign]
    watch._pace = Pacing()  # type: ignore[assignment]
    logged = []
    for seconds, iteration in ((0.0, 1), (4.9, 6), (5.0, 5), (5.0, 6), (10.0, 11)):
        now[0] = 10.0 + seconds
        watch.iteration = iteration
        before = len(watch.log.tail)
        watch.look(Report(iteration))
        logged.append(len(watch.log.tail) - before)
    assert logged == [1, 0, 0, 1, 1]
    assert watch.log.tail[-1]["text"] == "11 iterations, 0 syncs."
    watch.objective, watch.iteration, now[0] = 0.25, 99, 99.0
    watch.look(Report(99))
    assert watch.log.tail[-1]["text"] == "99 iterations, 0 syncs, objective 0.25."


class Rule:
    """Diverged above 10 on the way, above 5 at the end."""

    def on_the_way(self, objective: float) -> bool:
        return objective > 10

    def at_the_end(self, objective: float) -> bool:
        return objective > 5


def test_an_end_is_judged_by_the_objective_and_by_what_is_not_finite() -> None:
    watch = watching(STCD(stepsize=0.1))
    watch.problem, watch.rule = Problem(), Rule()  # type: ignore[assignment]
    small, large = (Token(0, 0, 0, np.full(3, value), 0.0) for value in (1.0, 2.0))
    assert [watch.judge(token, "seconds") for token in (small, large)] == ["seconds", DIVERGED]
    watch.problem = None
    assert watch.judge(large, "seconds") == "seconds", "the objective is not known here"
    assert watch.judge(Token(0, 0, 0, np.array([1.0, np.nan]), 0.0), "seconds") == DIVERGED
    watch._finite = lambda: False
    assert watch.judge(small, "seconds") == DIVERGED


def test_divergence_on_the_way_is_read_off_the_token_as_the_server_sends_it() -> None:
    watch = watching(MTCD(tokens=2, hops=4, stepsize=0.1))
    fine, high = np.full(3, 1.0), np.full(3, 4.0)
    assert not watch.shows_divergence(Token(0, 1, 0, high, 0.0)), "no rule is known here"
    watch.problem, watch.rule = Problem(), Rule()  # type: ignore[assignment]
    assert watch.shows_divergence(Token(0, 1, 0, high, 0.0))
    assert not watch.shows_divergence(Token(0, 1, 0, fine, 0.0))
    assert not watch.shows_divergence(Token(0, 1, 1, high, 0.0)), "others have changed it since"
    lone = watching(STCD(stepsize=0.1))
    lone.problem, lone.rule = watch.problem, watch.rule
    assert not lone.shows_divergence(Token(0, 0, 0, high, 0.0)), "no server has sent it"


def test_requests_of_the_server_count_syncs_and_never_iterations_back() -> None:
    watch = watching(MTCD(tokens=2, hops=4, stepsize=0.1))
    told = []
    for t in (2, 3, 1):
        watch.requested(t)
        told.append((watch.syncs, watch.iteration))
    assert told == [(2, 8), (3, 12), (1, 12)]


def test_the_plateau_rule_remembers_in_the_token_or_else_at_the_party_that_reports() -> None:
    watch, asked = watching(STCD(stepsize=0.1)), []
    watch._plateau = SimpleNamespace(reached=lambda now: asked.append(now.keeper))  # type: ignore[assignment]
    keeper: Any = SimpleNamespace(slots={})
    token = Token(0, 0, 3, np.ones(3), 0.0)
    for payload in (Report(3), token):
        assert watch.limit(payload, keeper) is None
    assert [one is expected for one, expected in zip(asked, (keeper, token), strict=True)] == [
        True,
        True,
    ]
    watch.limit(Report(3))
    assert len(asked) == 2, "without one to keep it the rule is not asked"
