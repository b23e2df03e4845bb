"""Weights of classes in federations: classes by name, and step sizes before any party knows the labels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zenoh")

import mtcd
from federations import written
from live import federate, in_process
from mtcd.errors import ConfigError
from mtcd.federation.file import read_federation

RNG = np.random.default_rng(3)
X = RNG.standard_normal((60, 6))
LABELS = np.where(X @ RNG.standard_normal(6) > 1.5, "yes", "no")
DATA = mtcd.split(X, LABELS, ["c0", "c1", "c2"])
NAMED = {"kind": "logistic", "l2": 1.0, "intercept": True, "class_weight": {"no": 0.5, "yes": 6.0}}
METHODS: dict[str, dict[str, Any]] = {
    "a given step": {"method": {"kind": "mtcd", "tokens": 2, "hops": 4, "stepsize": 0.003}},
    "dcpa": {"method": {"kind": "dcpa", "stepsize": "auto"}, "server": None},
}


@pytest.mark.parametrize("name", METHODS)
def test_the_parties_train_as_one_process_does(name: str, tmp_path: Path) -> None:
    told = federate(tmp_path, DATA, model=NAMED, stop={"iterations": 20}, **METHODS[name])
    one = in_process(DATA, told.kits["c0"])
    for client, block in told.blocks.items():
        np.testing.assert_allclose(block.theta, one.parameters[client], atol=1e-9)
    assert np.abs(one.coefficients).max() > 1e-3


@pytest.mark.parametrize("class_weight", ["balanced", NAMED["class_weight"]])
def test_the_step_is_at_most_that_of_one_process(class_weight: Any, tmp_path: Path) -> None:
    """The rare class has the largest weight, which the parties do not know when they report."""
    model, method = {**NAMED, "class_weight": class_weight}, {"kind": "stcd", "stepsize": "auto"}
    told = federate(tmp_path, DATA, model=model, method=method, stop={"iterations": 5}, server=None)
    step, limit = told.summaries["c0"].stepsize, in_process(DATA, told.kits["c0"]).stepsize
    assert limit is not None
    assert limit / 20 < step <= limit * (1 + 1e-12)


def test_weights_of_a_model_without_classes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="class_weight is for classes"):
        read_federation(written(tmp_path, model={"kind": "ridge", "class_weight": "balanced"}))
