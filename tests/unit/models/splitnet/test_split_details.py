"""Single decisions of split networks: losses, labels, names of modules and optimisers, and what
files may hold."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import mtcd
from mtcd.core.errors import ConfigError, DataError, MtcdError, NetworkError
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.models.splitnet.checkpoint import Checkpoint
from mtcd.models.splitnet.feed import Stored
from mtcd.models.splitnet.labels import check_outputs, decide, encode, find_loss, squared
from mtcd.models.splitnet.makers import (
    client_maker,
    fusion_maker,
    importing,
    make,
    make_client,
    make_fusion,
)
from mtcd.models.splitnet.nets import (
    linear,
    mlp,
)
from mtcd.models.splitnet.optimiser import named_optimiser
from mtcd.models.splitnet.outputs import class_probabilities, split_outputs
from mtcd.models.splitnet.setup import fusing
from mtcd.models.splitnet.trial import representation_width, trained_on, try_fusion
from mtcd.models.trees.families.margin_net import MarginNet
from mtcd.network.topology import make_network
from mtcd.protocol.codec.record_tensors import DTYPES, tensor_bytes, tensor_of
from mtcd.training.compute import Compute


@pytest.mark.parametrize(
    ("kind", "meant"),
    [
        ("adam", "'Adam'"),
        ("sgd", "'SGD'"),
        ("Adan", "'Adam'"),
        ("Optimizer", ""),
        ("lr_scheduler", ""),
    ],
)
def test_an_optimiser_by_a_wrong_name(kind: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"torch.optim has no '{kind}'; .*{meant}"):
        named_optimiser(kind)


def test_a_checkpoint_holds_finite_facts_and_comes_back_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    with pytest.raises(ValueError, match="JSON"):
        Checkpoint({}, {"objective": float("nan")}).write(path)
    assert not path.exists()
    Checkpoint({"a": torch.arange(6.0).reshape(2, 3).T}, {"iteration": 3}).write(path)
    again = Checkpoint.read(path)
    assert again.facts == {"iteration": 3}
    assert again.tensors["a"].tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_outputs_as_probabilities_of_classes() -> None:
    two, three = np.array([0.3, -2.0]), np.array([[0.0, 1.0, -1.0], [5.0, 5.0, 2.0]])
    sigmoid = 1 / (1 + np.exp(-two))
    for one_output in (two, two[:, None]):
        np.testing.assert_allclose(
            class_probabilities(one_output), np.column_stack([1 - sigmoid, sigmoid])
        )
    np.testing.assert_allclose(
        class_probabilities(three), np.exp(three) / np.exp(three).sum(axis=1, keepdims=True)
    )
    np.testing.assert_allclose(class_probabilities(three[:, :2]).sum(axis=1), 1.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_of_any_layout_are_kept_whole(dtype: str) -> None:
    value = torch.arange(6).reshape(2, 3).T.to(getattr(torch, dtype))
    for one in (value, value[:0], value[0, 0]):
        kind, shape, data = tensor_bytes(one)
        again = tensor_of(kind, shape, data.tobytes())
        assert (kind, tuple(shape)) == (dtype, tuple(one.shape))
        assert again.dtype == one.dtype
        assert torch.equal(again, one)


def test_other_tensors_are_refused() -> None:
    with pytest.raises(MtcdError, match="complex64 cannot be kept"):
        tensor_bytes(torch.zeros(2, dtype=torch.complex64))
    with pytest.raises(MtcdError, match="of another version"):
        tensor_of("complex64", [2], bytes(16))


def test_theta_0_is_updated_at_one_client_or_at_each() -> None:
    cycle = make_network("cycle", [f"c{k}" for k in range(5)])
    assert fusing(STCD(), cycle) == {0}
    assert fusing(STCD(fusion_client="c3"), cycle) == {3}
    assert fusing(STCD(fusion_client=3), cycle) == {3}
    assert fusing(STCD(fusion_client="each"), cycle) == {0, 1, 2, 3, 4}
    assert fusing(STCD(fusion_client="each"), make_network("path", ["a", "each", "b"])) == {1}
    with pytest.raises(NetworkError, match="fusion_client: no client is called 'c9'"):
        fusing(STCD(fusion_client="c9"), cycle)


# --- losses and labels ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "labels", "expected"),
    [
        (None, np.array([0, 1]), (functional.cross_entropy, True)),
        (None, np.array(["a", "b"]), (functional.cross_entropy, True)),
        (None, np.arange(50.0), (functional.cross_entropy, True)),
        (None, np.arange(51.0), (squared, False)),
        (None, np.array([0.0, 1.0, 0.5]), (squared, False)),
        ("squared", np.array([0.0, 1.0]), (squared, False)),
        ("squared", np.array([0, 1]), (squared, False)),
        ("cross-entropy", np.array([0.0, 1.0]), (functional.cross_entropy, True)),
        (functional.mse_loss, np.array([0, 1]), (functional.mse_loss, True)),
        (functional.mse_loss, np.array([0.0, 1.0]), (functional.mse_loss, False)),
    ],
)
def test_whole_numbers_are_classes_unless_there_are_many(
    loss: Any, labels: Any, expected: Any
) -> None:
    assert find_loss(loss, labels) == expected


def test_labels_are_numbered_by_class_and_an_unknown_one_is_told() -> None:
    assert encode(np.array(["b", "a", "c"]), ("a", "b", "c")).tolist() == [1, 0, 2]
    values = encode(np.array([0.5, 2.0]), None)
    assert (values.tolist(), values.dtype) == ([0.5, 2.0], torch.float32)
    with pytest.raises(DataError, match="row 3 is 'd', which no training sample has: a, b"):
        encode(np.array(["b", "a", "d", "e"]), ("a", "b"))


def test_outputs_decide_on_a_class_or_are_values() -> None:
    one, two = torch.tensor([[-1.0], [0.0], [0.5]]), torch.tensor([[0.0, 1.0], [3.0, 2.0]])
    assert decide(one, ("a", "b")).tolist() == [0, 0, 1]
    assert decide(two, ("a", "b")).tolist() == [1, 0]
    for values in (one, one[:, 0]):
        assert decide(values, None).tolist() == [-1.0, 0.0, 0.5]
    assert torch.equal(decide(two, None), two)
    assert squared(one, torch.tensor([1.0, 0.0, 0.5])).item() == pytest.approx(4 / 3)


def test_outputs_with_known_labels() -> None:
    values = split_outputs(torch.tensor([[1.5], [-2.0]]), np.array([1, 3]), None)
    assert (values.labels.tolist(), values.predicted.tolist()) == ([1.0, 3.0], [1.5, -2.0])
    assert values.labels.dtype == values.decision.dtype == float
    classes = split_outputs(torch.tensor([[1.5, 2.0], [1.0, 0.0]]), np.array([1, 1]), ("a", "b"))
    assert (classes.labels.tolist(), classes.predicted.tolist()) == ([1, 1], [1, 0])


@pytest.mark.parametrize("shape", [(3,), (2,), (2, 3, 1), (2, 1)])
def test_outputs_of_other_shapes_than_one_row_for_each_sample_are_refused(
    shape: tuple[int, ...],
) -> None:
    with pytest.raises(ConfigError, match="fusion module"):
        check_outputs(torch.zeros(shape), 2, ("a", "b", "c"), functional.cross_entropy)
    check_outputs(torch.zeros(2, 3), 2, ("a", "b", "c"), functional.cross_entropy)
    with pytest.raises(ConfigError, match=r"outputs of shape \(4, 5\): make it give 3"):
        check_outputs(torch.zeros(2, 4, 5), 2, ("a", "b", "c"), functional.cross_entropy)
    check_outputs(torch.zeros(2), 2, None, squared)
    for wrong, got in ((torch.zeros(3), r"\(3,\)"), ("no", "str")):
        with pytest.raises(ConfigError, match=f"a row of outputs for every sample, but gave {got}"):
            check_outputs(wrong, 2, None, squared)


# --- modules by name -----------------------------------------------------------------------------


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


# --- margins and trials --------------------------------------------------------------------------


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_margins_of_a_small_network_and_their_derivative(outputs: int) -> None:
    net, rng = MarginNet(2, [4, 3], outputs), np.random.default_rng(0)
    assert net.size == 2 * 4 + 4 + 4 * 3 + 3 + 3 * outputs + outputs
    before = torch.get_rng_state()
    theta, X = net.initial(7), rng.standard_normal((5, 2))
    assert torch.equal(before, torch.get_rng_state())
    last = 3 * outputs + outputs
    assert (theta[:-last] != 0).all()
    assert (theta[-last:] == 0).all()
    assert (net.initial(7) == theta).all()
    assert (net.initial(8) != theta)[:-last].all()
    shape = (5,) if outputs == 1 else (5, outputs)
    assert (net.outputs(theta, X) == np.zeros(shape)).all()
    theta, slope = rng.standard_normal(net.size), rng.standard_normal(shape)
    W, b, V, c, U, d = np.split(theta, np.cumsum([8, 4, 12, 3, 3 * outputs]))
    inner = np.maximum(np.maximum(X @ W.reshape(4, 2).T + b, 0) @ V.reshape(3, 4).T + c, 0)
    by_hand = inner @ U.reshape(outputs, 3).T + d
    margins, back = net.pullback(theta, X)
    np.testing.assert_allclose(margins, by_hand.reshape(shape))
    steps = 1e-6 * np.eye(net.size)
    numeric = [
        ((net.outputs(theta + d, X) - net.outputs(theta - d, X)) * slope).sum() / 2e-6
        for d in steps
    ]
    np.testing.assert_allclose(back(slope), numeric, atol=1e-6)


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
