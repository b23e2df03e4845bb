"""Rules that end a training: the same in one process and at a party of a federation."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.protocol.token import Token
from mtcd.training.history import MOST_MEASURED, has_begun
from mtcd.training.plateau import WINDOWS, Plateau, PlateauRule, Windows
from mtcd.training.rules import Gap, Kept, Limit, TrainingFacts


def moment(iteration: int, keeper: object = None, **columns: float | None) -> TrainingFacts:
    known = {"iteration": iteration, **columns}
    return TrainingFacts(iteration, known.get, keeper or Kept())  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "status"), [(2.9, None), (3.0, "seconds"), (9.0, "seconds")])
def test_a_limit_is_reached_at_its_value_and_after_it(seconds: float, status: str | None) -> None:
    limit = Limit("seconds", "seconds", 3.0)
    assert limit.reached(moment(5, seconds=seconds)) == status
    assert limit.reached(moment(5)) is None, "a value that is not known is no end"
    assert limit.next_check(4) == math.inf
    assert Limit("cost", "iteration", 30).next_check(4) == 30


def test_a_gap_is_reached_at_its_value_and_below_it() -> None:
    for gap, status in ((0.11, None), (0.1, "converged"), (-0.1, "converged"), (None, None)):
        assert Gap(0.1).reached(moment(5, gap=gap)) == status


def test_a_party_counts_limits_in_iterations() -> None:
    """Three epochs of four iterations; 25 of cost beyond the opening, at ten for each two hops."""
    stop = mtcd.Stop(iterations=50, epochs=3, cost=32.0, seconds=60.0)
    rules = stop.rules_in_iterations(epoch=4, per_sync=2, cost=10.0, opening_cost=7.0)
    assert rules == (
        Limit("iterations", "iteration", 50),
        Limit("epochs", "iteration", 12),
        Limit("cost", "iteration", 6),
        Limit("seconds", "seconds", 60.0),
    )
    assert mtcd.Stop(cost=1.0, iterations=9).rules_in_iterations(1, 1, cost=0.0) == (
        Limit("iterations", "iteration", 9),
    )


def test_rules_of_a_measured_training_are_asked_in_order() -> None:
    stop = mtcd.Stop(gap=0.1, iterations=5, seconds=1.0)
    assert stop.rules() == (
        Gap(0.1),
        Limit("iterations", "iteration", 5),
        Limit("seconds", "seconds", 1.0),
    )


def test_a_plateau_is_remembered_where_the_report_is_kept() -> None:
    """At a party the token takes it along; a token that is regenerated has that of its history."""
    rule = PlateauRule(Plateau(patience=2, min_improvement=0.1), epoch=5, start=100.0)
    token = Token(0, 0, 0, np.zeros(2), 0.0)
    kept: dict[int, Token] = {}
    for hop, f in ((9, 10.0), (10, 50.0), (19, 1.0), (20, 40.0), (30, 39.0)):
        kept[hop] = replace(token)
        status = rule.reached(moment(hop, token, objective=f))
        assert status == ("plateau" if hop == 30 else None)
    assert token.slots == {WINDOWS.name: Windows(3, 40.0)}
    assert kept[10].slots == {}
    assert kept[30].slots == {WINDOWS.name: Windows(2, 40.0)}
    # from the older copy the same window ends in the same way
    assert rule.reached(moment(30, kept[30], objective=39.0)) == "plateau"
    assert rule.reached(moment(30, kept[20], objective=35.0)) is None


def test_a_value_is_asked_for_at_the_end_of_a_window_only() -> None:
    asked: list[str] = []

    def value(column: str) -> float:
        asked.append(column)
        return 1.0

    rule = PlateauRule(Plateau(patience=2), epoch=5, start=3.0)
    keeper = Kept()
    for hop in range(1, 21):
        rule.reached(TrainingFacts(hop, value, keeper))
    assert asked == ["objective", "objective"]
    assert rule.next_check(20) == 30
    assert rule.extension is WINDOWS


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"patience": 0}, r"stop\.plateau\.patience"),
        ({"patience": 2.5}, r"stop\.plateau\.patience"),
        ({"min_improvement": -0.1}, r"stop\.plateau\.min_improvement"),
        ({"min_improvement": float("nan")}, r"stop\.plateau\.min_improvement"),
    ],
)
def test_a_plateau_that_means_nothing_is_refused(settings: dict[str, float], words: str) -> None:
    Plateau(patience=1, min_improvement=0.0)
    with pytest.raises(ConfigError, match=words):
        Plateau(**settings)  # type: ignore[arg-type]


def test_a_training_of_trees_has_begun_when_the_model_changes_or_gains_are_known() -> None:
    first = SimpleNamespace(iteration=0, objective=1.0)
    for iteration, objective, begun in (
        (1, 1.0, False),
        (1, 0.9, True),
        (MOST_MEASURED - 1, 1.0, False),
        (MOST_MEASURED, 1.0, True),
    ):
        row = SimpleNamespace(iteration=iteration, objective=objective)
        assert has_begun(first, row) is begun  # type: ignore[arg-type]
