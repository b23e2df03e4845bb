"""Run folders of split networks read back, networks of somebody's own found, and pictures in the
layout they need."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import mtcd
from commands import run
from mtcd.core.errors import ConfigError
from mtcd.models.splitnet.makers import client_maker, importing

CONFIG = """
data: {synthetic: multinomial, samples: 60, test_samples: 20, features: 8, clients: 2, seed: 0}
model: {kind: split, client: CLIENT, client_settings: {width: 3}, fusion: linear, aggregation: sum}
method: {kind: svfl, local_updates: 2, batch: 20, stepsize: 0.05}
stop: {epochs: 2}
"""
NETS = """
from torch import nn

def make(shape, width):
    return nn.Sequential(nn.Linear(shape[0], WIDE), nn.ReLU(), nn.Linear(WIDE, width))
"""


def train(folder: Path, out: str) -> None:
    assert run("train", str(folder / "config.yaml"), "--out", out, "--quiet") == 0


@pytest.mark.parametrize("client", ["mlp", "nets:make"])
def test_a_run_of_the_command_line_predicts_again(client: str, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG.replace("CLIENT", client))
    (tmp_path / "nets.py").write_text(NETS.replace("WIDE", "5"))
    train(tmp_path, "out")
    monkeypatch.chdir("/")
    if client != "mlp":
        with pytest.raises(ConfigError, match=r"nets:make.*run_code=True"):
            mtcd.load_run(tmp_path / "out")
    back = mtcd.load_run(tmp_path / "out", run_code=client != "mlp")
    X = {
        name: np.random.default_rng(0).normal(size=(6, 4)).astype("f4")
        for name in ("client_0", "client_1")
    }
    inputs = {name: torch.as_tensor(x) for name, x in X.items()}
    by_hand = back.fusion(sum(net(inputs[name]) for name, net in back.modules.items()))
    assert back.predict(X).tolist() == by_hand.argmax(dim=1).tolist()
    assert back.final.test_accuracy is not None


def test_of_a_linear_model_too_and_other_folders_are_refused(tmp_path) -> None:
    linear = (
        "data: {synthetic: ridge, samples: 20, features: 4, clients: 2}\n"
        "stop: {iterations: 5}\nmethod: {kind: svfl}"
    )
    (tmp_path / "config.yaml").write_text(linear)
    train(tmp_path, str(tmp_path / "out"))
    assert mtcd.load_run(tmp_path / "out").coefficients.shape == (4,)
    with pytest.raises(mtcd.MtcdError, match="not a complete run folder"):
        mtcd.load_run(tmp_path / "nothing")
    (tmp_path / "config.yaml").write_text(CONFIG.replace("CLIENT", "mlp"))
    with pytest.raises(mtcd.MtcdError, match="not a complete run folder"):
        mtcd.load_run(tmp_path)


def test_networks_of_the_same_name_in_other_folders_are_others(tmp_path) -> None:
    for name, wide in (("one", "5"), ("two", "7")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "samename.py").write_text(NETS.replace("WIDE", wide))
    for name, wide in (("one", 5), ("two", 7), ("one", 5)):
        assert (
            client_maker("samename:make", importing(tmp_path / name))((4,), 2)[0].out_features
            == wide
        )
    with pytest.raises(ConfigError, match="cannot be imported"):
        client_maker("nowhere:make", importing(tmp_path))


class Viewing(nn.Module):
    """It views what a convolution gives, which works in the usual layout only."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.last = nn.Conv2d(3, 4, 3, padding=1), nn.Linear(4 * 36, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.convolution(x).view(len(x), -1))


class Seeing(Viewing):
    """The same for any layout; it tells which it saw."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.channels_last = x.is_contiguous(memory_format=torch.channels_last)
        return self.last(self.convolution(x).flatten(1))


def test_pictures_are_laid_out_as_the_module_can_take_them() -> None:
    draw = np.random.default_rng(0)
    data = mtcd.VerticalDataset(
        {c: draw.normal(size=(20, 3, 6, 6)) for c in "ab"}, np.arange(20) % 2
    )
    torch.manual_seed(0)
    given, weights = {c: Viewing() for c in "ab"}, nn.Linear(4, 2)
    either = {c: Seeing() for c in "ab"}
    for c in "ab":
        either[c].load_state_dict(given[c].state_dict())
    method, stop = mtcd.SVFL(2, 0.1, 10), mtcd.Stop(epochs=2)
    one, other = (
        mtcd.train(data, mtcd.SplitModel(nets, weights), method=method, stop=stop)
        for nets in (given, either)
    )
    assert other.modules["a"].channels_last
    for name, value in one.modules["a"].state_dict().items():
        assert value.is_contiguous()
        torch.testing.assert_close(
            other.modules["a"].state_dict()[name], value, rtol=1e-4, atol=1e-6
        )
