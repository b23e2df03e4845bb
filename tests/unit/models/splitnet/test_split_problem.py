"""Split networks on data: scores in chunks, and the parts that single processes and parties
hold."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.models.metrics.selection import find_metrics
from mtcd.models.splitnet import problem as problem_module
from mtcd.models.splitnet.aggregation import make_aggregation
from mtcd.models.splitnet.feed import Stored
from mtcd.models.splitnet.fusion import NetFusion
from mtcd.models.splitnet.graphs import GraphClient
from mtcd.models.splitnet.optimiser import plain_sgd
from mtcd.models.splitnet.own import Common, Own, OwnProblem
from mtcd.models.splitnet.problem import NetProblem, RemoteClient, find_device
from mtcd.models.splitnet.recipe import HostedNets, HostedPart
from mtcd.protocol.batches import Batches
from mtcd.training.compute import Compute

RNG = np.random.default_rng(1)
SIZES = {"ann": 1, "bob": 2, "eve": 3}


def features(samples: int) -> dict[str, Any]:
    return {
        name: RNG.standard_normal((samples, size)).astype(np.float32)
        for name, size in SIZES.items()
    }


def data(labels: Any, test: Any = None, **others: Any) -> mtcd.VerticalDataset:
    held = None if test is None else mtcd.VerticalDataset(features(len(test)), test)
    return mtcd.VerticalDataset(features(len(labels)), labels, test=held, **others)


def problem(
    given: mtcd.VerticalDataset, outputs: int = 2, dropping: str = "", **compute: Any
) -> NetProblem:
    torch.manual_seed(0)
    nets = {name: nn.Linear(size, 2) for name, size in SIZES.items()}
    nets |= {
        name: nn.Sequential(net, nn.Dropout(0.5)) for name, net in nets.items() if name == dropping
    }
    fusion = nn.Sequential(
        nn.Linear(6, outputs), *([nn.Dropout(0.5)] if dropping == "fusion" else [])
    )
    return mtcd.SplitModel(nets, fusion).problem(given, Compute("cpu", **compute), 3)


def outputs_of(one: NetProblem, given: Any) -> Any:
    with torch.no_grad():
        h = [
            net.module(torch.as_tensor(given[name]))
            for name, net in zip(SIZES, one.nets, strict=True)
        ]
        return one.fusion.module(torch.cat(h, dim=1))


# --- scores --------------------------------------------------------------------------------------


def weights_of(one: NetProblem) -> list[Any]:
    return [part.weights() for part in (*one.nets, one.fusion)]


def test_scores_are_means_over_all_samples_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(problem_module, "CHUNK", 3)
    labels, held = (
        np.array(["no", "yes", "no", "no", "yes", "yes", "no"]),
        np.array(["yes", "no", "yes", "no"]),
    )
    given = data(labels, held)
    one = problem(given)
    one.chosen = find_metrics(["log_loss"], 2, True)
    score = one.score(weights_of(one))
    assert problem(given).score(weights_of(one))[:3] == score[:3]
    for known, part, accuracy in (
        (labels, given, score.accuracy),
        (held, given.test, score.test_accuracy),
    ):
        told = outputs_of(one, part.features)
        y = torch.as_tensor((known == "yes").astype(int))
        assert accuracy == pytest.approx(float((told.argmax(dim=1) == y).double().mean()))
        loss = functional.cross_entropy(told, y).item()
        name = "train_log_loss" if part is given else "test_log_loss"
        assert score.metrics[name] == pytest.approx(loss, rel=1e-5)
        if part is given:
            assert score.objective == pytest.approx(loss, rel=1e-5)


def test_values_have_no_accuracy_and_test_samples_count_for_metrics_alone() -> None:
    given = data(np.linspace(0.0, 0.9, 5), np.array([0.5, 0.3]))
    one = problem(given, 1)
    error = functional.mse_loss(
        outputs_of(one, given.features)[:, 0], torch.linspace(0.0, 0.9, 5)
    ).item()
    plain = one.score(weights_of(one))
    assert plain == (pytest.approx(error, rel=1e-5), None, None, {})
    one.chosen = find_metrics(["rmse"], 0, False)
    measured = one.score(weights_of(one))
    assert measured[:3] == (pytest.approx(error, rel=1e-5), None, None)
    assert measured.metrics["train_rmse"] == pytest.approx(error**0.5, rel=1e-5)
    assert measured.metrics.keys() == {"train_rmse", "test_rmse"}
    untested = problem(data(np.array([0, 1, 1])))
    assert untested.score(weights_of(untested)).test_accuracy is None


def test_weights_of_others_are_held() -> None:
    given = data(np.array([0, 1, 1]))
    one, other = problem(given), problem(given)
    for value in other.nets[1].parameters:
        value.data.add_(1.0)
    one.hold(weights_of(other))
    assert torch.equal(one.nets[1].parameters[0], other.nets[1].parameters[0])


# --- parties -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dropping", ["", "bob", "eve", "fusion"])
def test_whether_any_module_draws_is_found(dropping: str) -> None:
    one = problem(data(np.array([0, 1, 1])), dropping=dropping)
    assert one.around.draws == bool(dropping)
    assert (one.outputs, one.samples, one.clients) == (6, 3, tuple(SIZES))
    assert not one.graphs
    assert not one.fusion_keeps_statistics


def test_a_stage_has_all_clients_with_their_own_features() -> None:
    turned = data(np.array([0, 1, 1]), transforms={"bob": lambda x, generator: x + 1})
    one = problem(turned)
    stage = one.stage(Batches(3, 2, 0), 2)
    rows = Batches(3, 2, 0).rows(0)
    assert [client.k for client in stage.clients] == [0, 1, 2]
    for name, client in zip(SIZES, stage.clients, strict=True):
        assert not isinstance(client, GraphClient)
        np.testing.assert_allclose(
            client.features.batch(0), turned.features[name][rows] + (name == "bob")
        )
    assert stage.empty().tolist() == [[0.0] * 6] * 3
    assert not stage.sums
    assert stage.epoch_loss() is None
    assert type(stage.fusion) is NetFusion
    with pytest.raises(ConfigError, match="set method.batch"):
        one.stage(Batches(3, None, 0), 2)
    for unavailable in (
        lambda: one.read_off(stage.empty(), 0.0),
        lambda: one.metrics(stage.empty(), list),
    ):
        with pytest.raises(NotImplementedError):
            unavailable()


def test_modules_are_tried_with_batches_of_one_sample_only_where_there_are_such() -> None:
    nets = {
        name: nn.Sequential(nn.Linear(size, 2), nn.BatchNorm1d(2)) for name, size in SIZES.items()
    }
    given = data(np.array([0, 1, 1]))
    one = mtcd.SplitModel(nets, nn.Linear(6, 2)).problem(given, Compute("cpu"), 0)
    one.stage(Batches(3, 2, 0), 1)
    with pytest.raises(ConfigError, match="'ann' cannot be trained on a batch of 1"):
        one.stage(Batches(3, 1, 0), 1)


def test_a_device_is_there_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert (find_device("auto").type, find_device("cpu").type) == ("cpu", "cpu")
    with pytest.raises(ConfigError, match="'cuda', but PyTorch finds no such GPU"):
        find_device("cuda")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for count, found, missing in (
        (1, ["auto", "cuda", "cuda:0"], "cuda:1"),
        (2, ["cuda", "cuda:1"], "cuda:2"),
    ):
        monkeypatch.setattr(torch.cuda, "device_count", lambda count=count: count)
        assert {find_device(name).type for name in found} == {"cuda"}
        with pytest.raises(ConfigError, match=f"'{missing}', but"):
            find_device(missing)
    assert find_device("cpu").type == "cpu"
    with pytest.raises(ConfigError, match="compute.device: "):
        find_device("cuda:x")


def test_recorded_steps_need_a_gpu() -> None:
    with pytest.raises(ConfigError, match="compute.graphs: true needs a GPU"):
        problem(data(np.array([0, 1, 1])), graphs=True)
    for graphs in (False, "auto"):
        assert problem(data(np.array([0, 1, 1])), graphs=graphs).notes == ()


def test_a_process_holds_the_networks_and_samples_of_its_own_clients() -> None:
    still = {"ann": lambda x, generator: x, "eve": lambda x, generator: x}
    whole = problem(
        data(np.array([0, 1, 1, 0]), transforms=still), precision="mixed", dropping="bob"
    )
    part = HostedPart.of(whole, [2, 1])
    assert part.modules.keys() == part.features.keys() == {1, 2}
    assert part.transforms.keys() == {"eve"}
    assert part.compute.device == "cpu"
    hosted = HostedNets(part)
    assert (hosted.numbers, hosted.samples, hosted.clients) == ([1, 2], 4, tuple(SIZES))
    assert (hosted.nets[0], hosted.sources[0]) == (None, None)
    assert (hosted.around.mixed, hosted.around.draws, hosted.around.seed) == (True, True, 3)
    stage = hosted.stage(Batches(4, 2, 0), 5)
    assert isinstance(stage.clients[0], RemoteClient)
    assert [client.k for client in stage.clients[1:]] == [1, 2]
    with pytest.raises(AssertionError, match="in another process"):
        stage.clients[0].represent(0)
    assert torch.equal(stage.clients[2].net.parameters[0], whole.nets[2].parameters[0])
    assert not HostedNets(HostedPart.of(problem(data(np.array([0, 1]))), [0])).around.mixed


def test_pictures_have_their_channels_last_in_other_processes_too() -> None:
    pictures = RNG.standard_normal((3, 2, 4, 4)).astype(np.float32)
    nets = {"ann": nn.Sequential(nn.Conv2d(2, 1, 4), nn.Flatten())}
    whole = mtcd.SplitModel(nets, nn.Linear(1, 2)).problem(
        mtcd.VerticalDataset({"ann": pictures}, np.array([0, 1, 1])), Compute("cpu"), 0
    )
    hosted = HostedNets(HostedPart.of(whole, [0]))
    for one in (whole, hosted):
        assert (
            one.nets[0]
            .laid_out(torch.as_tensor(pictures))
            .is_contiguous(memory_format=torch.channels_last)
        )


def common(fusion: Any = None, widths: Any = (2, 3)) -> Common:
    aggregation = make_aggregation("concat", ["ann", "bob"], widths)
    labels = torch.tensor([0, 1, 1])
    loss = functional.cross_entropy
    return Common(
        fusion or nn.Linear(5, 2), aggregation, loss, labels, (0, 1), plain_sgd, False, None, 0
    )


def own(module: Any = None) -> Own:
    return Own(1, "bob", module or nn.Linear(4, 3), Stored(torch.arange(12.0).reshape(3, 4)))


def test_a_party_holds_its_own_network_and_a_copy_of_the_head() -> None:
    client, server = OwnProblem(common(), own()), OwnProblem(common())
    assert (client.size, server.size) == (4 * 3 + 3, 5 * 2 + 2)
    assert (client.samples, client.outputs, server.net) == (3, 5, None)
    stage = client.stage(Batches(3, 2, 0), 1)
    assert isinstance(stage.clients[0], RemoteClient)
    assert (stage.clients[1].k, stage.clients[1].fusion is client.head is not client.fusion) == (
        1,
        True,
    )
    np.testing.assert_allclose(
        stage.clients[1].features.batch(0), np.arange(12.0).reshape(3, 4)[Batches(3, 2, 0).rows(0)]
    )
    assert all(isinstance(one, RemoteClient) for one in server.stage(Batches(3, 2, 0), 1).clients)
    assert server.head is server.fusion
    with pytest.raises(
        ConfigError, match="'bob' gives 3 numbers per sample, but the parties have agreed on 2"
    ):
        OwnProblem(common(nn.Linear(4, 2), (2, 2)), own())


def test_a_party_knows_whether_its_parts_are_finite_draw_and_keep_statistics() -> None:
    for part in ("net", "head"):
        client = OwnProblem(common(), own())
        assert client.is_finite
        getattr(client, part).parameters[0].data[0, 0] = float("nan")
        assert not client.is_finite
    server = OwnProblem(common())
    assert server.is_finite
    server.head.parameters[0].data[0, 0] = float("inf")
    assert not server.is_finite
    dropping = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5))
    shaky = nn.Sequential(nn.Dropout(0.5), nn.Linear(5, 2))
    for fusion, module, draws in ((None, None, False), (None, dropping, True), (shaky, None, True)):
        assert OwnProblem(common(fusion), own(module)).around.draws == draws
    assert OwnProblem(common(shaky)).around.draws
    normed = nn.Sequential(nn.Linear(5, 2), nn.BatchNorm1d(2))
    assert [OwnProblem(common(fusion)).fusion_keeps_statistics for fusion in (None, normed)] == [
        False,
        True,
    ]
    with pytest.raises(ConfigError, match="fusion module cannot be trained on a batch of 1"):
        OwnProblem(common(normed)).stage(Batches(3, 1, 0), 1)
    OwnProblem(common(normed)).stage(Batches(3, 2, 0), 1)
