"""Modules that are made by name, and what is tried of them before a training."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.models.splitnet.feed import Stored
from mtcd.models.splitnet.labels import squared
from mtcd.models.splitnet.makers import (
    client_maker,
    fusion_maker,
    importing,
    make,
    make_client,
    make_fusion,
)
from mtcd.models.splitnet.nets import linear, mlp
from mtcd.models.splitnet.trial import representation_width, trained_on, try_fusion
from mtcd.training.compute import Compute


def taking(width: int, clients: int, hidden: int = 3, depth: int = 1) -> nn.Module:
    return nn.Linear(width, clients + 10 * hidden + 100 * depth)


def test_a_maker_gets_the_facts_it_names_and_the_settings() -> None:
    facts = {"width": 2, "clients": 4, "client": "ann"}
    made = make(taking, "model.client", facts, {"depth": 2}, 0)
    assert (made.in_features, made.out_features) == (2, 234)
    with pytest.raises(
        ConfigError, match="model.client: there is no setting 'hiden'; did you mean 'hidden'"
    ):
        make(taking, "model.client", facts, {"hiden": 4, "dept": 2}, 0)
    with pytest.raises(ConfigError, match="no setting 'clint'; known: hidden, depth"):
        make(taking, "model.client", facts, {"clint": 4}, 0)
    every = make(
        lambda **given: nn.Linear(1, len(given)), "model.client", facts, {"any": 1, "other": 2}, 0
    )
    assert every.out_features == 2
    for broken, says in (
        (lambda: 1 / 0, r"cannot be made \(ZeroDivisionError: division by zero\)"),
        (lambda: "a net", "what was made is a str"),
        (lambda: linear(0, 1), "model.fusion: linear: each width must be 1 or more"),
    ):
        with pytest.raises(ConfigError, match=says):
            make(broken, "model.fusion", {}, {}, 0)


def test_modules_are_drawn_by_seed_and_client_alone() -> None:
    def drawn(index: int, client: str, clients: int, shape: tuple[int, ...]) -> nn.Module:
        assert (client, clients, shape) == ("ab"[index], 2, (3,))
        return nn.Linear(3, 2)

    before = torch.get_rng_state()
    made = [
        make_client(drawn, ["a", "b"], k, (3,), {}, seed).weight
        for k, seed in ((0, 5), (0, 5), (1, 5), (0, 6))
    ]
    heads = [make_fusion(linear, 4, 3, {}, seed)[0].weight for seed in (5, 5, 6)]
    assert torch.equal(before, torch.get_rng_state())
    assert [torch.equal(made[0], other) for other in made] == [True, True, False, False]
    assert [torch.equal(heads[0], other) for other in heads] == [True, True, False]
    assert heads[0].shape == (3, 4)


def test_makers_are_built_in_or_loaded() -> None:
    def load(name: str, where: str) -> Any:
        return {"nets:own": taking, "nets:word": "word"}[name]

    assert client_maker("mlp", load) is mlp
    assert fusion_maker("linear", load) is linear
    assert client_maker("nets:own", load) is taking
    with pytest.raises(
        ConfigError, match="model.fusion: no network is called 'linea'; did you mean 'linear'"
    ):
        fusion_maker("linea", load)
    with pytest.raises(ConfigError, match="model.client: 'nets:word' is no function"):
        client_maker("nets:word", load)


def test_own_makers_are_found_in_the_folder_given_or_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, word in (("given", "one"), ("here", "two")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"nets_{word}.py").write_text(f"made = {word!r}")
    monkeypatch.chdir(tmp_path / "here")
    assert importing(tmp_path / "given")("nets_one:made", "model.client") == "one"
    assert importing(None)("nets_two:made", "model.client") == "two"
    with pytest.raises(ConfigError, match="model.client"):
        importing(None)("nets_three:made", "model.client")


def test_a_client_without_a_module_and_a_module_without_a_client_are_told_by_the_first() -> None:
    data = mtcd.VerticalDataset(
        {name: np.ones((3, 1)) for name in ("ann", "bob", "carla")}, np.array([0, 1, 0])
    )
    nets = {name: nn.Linear(1, 2) for name in ("ann", "bob", "carla", "anne", "zoe")}
    with pytest.raises(ConfigError, match="no representation for client 'bob'"):
        mtcd.SplitModel({"ann": nets["ann"]}, nn.Linear(2, 2)).problem(data, Compute("cpu"), 0)
    model = mtcd.SplitModel(nets, nn.Linear(6, 2))
    with pytest.raises(ConfigError, match="representation for 'anne', .*did you mean 'ann'"):
        model.problem(data, Compute("cpu"), 0)
    assert repr(model) == "SplitModel(5 client(s): Linear -> concat -> Linear)"
    mixed = mtcd.SplitModel(
        {"a": nn.Linear(1, 2), "b": nn.Sequential(nn.Linear(1, 2))}, nn.Identity(), "sum"
    )
    assert mixed.describe() == "Linear, Sequential -> sum -> Identity"
    with pytest.raises(ConfigError, match="'a' has no parameters to train"):
        mtcd.SplitModel({"a": nn.Linear(1, 2).requires_grad_(False)}, nn.Identity())


class Given(nn.Module):
    """Gives the same for everything."""

    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found

    def forward(self, x: Any) -> Any:
        assert not self.training
        return self.found


def test_a_representation_is_a_row_of_floats_for_each_sample() -> None:
    source = Stored(torch.ones(4, 3))
    fitting = Given(torch.ones(2, 5))
    assert representation_width("ann", fitting, source) == 5
    assert fitting.training
    for wrong in (
        torch.ones(2),
        torch.ones(2, 5, 1),
        torch.ones(3, 5),
        torch.ones(2, 5, dtype=torch.int64),
        "no",
    ):
        with pytest.raises(ConfigError, match="'ann' must give"):
            representation_width("ann", Given(wrong), source)
    with pytest.raises(ConfigError, match=r"'ann' cannot take its features of shape \(2, 3\)"):
        representation_width("ann", nn.Linear(2, 2), source)


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        (lambda outputs, labels: outputs[labels], "The loss cannot take outputs"),
        (lambda outputs, labels: outputs, "one number"),
        (lambda outputs, labels: 1.0, "one number"),
        (lambda outputs, labels: labels.sum(), "gradient"),
    ],
)
def test_a_loss_that_is_no_number_with_a_gradient_is_refused(loss: Any, says: str) -> None:
    labels = torch.tensor([0.5, 1.0, 2.0])
    with pytest.raises(ConfigError, match=says):
        try_fusion(nn.Linear(3, 1), 3, labels, None, loss)
    try_fusion(nn.Linear(3, 1), 3, labels, None, squared)


def test_a_module_that_changes_its_input_or_fails_in_training_is_refused() -> None:
    assert trained_on(nn.Dropout(0.5), torch.ones(2, 3), "It")
    assert not trained_on(nn.ReLU(), torch.ones(2, 3), "It")
    with pytest.raises(ConfigError, match="It changes its input in place"):
        trained_on(nn.ReLU(inplace=True), torch.ones(2, 3), "It")
    with pytest.raises(ConfigError, match="It cannot be trained on a batch of 1"):
        trained_on(nn.BatchNorm1d(3), torch.ones(1, 3), "It")
