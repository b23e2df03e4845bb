"""The plateau rule ends a training where the values at the ends of its windows say, however often
it is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import mtcd
from mtcd.config.build import build, resolved_yaml
from mtcd.config.read import check_config
from mtcd.core.errors import ConfigError
from mtcd.training import plateau as plateau_module
from mtcd.training.pace import Growing
from problems import MODELS, make_data

LOGISTIC = MODELS[5]
DATA = make_data(LOGISTIC, 60, [2, 3, 1, 2], seed=3)


def train(plateau: Any, method: Any, **stop: Any) -> mtcd.Run:
    return mtcd.train(DATA, LOGISTIC, "cycle", method, mtcd.Stop(plateau=plateau, **stop), seed=2)


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "epoch"),
    [
        (mtcd.MTCD(2, 3, 2), 3),
        (mtcd.SVFL(2), 1),
        (mtcd.STCD(2), 1),
        (mtcd.SVFL(1, 0.002, batch=6), 10),
    ],
)
@pytest.mark.parametrize("patience", [4, 9])
def test_it_ends_at_the_first_window_without_an_improvement(
    method: Any, epoch: int, patience: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # at every moment
    monkeypatch.setattr(Growing, "next", lambda self, iteration, near: iteration + 1)
    long = mtcd.train(DATA, LOGISTIC, "cycle", method, mtcd.Stop(iterations=3000), seed=2)
    dense = {row.iteration: row.objective for row in long.history}
    window, best, at = patience * epoch, dense[0], 0
    while True:
        at += window
        if best - dense[at] <= 1e-3 * best:
            break
        best = dense[at]
    monkeypatch.undo()
    run = train({"patience": patience, "min_improvement": 1e-3}, method)
    assert (run.status, run.final.iteration) == ("plateau", at)
    assert "plateau" in run.message


def test_short_form_metrics_and_mistakes() -> None:
    assert (
        train(1e-3, mtcd.SVFL(2)).final.iteration
        == train({"min_improvement": 1e-3}, mtcd.SVFL(2)).final.iteration
    )
    assert train({"on": "train_auc", "patience": 3}, mtcd.SVFL(2)).status == "plateau"
    assert train(1e-3, mtcd.SVFL(2), iterations=5).status == "iterations"
    for given, words in (
        ({"patience": 0}, r"stop\.plateau\.patience"),
        ("often", r"stop\.plateau"),
        ({"patienc": 3}, r"stop\.plateau has no key 'patienc'; did you mean 'patience'"),
        ({"on": "test_auc"}, "no column 'test_auc'"),
    ):
        with pytest.raises(ConfigError, match=words):
            train(given, mtcd.SVFL(2))


def test_of_a_config() -> None:
    config = {
        "data": {"synthetic": "ridge", "samples": 30, "features": 8, "clients": 4},
        "method": {"kind": "svfl"},
    }
    for plateau in (1e-3, {"patience": 5}):
        setup = build(check_config({**config, "stop": {"plateau": plateau}}))
        assert setup.train().status == "plateau"
        assert build(check_config(yaml.safe_load(resolved_yaml(setup.config)))).stop == setup.stop


def test_the_last_measurement_has_the_metrics_of_the_model() -> None:
    data = mtcd.synthetic("logistic", samples=200, features=8, clients=4).holdout(0.25)
    run = mtcd.train(
        data, mtcd.Glm("logistic", l2=1.0), "cycle", mtcd.STCD(5), mtcd.Stop(plateau=1e-5)
    )
    assert run.status == "plateau"
    assert run.final.metrics["test_auc"] == run.evaluate(data.test, data.test.labels)["auc"]
    assert run.final.metrics["train_auc"] == run.evaluate(data, data.labels)["auc"]


def test_a_long_history_is_not_read_again_at_every_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[int] = []
    value_of = plateau_module.value_of
    counted = lambda row, column: read.append(row.iteration) or value_of(row, column)  # noqa: E731
    monkeypatch.setattr(plateau_module, "value_of", counted)
    run = train({"patience": 2, "min_improvement": 0.0}, mtcd.STCD(stepsize=1e-5), iterations=600)
    assert len(run.history) > 300
    assert len(read) <= 3 * len(run.history)


def test_a_resumed_training_ends_on_the_same_plateau(tmp_path: Path) -> None:
    rule, method = {"patience": 4, "min_improvement": 1e-3}, mtcd.SVFL(2)
    whole = train(rule, method)
    how = {"checkpoint": tmp_path, "seed": 2}
    half = mtcd.Stop(plateau=rule, iterations=whole.final.iteration // 2)
    assert mtcd.train(DATA, LOGISTIC, "cycle", method, half, **how).status == "iterations"
    rest = mtcd.train(DATA, LOGISTIC, "cycle", method, mtcd.Stop(plateau=rule), **how, resume=True)
    assert (rest.status, rest.final.iteration) == ("plateau", whole.final.iteration)
