"""What a private training must not depend on, and what is refused in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtcd
from commands import run
from mtcd.core.errors import ConfigError
from mtcd.privacy.sealed.dp.settings import PrivateTours

MODEL = mtcd.Glm("logistic", l2=1.0)


DP = mtcd.DP(epsilon=8.0, tours=6, insecure_seeded_noise=True)


CLEAR = PrivateTours(scheme="clear", dp=DP)


SEALED = mtcd.Privacy(mode="sealed", dp=DP)


def table(samples: int = 200, clients: int = 3, seed: int = 2) -> mtcd.VerticalData:
    return mtcd.synthetic(
        "logistic", samples=samples, features=5 * clients, clients=clients, seed=seed
    )


@pytest.mark.parametrize("carriers", [0, 1, 9, 10])
def test_no_row_decides_whether_there_is_a_training(carriers: int) -> None:
    """Sealed tours refuse columns with few rows apart; noise hides these rows, and a refusal would
    not."""
    data = table()
    rare = np.zeros_like(np.array(data.blocks[1]))
    rare[:carriers, 2] = 1.0
    data = replace(data, blocks=(data.blocks[0], rare, data.blocks[2]))
    run = mtcd.train(data, MODEL, "cycle", CLEAR)
    assert (run.status, run.final.iteration) == ("iterations", 6)


@pytest.mark.parametrize("size", [1.0, 1e9, 1e99])
def test_no_row_decides_how_a_training_ends(size: float) -> None:
    """One long row makes f, measured without noise, grow beyond any bound: that would be 'diverged'
    without dp."""
    data = table()
    long = np.array(data.blocks[0])
    long[5] *= -size  # against the label that it had
    run = mtcd.train(replace(data, blocks=(long, *data.blocks[1:])), MODEL, "cycle", CLEAR)
    assert run.status == "iterations"
    assert run.model is not None
    if size > 1:
        assert max(row.objective for row in run.history.rows) > 1e3 * run.history.rows[0].objective
    assert [
        note for note in run.notes if note not in mtcd.train(data, MODEL, "cycle", CLEAR).notes
    ] == []


class Chooses(mtcd.Callback):
    def chosen(self) -> Any:
        return None


@pytest.mark.parametrize(
    "callback", [mtcd.EarlyStopping(), mtcd.KeepBest(), Chooses()], ids=lambda one: str(type(one))
)
def test_no_measurement_decides_about_a_training(callback: mtcd.Callback) -> None:
    with pytest.raises(ConfigError, match="by measurements, which have no noise"):
        mtcd.train(table(), MODEL, "cycle", CLEAR, callbacks=[callback])
    mtcd.train(table(), MODEL, "cycle", CLEAR, callbacks=[mtcd.Callback()])


@pytest.mark.parametrize(
    ("method", "model", "words"),
    [
        (mtcd.STCD(walk="tour"), MODEL, "gives the key to the label holder"),
        (mtcd.SVFL(), MODEL, "svfl cannot train with sealed tokens"),
        (mtcd.DCPA(), MODEL, "dcpa cannot train with sealed tokens"),
        (mtcd.MTCD(walk="tour", depth=5), MODEL, "leave it out"),
        (mtcd.MTCD(walk="tour", stepsize=0.1), MODEL, "leave method.stepsize out"),
        (mtcd.MTCD(walk="tour"), mtcd.Glm("ridge"), "privacy.dp is for model.kind: logistic"),
        (mtcd.MTCD(walk="tour"), mtcd.Glm("huber"), "a loss of the form"),
        (mtcd.MTCD(walk="tour"), mtcd.Glm("logistic", l1=1.0), "model.l1"),
        (mtcd.MTCD(walk="tour"), mtcd.Trees("logistic"), "sealed tours hide the derivatives"),
    ],
    ids=str,
)
def test_methods_and_models_for_which_it_means_nothing(method: Any, model: Any, words: str) -> None:
    data = (
        table()
        if "ridge" not in str(model)
        else mtcd.synthetic("ridge", samples=90, features=9, clients=3)
    )
    with pytest.raises(ConfigError, match=words):
        mtcd.train(data, model, "cycle", method, mtcd.Stop(iterations=3), privacy=SEALED)


def test_refusals_that_say_what_to_do() -> None:
    with pytest.raises(
        ConfigError, match=r"no better than if each party trained alone.*Set privacy.mode: sealed"
    ):
        mtcd.Privacy(dp=DP)
    with pytest.raises(ConfigError, match="privacy.mode: unknown mode 'closed'"):
        mtcd.Privacy(mode="closed")
    with pytest.raises(ConfigError, match="privacy.aggregation: unknown aggregation 'triple'"):
        mtcd.Privacy(aggregation="triple")
    with pytest.raises(ConfigError, match="must be mtcd.DP"):
        mtcd.Privacy(mode="sealed", dp={"epsilon": 3})  # type: ignore[arg-type]
    for stop in (mtcd.Stop(gap=1e-3), mtcd.Stop(plateau=0.01)):
        with pytest.raises(ConfigError, match="must not depend on the data"):
            mtcd.train(table(), MODEL, "cycle", CLEAR, stop)
    named = mtcd.Privacy(mode="sealed", dp=replace(DP, parties={"clinet_1": 1.0}))
    with pytest.raises(ConfigError, match=r"no party is called 'clinet_1'.*client_1"):
        mtcd.train(table(), MODEL, "cycle", mtcd.MTCD(walk="tour"), privacy=named)
    with pytest.raises(ConfigError, match="leaves no room for the gradients"):
        mtcd.train(table(), MODEL, "cycle", replace(CLEAR, dp=mtcd.DP(epsilon=1e-6, delta=1e-12)))


@pytest.mark.parametrize("command", ["inspect", "train"])
def test_split_networks_are_refused_before_anything_else(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "split.yaml"
    file.write_text(
        "data: {synthetic: logistic, samples: 60, features: 6, clients: 3}\nmodel: {kind: split, "
        "client: mlp}\n"
        "method: {kind: mtcd, batch: 20, stepsize: 0.1}\nprivacy: {mode: sealed, dp: {epsilon: "
        "3}}\n"
    )
    assert run(command, str(file)) != 0
    assert (
        "privacy.dp, which needs privacy.mode: sealed, is for ridge and logistic"
        in capsys.readouterr().err
    )
