"""What is given to a training reaches it, argument by argument."""

from __future__ import annotations

import importlib
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import LINKS, Ledger
from mtcd.protocol.party import Progress
from mtcd.training import kinds
from mtcd.training.history import Best, History, Measurement
from mtcd.training.kinds import Request
from mtcd.training.observer import Observer
from mtcd.training.pace import Epochs, Growing
from mtcd.training.plateau import WINDOWS, Plateau, PlateauRule, Windows
from mtcd.training.rules import Kept
from mtcd.training.training import Training
from mtcd.training.watchers import Watcher

TRAIN: Any = importlib.import_module("mtcd.training.train")
NOTHING = dict.fromkeys(LINKS, 0)


class AskedError(Exception):
    """Carries what was asked for, before anything is trained."""


def test_every_argument_is_in_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(asked: Request) -> Any:
        raise AskedError(asked)

    monkeypatch.setattr(TRAIN, "resolved", resolved)
    names = [one.name for one in fields(Request)]
    given = {name: f"given as {name}" for name in names}
    with pytest.raises(AskedError) as caught:
        mtcd.train(**given)  # type: ignore[arg-type]
    [asked] = caught.value.args
    assert {name: getattr(asked, name) for name in names} == given

    with pytest.raises(AskedError) as caught:
        mtcd.train("data")  # type: ignore[arg-type]
    [asked] = caught.value.args
    assert asked == Request("data")


def test_an_engine_makes_the_parties_and_a_watch_sees_them_train() -> None:
    data = mtcd.synthetic("ridge", samples=12, features=4, clients=2)
    seen: list[int] = []
    given = (data, mtcd.Glm("ridge"), "path", mtcd.STCD(stepsize=1e-3), mtcd.Stop(iterations=3))
    run = mtcd.train(*given, watch=lambda row, fraction: seen.append(row.iteration))
    assert seen == [row.iteration for row in run.history] == [0, 1, 2, 3]


def test_a_network_by_name_is_drawn_with_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "make_network", lambda kind, clients, seed: (kind, clients, seed))
    assert kinds.as_network("cycle", ("a", "b"), 7) == ("cycle", ("a", "b"), 7)


@pytest.mark.parametrize(("transport", "size"), [("float64", 8), ("float32", 4)])
def test_bytes_are_counted_as_the_transport_sends_them(transport: str, size: int) -> None:
    asked: Any = SimpleNamespace(method=mtcd.SVFL(transport=transport))
    assert Training.ledger(asked).float_bytes == size


# What is kept of a training


def observed(**given: Any) -> Observer:
    engine: Any = SimpleNamespace(ledger=Ledger(), seconds=None)
    problem: Any = SimpleNamespace()
    return Observer(problem, engine, Costs(), None, 1.0, **given)


def test_an_observer_uses_what_it_is_given() -> None:
    pace, watcher, keep = Epochs(3), Watcher(), lambda observer, last: None
    made = observed(pausing=True, pace=pace, keep=keep, watcher=watcher)
    assert (made.pausing, made.pace, made.keep, made.watcher) == (True, pace, keep, watcher)
    assert not observed().pausing


def test_a_row_has_the_score_and_the_epoch() -> None:
    made = observed(pace=Growing(4))
    score: Any = SimpleNamespace(
        objective=2.0, accuracy=0.5, test_accuracy=0.25, metrics={"train_auc": 0.75}
    )
    row = made._row(Progress(6, 1, None, 0.0), score)
    assert (row.iteration, row.syncs, row.objective, row.epoch) == (6, 1, 2.0, 1.5)
    assert (row.accuracy, row.test_accuracy, row.metrics) == (0.5, 0.25, {"train_auc": 0.75})
    # a metric that changes later does not change the history
    score.metrics["train_auc"] = 0.0
    assert row.metrics == {"train_auc": 0.75}


def test_measurements_are_spaced_by_a_factor_or_by_epochs() -> None:
    assert Growing(7).epoch == 7
    assert [Growing().next(at, near=False) for at in (0, 10, 100, 1000)] == [1, 11, 101, 1010]
    assert [Growing(None, 1.5).next(at, near=False) for at in (0, 10, 100)] == [1, 15, 150]
    assert Growing(None, 1.5).next(100, near=True) == 105
    assert [Epochs(5).next(at, near=False) for at in (0, 4, 5)] == [5, 5, 10]
    assert [Epochs(5, every=2).next(at, near=False) for at in (0, 9, 10)] == [10, 10, 20]
    assert Epochs(5, every=2).epoch == 5


def test_a_history_reads_back_with_its_metrics(tmp_path: Path) -> None:
    row = Measurement(
        3, 3, 1, 0.1, None, 2.0, NOTHING, NOTHING, 0.5, epoch=1.5, metrics={"train_auc": 0.75}
    )
    history = History([row, replace(row, gap=0.25, metrics={})])
    history.write(tmp_path / "history.csv")
    assert list(History.read(tmp_path / "history.csv")) == list(history)


def test_rules_go_on_from_what_they_are_given() -> None:
    assert Kept({"windows": 1}).slots == {"windows": 1}
    assert not Best("objective", value=1.0).improves(2.0)
    assert mtcd.Stop(iterations=0).iterations == 0
    assert mtcd.Stop(epochs=0).epochs == 0
    assert mtcd.Stop(plateau=0.5).plateau == Plateau(min_improvement=0.5)
    assert PlateauRule(Plateau(), 5, start=3.0)._first == Windows(0, 3.0)
    # most tokens carry no windows
    assert not WINDOWS.always


def test_labels_may_be_given_beside_the_samples() -> None:
    data = mtcd.synthetic("logistic", samples=30, features=4, clients=2)
    run = mtcd.train(data, mtcd.Glm("logistic"), "path", mtcd.STCD(), mtcd.Stop(iterations=2))
    X, y = np.hstack(list(data.blocks)), np.asarray(data.labels)
    other = y[::-1].copy()
    assert run.score(X, y) == run.score(data) == run.evaluate(X, y)["accuracy"]
    assert run.score(X, other) == np.mean(run.predict(X) == other)
    assert run.evaluate(data, other)["accuracy"] == run.score(X, other)
    assert run.outputs(data).labels is not None
