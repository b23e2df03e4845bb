"""Trained models of all kinds: their descriptions in run.json, and the parts that they offer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import mtcd
from boosting import SETTINGS
from boosting import trained as trees
from mtcd.core.errors import MtcdError, NoSuchPartError
from mtcd.models.trained import outline, read_trained
from split_problems import CPU, model, samples

LABELS = np.where(np.arange(24) % 3, "no", "yes")
OWNED = {"a": [0, 1], "b": [2, 3, 4]}
TABLE = mtcd.split(np.random.default_rng(0).standard_normal((24, 5)), LABELS, OWNED)
STOP = mtcd.Stop(iterations=2)


def split_run() -> mtcd.Run:
    data = samples(clients=3, classes=2)
    method = mtcd.MTCD(tokens=1, hops=2, stepsize=0.1)
    return mtcd.train(data, model(data), "path", method, STOP, compute=CPU)


RUNS: dict[str, Any] = {
    "model": lambda: mtcd.train(TABLE, mtcd.Glm("logistic"), "path", mtcd.STCD(), STOP),
    "additive": lambda: trees(TABLE, mtcd.Trees("logistic", **SETTINGS), 2),
    "split": split_run,
}


@pytest.mark.parametrize("entry", RUNS)
def test_the_description_of_a_model_is_what_json_gives_back(entry: str, tmp_path: Path) -> None:
    """So that a model is read from the description of this process as from that of a file."""
    trained = RUNS[entry]().trained()
    about = trained.write(tmp_path)
    assert about == json.loads(json.dumps(about))
    known = outline({entry: about})
    assert known.clients == trained.clients
    sizes = {"split": (2, 3, 2)}.get(entry, (2, 3))
    assert known.features == sizes
    assert known.families == trained.families


def test_a_part_that_a_kind_does_not_have_is_refused_and_what_there_is_is_named() -> None:
    linear, additive = RUNS["model"]().trained(), RUNS["additive"]().trained()
    assert linear.part("coefficients").shape == (5,)
    assert set(additive.part("parts")) == {"a", "b"}
    with pytest.raises(NoSuchPartError, match="without coefficients: look at run.parts"):
        additive.part("coefficients")
    with pytest.raises(NoSuchPartError, match="without clients"):
        additive.part("clients")  # an attribute, but no part


def test_a_folder_without_a_model_that_can_be_read_is_refused_unless_the_run_diverged(
    tmp_path: Path,
) -> None:
    assert read_trained(tmp_path, {"status": "diverged"}, None) is None
    with pytest.raises(MtcdError, match="a model of a kind that this installation"):
        read_trained(tmp_path, {"status": "converged"}, None)
