"""Modules, losses and numbers that nobody thought of at first: they work, or are refused in
words."""

import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import mtcd
from mtcd.core.errors import MtcdError
from split_problems import samples

DATA = samples(2, 20, classes=2)
METHOD = mtcd.MTCD(tokens=1, hops=2, local_updates=3, stepsize=0.1, batch=5)
spectral = nn.utils.parametrizations.spectral_norm


@pytest.fixture(autouse=True, scope="module")
def _on_one_core() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def model(first: Any = None, fusion: Any = None, **others: Any) -> mtcd.SplitModel:
    torch.manual_seed(0)
    clients = {"c0": first or nn.Linear(2, 3), "c1": nn.Linear(3, 3)}
    return mtcd.SplitModel(clients, fusion or nn.Linear(6, 2), **others)


def train(
    given: mtcd.SplitModel, epochs: int = 2, data: Any = DATA, method: Any = METHOD, **others: Any
) -> mtcd.Run:
    return mtcd.train(data, given, "complete", method, mtcd.Stop(epochs=epochs), **others)


def loss_of(run: mtcd.Run) -> float:
    outputs = torch.as_tensor(run.decision(DATA))
    return nn.functional.cross_entropy(outputs, torch.as_tensor(DATA.labels)).item()


class Instances(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lift, self.norm, self.out = (
            nn.Linear(2, 12),
            nn.InstanceNorm1d(3, momentum=0.2, track_running_stats=True),
            nn.Linear(12, 3),
        )

    def forward(self, x: Any) -> Any:
        return self.out(self.norm(5 * self.lift(x).reshape(-1, 3, 4)).flatten(1))


def test_running_statistics_of_instance_norm() -> None:
    run = train(model(Instances()))
    assert loss_of(run) == pytest.approx(run.objective, rel=1e-5)  # measured as it predicts
    norm = run.modules["c0"].norm
    assert norm.momentum == 0.2
    # it stands still
    once = train(model(Instances()), method=mtcd.SVFL(1, 1e-30, 20), epochs=1).modules["c0"].norm
    often = train(model(Instances()), method=mtcd.SVFL(9, 1e-30, 20), epochs=1).modules["c0"].norm
    # once per batch, not once per local update
    assert torch.allclose(once.running_var, often.running_var, rtol=1e-4)


def test_layers_that_find_their_sizes_themselves() -> None:
    run = train(model(nn.LazyLinear(3), nn.LazyLinear(2)))
    assert loss_of(run) == pytest.approx(run.objective, rel=1e-5)


class Volume(nn.Module):
    """Takes pictures, but has weights of five dimensions, which cannot have the channels last."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.out = nn.Conv3d(1, 2, (1, 3, 3)), nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.conv(x.unsqueeze(1)).flatten(1))


def test_weights_that_cannot_be_laid_out() -> None:
    pictures = np.random.default_rng(0).standard_normal((20, 1, 4, 4))
    data = mtcd.VerticalDataset({"c0": pictures, "c1": DATA.features["c1"]}, DATA.labels)
    assert train(model(Volume()), data=data).status == "epochs"


class Halves(nn.Linear):
    def forward(self, x: Any) -> Any:
        x /= 2
        return super().forward(x)


def no_gradient(outputs: Any, labels: Any) -> Any:
    return (outputs.argmax(dim=1) != labels).float().mean()


def old_weight_norm() -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.utils.weight_norm(nn.Linear(2, 3))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: model(Halves(2, 3)), ("'c0'", "in place")),
        (
            lambda: model(fusion=nn.Sequential(nn.ReLU(inplace=True), nn.Linear(6, 2))),
            ("fusion", "in place"),
        ),
        (lambda: model(loss=no_gradient), ("loss", "gradient")),
        (lambda: model(fusion=nn.Linear(6, 1)), ("2 classes", "make it give 2")),
        (lambda: model(old_weight_norm()), ("Linear", "copied")),
    ],
)
def test_refused(make: Any, words: tuple[str, ...]) -> None:
    # the first samples are of one class
    sorted_labels = mtcd.VerticalDataset(DATA.features, np.sort(DATA.labels))
    with pytest.raises(MtcdError) as told:
        train(make(), data=sorted_labels)
    assert all(word in str(told.value) for word in words)


class Logs(nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.log(-x.abs() - 1)


def test_a_loss_that_is_no_number_from_the_start() -> None:
    with pytest.raises(MtcdError, match="before training"):
        train(model(nn.Sequential(nn.Linear(2, 3), Logs())))


def test_what_the_fusion_module_of_a_client_keeps_goes_on(tmp_path: Path) -> None:
    make = partial(model, fusion=spectral(nn.Linear(6, 2)))
    train(make(), 1, checkpoint=tmp_path)
    again = train(make(), 3, checkpoint=tmp_path, resume=True)
    assert again.objective == train(make(), 3).objective


def test_other_costs_are_another_training(tmp_path: Path) -> None:
    train(model(), 1, checkpoint=tmp_path)
    with pytest.raises(MtcdError, match="costs was 'ratio 100"):
        train(model(), 2, costs=mtcd.Costs(ratio=5), checkpoint=tmp_path, resume=True)


def test_settings_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    two = np.int64(2)
    method = mtcd.MTCD(
        tokens=1, hops=two, local_updates=two, stepsize=np.float32(0.1), batch=np.int64(5)
    )
    run = train(model(), method=method, seed=two, checkpoint=tmp_path / "kept")
    run.save(tmp_path / "saved")
    read = mtcd.Run.load(tmp_path / "saved", model())
    assert read.summary() == run.summary()


def test_new_samples_that_do_not_fit() -> None:
    run, good = train(model()), {name: x[:6] for name, x in DATA.features.items()}
    for wrong, word in (
        (np.ones((6, 5)), r"\(2,\)"),
        (np.full((6, 2), "a"), "type"),
        (np.ones((3, 2)), "different numbers"),
    ):
        with pytest.raises(MtcdError, match=word):
            run.predict({**good, "c0": wrong})
    told = run.decision({"somebody else": np.ones((2, 2)), **good})  # of whom nobody asks anything
    assert np.array_equal(told, run.decision({name: x.tolist() for name, x in good.items()}))
    assert len(told) == 6
