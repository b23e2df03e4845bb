"""Limits in a training: what is on a limit, and what is just beyond it."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.models.metrics.metric import Score
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import CLIENT_CLIENT, LINKS, Ledger
from mtcd.protocol.party import Progress
from mtcd.training.checkpoints import Checkpoints, Spacing
from mtcd.training.divergence import Divergence, allowing
from mtcd.training.history import Best, History, Measurement, check_column
from mtcd.training.kinds import Request
from mtcd.training.observer import Observer
from mtcd.training.plateau import Plateau, Windows
from mtcd.training.run import _metrics_line

NOTHING = dict.fromkeys(LINKS, 0)
ROW = Measurement(10, 10, 5, 1.0, 0.5, 7.0, NOTHING, NOTHING, 2.0)


def beyond(number: float) -> float:
    return math.nextafter(number, math.inf)


# Divergence


@pytest.mark.parametrize("start", [1.0, -1.0, 8.0])
def test_a_training_may_come_as_far_as_the_limit(start: float) -> None:
    """On the way, 1000 times as far above 0 as the start; at the end, the start itself, but for a
    millionth."""
    rule = Divergence(start, 1.0)
    hopeless = start + 999 * abs(start)
    assert not rule.on_the_way(hopeless)
    assert rule.on_the_way(beyond(hopeless))
    most = start + 1e-6 * abs(start)
    assert not rule.at_the_end(most)
    assert rule.at_the_end(most + 1e-12)


def test_an_end_at_the_start_is_allowed_by_the_usual_multiple() -> None:
    assert allowing(1.0, start=0.0, end=0.0) == 1.0
    assert allowing(10.0, start=3.0, end=3.0) == 10.0
    assert allowing(1.0, start=0.0, end=5e-324) == math.inf


# Columns


def test_an_improvement_is_more_than_a_share_of_the_best() -> None:
    for higher, column in ((False, "objective"), (True, "train_auc")):
        best = Best(column, by=0.5, value=2.0)
        assert best.higher == higher
        on_it, better = (3.0, 3.1) if higher else (1.0, 0.9)
        assert not best.improves(on_it)
        assert best.value == 2.0
        assert best.improves(better)
        assert best.value == better
        assert not Best(column, value=2.0).improves(2.0)
    assert Best("objective").improves(math.inf)


def test_a_column_that_is_not_there_is_refused_with_those_that_are() -> None:
    row = replace(ROW, metrics={"train_auc": 0.5, "train_accuracy": 0.7})
    check_column("train_auc", 0, row)
    check_column("test_auc", 1, row)
    with pytest.raises(ConfigError, match="There is no column 'test_auc'") as refused:
        check_column("test_auc", 0, row)
    named = str(refused.value).partition("It has ")[2].rstrip(".").split(", ")
    assert named == sorted(named)
    assert {"train_accuracy", "train_auc", "objective", "iteration"} <= set(named)
    # what depends on the clock should decide nothing
    assert "seconds" not in named

    history = History([row])
    assert history["train_auc"].tolist() == [0.5]
    with pytest.raises(KeyError, match="test_auc"):
        history["test_auc"]
    assert History([])["test_auc"].size == 0


@pytest.mark.parametrize(("count", "more"), [(0, False), (4, False), (5, True)])
def test_four_metrics_are_shown(count: int, more: bool) -> None:
    line = _metrics_line(replace(ROW, metrics={f"m{i}": 0.5 for i in range(count)}))
    assert line.count("=0.5") == min(count, 4)
    assert ("..." in line) == more


# Stopping


def test_how_far_a_training_is_on_its_way_to_a_gap() -> None:
    stop = mtcd.Stop(gap=0.01)

    def fraction(gap: float | None, first: float | None) -> float:
        return stop.fraction(replace(ROW, gap=gap, iteration=0), first)

    assert fraction(0.1, 1.0) == pytest.approx(0.5)
    assert fraction(0.001, 1.0) == 1.0
    # a way that has no length, or an end that a logarithm does not know
    for gap, first in ((0.01, 0.01), (0.005, 0.005), (0.0, 1.0), (-0.1, 1.0), (None, None)):
        assert fraction(gap, first) == 0.0


def test_near_a_gap_is_within_a_twentieth_of_it() -> None:
    stop = mtcd.Stop(gap=0.5)
    assert stop.nearly(replace(ROW, gap=1.05 * 0.5))
    assert not stop.nearly(replace(ROW, gap=beyond(1.05 * 0.5)))
    assert not stop.nearly(replace(ROW, gap=None))


def test_a_window_is_due_once() -> None:
    rule, seen = Plateau(patience=2), Windows(3, 1.0)
    assert not rule.is_due(seen, 39, epoch=5)
    assert rule.is_due(seen, 40, epoch=5)
    assert not rule.is_due(Windows(4, 1.0), 40, epoch=5)
    assert rule.is_due(None, 0, epoch=5)


# Observing


def observer(
    best: float | None = None,
    objective: float = 1.0,
    seconds: float | None = None,
    rows: int = 1,
    watcher: Any = None,
) -> Observer:
    """Of a training whose model has this objective, after the measurement ``ROW``."""
    problem: Any = SimpleNamespace(score=lambda parameters: Score(objective))
    engine: Any = SimpleNamespace(
        ledger=Ledger(), seconds=seconds, parameters=list, epoch_loss=lambda: None
    )
    made = Observer(problem, engine, Costs(), best, 1.0, watcher=watcher)
    made.rows.extend([ROW] * rows)
    return made


def test_metrics_are_due_when_the_iterations_have_grown_by_a_tenth() -> None:
    observed = observer()
    assert observed._metrics_due(Progress(0, 0, None, 0.0))
    observed._metrics_at = 100
    due = [hop for hop in range(100, 130) if observed._metrics_due(Progress(hop, 0, None, 0.0))]
    assert due[0] == math.ceil(1.1 * 100)
    observed._metrics_at = 10
    assert not observed._metrics_due(Progress(10, 0, None, 0.0))
    assert observed._metrics_due(Progress(11, 0, None, 0.0))
    # of many samples by one more for each 2000
    many = np.zeros(8000)
    due = [hop for hop in range(10, 30) if observed._metrics_due(Progress(hop, 0, many, 0.0))]
    assert due[0] == 14


def test_a_model_may_be_below_the_optimum_by_rounding() -> None:
    for best in (4.0, 0.5, -4.0):
        least = best - 1e-9 * max(1.0, abs(best))
        assert observer(best, least)._held().objective == least
        with pytest.raises(MtcdError, match="below the optimum"):
            observer(best, math.nextafter(least, -math.inf))._held()
    assert observer(None, -1e9)._held().objective == -1e9


def test_time_and_money_are_up_at_their_limits() -> None:
    observed = observer(seconds=3.0)
    observed._latest = Progress(11, 0, None, 0.0)
    observed.engine.ledger.record(CLIENT_CLIENT, 5, 2)
    cost = observed.costs.total(observed.engine.ledger)
    assert cost > 0
    for stop, up in (
        (mtcd.Stop(seconds=3.0), True),
        (mtcd.Stop(seconds=beyond(3.0)), False),
        (mtcd.Stop(cost=cost), True),
        (mtcd.Stop(cost=beyond(cost)), False),
    ):
        assert observed._out_of_time_or_money(stop) == up
    # a moment that was measured is not measured again
    observed._latest = Progress(10, 0, None, 0.0)
    assert not observed._out_of_time_or_money(mtcd.Stop(seconds=3.0))


def test_the_history_of_a_training_that_parties_ended_has_their_model_once() -> None:
    for hop, rows in ((10, 1), (11, 2)):
        observed = observer()
        observed._latest = Progress(hop, 0, None, 0.0)
        assert observed._ended_by_parties("iterations") == "iterations"
        assert len(observed.rows) == rows
        assert observed.rows[-1].iteration == hop


def test_a_watcher_hears_of_each_sync_once() -> None:
    heard: list[float] = []
    watcher = SimpleNamespace(
        synced=lambda measure, fraction, parameters: heard.append(measure().syncs), stopped=None
    )
    observed = observer(watcher=watcher)
    for t in (0, 1, 1, 2, 2, 3):
        observed._sync(Progress(10, t, None, 0.0), mtcd.Stop(iterations=9))
    assert heard == [1, 2, 3]


def test_what_a_training_that_goes_on_knows() -> None:
    observed = observer(rows=0)
    ledger = Ledger()
    ledger.record(CLIENT_CLIENT, 5, 2)
    measured = [
        replace(ROW, iteration=4, metrics={"train_auc": 0.5}),
        replace(ROW, iteration=8, metrics={"train_auc": 0.6}),
        replace(ROW, iteration=9),
    ]
    observed.resume(measured, ledger)
    assert observed.rows == measured
    assert observed.engine.ledger == ledger
    assert observed._metrics_at == 8
    assert observed._syncs == ROW.syncs
    assert observed.clock.seconds() == ROW.seconds
    # another training of the same rows has a history of its own
    measured.pop()
    assert len(observed.rows) == 3


def test_a_folder_for_checkpoints_is_tried_before_the_training(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    form: Any = SimpleNamespace(name="checkpoint")
    Checkpoints(tmp_path / "new", False, {}, form, Spacing())
    with pytest.raises(ConfigError, match="cannot be written"):
        Checkpoints(tmp_path / "file" / "below", False, {}, form, Spacing())


# Arguments of a training


def test_an_argument_is_refused_unless_it_was_left_out() -> None:
    asked = Request(None, seed=0, standardise=False, compute=None)
    asked.refuse("is not for this", "standardise", "compute", "metrics")
    for given in (Request(None, seed=0), replace(asked, seed=3)):
        with pytest.raises(ConfigError, match="seed is not for this"):
            given.refuse("is not for this", "compute", "seed")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"privacy": "sealed"}, "train needs a Privacy, but got 'sealed'"),
        ({"data": [1, 2]}, "train needs a VerticalData or VerticalDataset"),
        ({"stop": 10}, "train needs a Stop, but got 10"),
        ({"costs": 10}, "train needs a Costs, but got 10"),
        ({"seed": -1}, "seed must be 0 or more"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"resume": True}, "resume needs checkpoint"),
        ({"network": 3}, "network must be a name, a graph, edges or a Network, but is 3"),
        ({"network": mtcd.make_network("path", ["a", "b"])}, "the same clients in the same order"),
        ({"method": "stcd"}, "method must be MTCD"),
        ({"engine": "ray"}, "engine must be a kind of engine"),
        ({"model": "ridge"}, "train needs a Glm, Trees, Mixed or a SplitModel"),
        ({"compute": "cpu"}, "compute"),
    ],
)
def test_arguments_of_another_kind_are_refused(changed: dict[str, Any], said: str) -> None:
    data = mtcd.synthetic("ridge", samples=12, features=4, clients=2)
    given: dict[str, Any] = {
        "data": data,
        "model": mtcd.Glm("ridge"),
        "network": "path",
        "method": mtcd.STCD(),
        "stop": mtcd.Stop(iterations=1),
        **changed,
    }
    with pytest.raises(ConfigError, match=said):
        mtcd.train(**given)


@pytest.mark.parametrize(("latest", "rows"), [(None, 1), (Progress(3, 0, None, 0.0), 0)])
def test_an_interrupt_before_the_first_measurement_goes_on(
    latest: Progress | None, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(stop: Any, watch: Any) -> None:
        raise KeyboardInterrupt

    made = observer(rows=rows)
    made._latest = latest
    monkeypatch.setattr(made, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        made.run(mtcd.Stop(iterations=9), None)

    made.rows[:], made._latest = [ROW], Progress(11, 0, None, 0.0)
    assert made.run(mtcd.Stop(iterations=9), None) == "interrupted"
    assert [row.iteration for row in made.rows] == [10, 11]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "give at least one of gap, iterations"),
        ({"iterations": -1}, "stop.iterations must be 0 or more"),
        ({"iterations": 0.5}, "stop.iterations must be a whole number"),
        ({"epochs": -1}, "stop.epochs must be 0 or more"),
        ({"gap": -1e-9}, "stop.gap must be 0 or more"),
        ({"gap": "small"}, "stop.gap must be a number"),
        ({"seconds": math.nan}, "stop.seconds must be a finite number"),
        ({"cost": -1}, "stop.cost must be 0 or more"),
        ({"plateau": -0.5}, "stop.plateau must be 0 or more"),
        ({"plateau": {"patiens": 3}}, "stop.plateau has no key 'patiens'.*'patience'"),
    ],
)
def test_ends_that_mean_nothing_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        mtcd.Stop(**given)


def test_callbacks_are_a_list() -> None:
    data = mtcd.synthetic("ridge", samples=12, features=4, clients=2)
    given = (data, mtcd.Glm("ridge"), "path", mtcd.STCD(), mtcd.Stop(iterations=1))
    for callbacks in ("early", mtcd.EarlyStopping("objective")):
        with pytest.raises(ConfigError, match="callbacks"):
            mtcd.train(*given, callbacks=callbacks)  # type: ignore[arg-type]


def test_a_run_has_only_what_it_has(tmp_path: Path) -> None:
    data = mtcd.synthetic("ridge", samples=12, features=4, clients=2)
    run = mtcd.train(data, mtcd.Glm("ridge"), "path", mtcd.STCD(), mtcd.Stop(iterations=1))
    assert not hasattr(run, "_repr_of_nothing")
    assert "coefficients" in dir(run)
    without = replace(run, model=None)
    assert "coefficients" not in dir(without)
    with pytest.raises(MtcdError, match="This run has no model"):
        without.trained()
    with pytest.raises(MtcdError, match="give them as y"):
        run.score(np.hstack(list(data.blocks)))
    with pytest.raises(MtcdError, match="no run.json"):
        mtcd.load_run(tmp_path)
