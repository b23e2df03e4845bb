"""What each kind of model takes where nothing is said, and which arguments it refuses."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

import mtcd
from mtcd.config.model_schema import ModelSection
from mtcd.config.read import check_config
from mtcd.core import features
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.data.dataset import VerticalDataset
from mtcd.models.glm.config import linear_parts
from mtcd.models.glm.kind import LINEAR
from mtcd.models.glm.party.own_block import FORMAT, check_format
from mtcd.models.glm.party.problem import glm_of
from mtcd.models.splitnet.configured import model_of_run
from mtcd.models.splitnet.kind import SPLIT
from mtcd.models.splitnet.party.networks import section_of
from mtcd.models.splitnet.recipe import SplitRecipe
from mtcd.models.trees.kind import ADDITIVE
from mtcd.models.trees.party.block import additive_of
from mtcd.training.kinds import Request, kind_of

DATA = mtcd.synthetic("logistic", 30, 4, 2)
PICTURES = VerticalDataset(
    {"left": np.zeros((6, 2, 2)), "right": np.zeros((6, 2, 2))}, np.arange(6) % 2
)
TOUR = mtcd.STCD(walk="tour")


@pytest.mark.parametrize(
    ("kind", "method", "stop"),
    [
        (LINEAR, TOUR, mtcd.Stop(iterations=10_000)),
        (LINEAR, mtcd.MTCD(batch=5), mtcd.Stop(iterations=10_000)),
        (ADDITIVE, TOUR, mtcd.Stop(iterations=100)),
        (SPLIT, mtcd.MTCD(), mtcd.Stop(iterations=1000)),
        (SPLIT, mtcd.MTCD(batch=5), mtcd.Stop(epochs=10)),
    ],
    ids=["linear", "linear, batches", "additive", "split", "split, batches"],
)
def test_where_no_stop_is_given(kind: Any, method: Any, stop: mtcd.Stop) -> None:
    assert kind.default_stop(method) == stop


def test_where_no_method_is_given_and_no_feature_has_a_better_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(features, "parts", lambda group: {})
    for l1 in (0.0, 0.1):
        assert LINEAR.default_method(mtcd.Glm("linear", l1=l1)) == TOUR
    assert ADDITIVE.default_method(mtcd.Trees()) == TOUR
    assert LINEAR.default_summing() == ADDITIVE.default_summing() == mtcd.MTCD(tokens=2)


@pytest.mark.parametrize(
    ("kind", "data", "given", "said"),
    [
        (LINEAR, PICTURES, {}, "A Glm is trained on VerticalData, a table"),
        (LINEAR, DATA, {"compute": mtcd.Compute()}, "compute is for split networks"),
        (ADDITIVE, PICTURES, {}, "Trees are trained on VerticalData, a table"),
        (ADDITIVE, DATA, {"compute": mtcd.Compute()}, "compute is not for trees"),
        (ADDITIVE, DATA, {"standardise": True}, "standardise is not for trees"),
        (ADDITIVE, DATA, {"start": {"a": [0.0]}}, "start is not for trees"),
        (SPLIT, PICTURES, {"standardise": True}, "standardise is for a Glm"),
        (SPLIT, PICTURES, {"start": {"a": [0.0]}}, "start is for a Glm: to go on with networks"),
    ],
)
def test_arguments_that_a_kind_does_not_have_are_refused(
    kind: Any, data: Any, given: dict[str, Any], said: str
) -> None:
    kind.check(Request(PICTURES if kind is SPLIT else DATA))
    with pytest.raises(ConfigError, match=said):
        kind.check(Request(data, **given))


def test_only_models_have_a_kind() -> None:
    assert kind_of(mtcd.Glm()) is LINEAR
    with pytest.raises(ConfigError, match="train needs a Glm"):
        kind_of(object())


SECTIONS: dict[str, dict[str, Any]] = {
    "linear": {"kind": "logistic"},
    "trees": {"kind": "trees", "loss": "logistic"},
    "mixed": {"kind": "mixed", "loss": "logistic", "parties": {"client_0": "trees"}},
    "split": {"kind": "split", "client": "mlp"},
}
MADE = {"synthetic": "logistic", "samples": 30, "features": 4, "clients": 2}


def config_of(kind: str, **more: Any) -> Any:
    return check_config({"data": MADE, "model": SECTIONS[kind], **more})


@pytest.mark.parametrize("kind", ["linear", "trees", "mixed"])
def test_the_positive_class_of_a_config_is_that_of_the_model(kind: str) -> None:
    section = ModelSection.model_validate(SECTIONS[kind])
    for positive in (None, "yes"):
        config: Any = SimpleNamespace(data=SimpleNamespace(positive_class=positive))
        assert section.build(config, DATA).positive == positive


def test_a_split_network_has_no_positive_class() -> None:
    section = ModelSection.model_validate(SECTIONS["split"])
    config: Any = SimpleNamespace(data=SimpleNamespace(positive_class="yes"))
    with pytest.raises(ConfigError, match="data.positive is for linear models of two classes"):
        section.build(config, DATA)


@pytest.mark.parametrize("kind", ["linear", "trees", "mixed"])
def test_a_config_of_what_is_no_network_has_no_device(kind: str) -> None:
    plain, other = config_of(kind), config_of(kind, compute={"device": "cpu"})
    plain.model.check(plain)
    with pytest.raises(ConfigError, match="compute is for split networks"):
        other.model.check(other)


@pytest.mark.parametrize("kind", ["trees", "mixed"])
def test_a_config_of_trees_does_not_standardise(kind: str) -> None:
    config = config_of(kind, data={**MADE, "standardise": True})
    with pytest.raises(ConfigError, match="data.standardise: trees need no scaling"):
        config.model.check(config)


@pytest.mark.parametrize(
    ("kind", "given", "batch", "stop"),
    [
        ("linear", {}, None, {}),
        ("trees", {}, None, {"iterations": 100}),
        ("trees", {"iterations": 7}, None, {"iterations": 7}),
        ("split", {}, None, {}),
        ("split", {}, 5, {"epochs": 10}),
        ("split", {"epochs": 3}, 5, {"epochs": 3}),
    ],
)
def test_where_a_config_says_nothing_of_the_stop(
    kind: str, given: dict[str, Any], batch: int | None, stop: dict[str, Any]
) -> None:
    config = config_of(kind, **({"stop": given} if given else {}))
    found = config.model.stop(config, mtcd.MTCD(batch=batch))
    assert found == type(found)(**stop)


@pytest.mark.parametrize(
    ("data", "model"), [(DATA, mtcd.Trees("logistic")), (PICTURES, mtcd.Glm("logistic"))]
)
def test_what_is_about_linear_models_refuses_others(data: Any, model: Any) -> None:
    linear: Any = SimpleNamespace(data=DATA, model=mtcd.Glm("logistic"))
    assert linear_parts(linear) == (DATA, linear.model)
    other: Any = SimpleNamespace(data=data, model=model)
    with pytest.raises(ConfigError, match="This is for linear models"):
        linear_parts(other)


def test_a_run_of_a_network_needs_the_config_of_one() -> None:
    about = {"clients": ["a"], "shapes": [[2]], "widths": [3], "classes": [0, 1]}
    model = model_of_run(Path("run"), config_of("split"), about)
    assert list(model.representations) == ["a"]
    with pytest.raises(MtcdError, match="run holds a split network, but its config.yaml is of an"):
        model_of_run(Path("run"), config_of("linear"), about)


@pytest.mark.parametrize(
    ("device", "asked", "used"),
    [("cpu", "auto", "auto"), ("cpu", "cpu", "cpu"), ("cuda:1", "auto", "cuda")],
)
def test_processes_use_a_gpu_where_this_one_does(device: str, asked: str, used: str) -> None:
    problem: Any = SimpleNamespace(
        device=torch.device(device), compute=SimpleNamespace(device=asked)
    )
    recipe = SplitRecipe(mtcd.MTCD(), mtcd.make_network("path", ["a", "b"]), 0, problem)
    assert recipe.device() == used


@pytest.mark.parametrize(
    ("read", "own", "other"),
    [
        (glm_of, "linear", "trees"),
        (additive_of, "trees", "linear"),
        (section_of, "split", "linear"),
    ],
)
def test_a_party_refuses_a_bundle_of_another_kind(read: Any, own: str, other: str) -> None:
    def config(kind: str) -> Any:
        section = ModelSection.model_validate(SECTIONS[kind])
        labels = SimpleNamespace(positive=None)
        facts = {"label_privacy": None, "compute": None, "is_server": True}
        return SimpleNamespace(model=section, labels=labels, **facts)

    assert read(config(own)) is not None
    with pytest.raises(ConfigError, match="model.kind: this federation trains a"):
        read(config(other))


def test_a_block_of_another_format_is_refused() -> None:
    check_format({"format": FORMAT})
    with pytest.raises(ValueError, match=f"but this version of mtcd reads {FORMAT}"):
        check_format({"format": FORMAT + 1})
