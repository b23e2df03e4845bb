"""On a GPU: the recorded path does what the plain one does, and tokens at the same time what they
do one by one."""

import functools

import numpy as np
import pytest
import torch
from torch import nn

import mtcd
from mtcd.models.splitnet.graphs import GraphClient
from mtcd.models.splitnet.lanes import Lanes
from mtcd.models.splitnet.problem import NetProblem
from mtcd.models.splitnet.setup import split_parties

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

CLIENTS = [f"c{k}" for k in range(4)]
CLUSTERS = [CLIENTS[:2], CLIENTS[2:]]


def pictures(samples: int = 120) -> mtcd.VerticalDataset:
    draw = np.random.default_rng(0)
    seen = {client: draw.normal(size=(samples, 3, 8, 8)).astype("f4") for client in CLIENTS}
    labels = (sum(x[:, 0].mean(axis=(1, 2)) for x in seen.values()) > 0).astype(int)
    return mtcd.VerticalDataset(seen, labels)


def network(dropout: float = 0.0) -> nn.Module:
    convolution = nn.Conv2d(3, 8, 3, padding=1)
    return nn.Sequential(
        convolution,
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.Flatten(),
        nn.Dropout(dropout),
        nn.Linear(512, 6),
    )


def model(aggregation: str = "concat", dropout: float = 0.0, optimiser=None) -> mtcd.SplitModel:
    torch.manual_seed(1)
    width = 24 if aggregation == "concat" else 6
    nets = {client: network(dropout) for client in CLIENTS}
    return mtcd.SplitModel(nets, nn.Linear(width, 2), aggregation, optimiser=optimiser)


METHODS = {
    "clusters": mtcd.MTCD(clusters=CLUSTERS, hops=3, local_updates=3, stepsize=0.05, batch=20),
    "overlapping": mtcd.MTCD(tokens=3, hops=3, local_updates=2, stepsize=0.05, batch=20),
    "full batch": mtcd.MTCD(clusters=CLUSTERS, hops=3, local_updates=2, stepsize=0.05),
    "svfl": mtcd.SVFL(3, 0.05, 20),
    "stcd": mtcd.STCD(3, 0.05, fusion_client="each"),
}
OPTIMISERS = {
    "sgd": None,
    "momentum": functools.partial(torch.optim.SGD, momentum=0.9, weight_decay=1e-3),
    "adam": torch.optim.Adam,
}


@pytest.fixture(autouse=True)
def _repeatable():
    before = torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32 = True, False
    yield
    torch.backends.cudnn.deterministic, torch.backends.cudnn.allow_tf32 = before


def weights(run: mtcd.Run) -> torch.Tensor:
    modules = [*run.modules.values(), run.fusion]
    return torch.cat(
        [value.flatten().double() for module in modules for value in module.state_dict().values()]
    )


def trained(graphs, method, given: mtcd.SplitModel, device: str = "cuda") -> mtcd.Run:
    stop = (
        mtcd.Stop(iterations=20)
        if method.batch is None
        else mtcd.Stop(iterations=20 * method.timeline().hops_per_sync)
    )
    return mtcd.train(
        pictures(), given, "complete", method, stop, compute=mtcd.Compute(device, graphs=graphs)
    )


def slowly(method: mtcd.MTCD) -> mtcd.MTCD:
    """Not so fast that rounding grows."""
    return method.with_stepsize(1e-3)


def apart(a: mtcd.Run, b: mtcd.Run) -> float:
    return float((weights(a) - weights(b)).norm() / weights(a).norm())


@pytest.mark.parametrize("kind", METHODS)
@pytest.mark.parametrize("aggregation", ["concat", "sum"])
def test_recorded_updates_are_those_of_the_plain_path(kind: str, aggregation: str) -> None:
    method = METHODS[kind]
    plain, fast = (trained(graphs, method, model(aggregation)) for graphs in (False, True))
    assert apart(plain, fast) < 1e-4
    assert fast.ledger == plain.ledger
    start = torch.cat(
        [
            p.flatten()
            for net in model(aggregation).representations.values()
            for p in net.parameters()
        ]
    )
    end = torch.cat([p.flatten() for net in fast.modules.values() for p in net.parameters()])
    assert float((start - end).detach().norm()) > 1e-2  # it has moved


@pytest.mark.parametrize("optimiser", OPTIMISERS)
@pytest.mark.parametrize("kind", ["clusters", "overlapping"])
def test_any_optimiser_that_can_be_recorded(optimiser: str, kind: str) -> None:
    given = OPTIMISERS[optimiser]
    plain, fast = (
        trained(graphs, slowly(METHODS[kind]), model(optimiser=given)) for graphs in (False, True)
    )
    # Adam that can be recorded counts its steps on the device, in single precision
    assert apart(plain, fast) < (5e-3 if optimiser == "adam" else 1e-4)


def test_an_optimiser_that_cannot_be_recorded_trains_without() -> None:
    damped = functools.partial(torch.optim.SGD, momentum=0.5, dampening=0.5)
    run = trained("auto", METHODS["clusters"], model(optimiser=damped))
    assert any("Without CUDA graphs" in note for note in run.notes)
    with pytest.raises(mtcd.MtcdError, match="cannot be recorded"):
        trained(True, METHODS["clusters"], model(optimiser=damped))


class Looks(nn.Module):
    """What it does depends on what it sees, which a recording cannot follow."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.sum().item() > 0 else 2 * x


def test_a_network_that_cannot_be_recorded_trains_without() -> None:
    given = model()
    given.representations["c1"].insert(0, Looks())
    run = trained("auto", METHODS["clusters"], given)
    assert any("cannot be recorded" in note for note in run.notes)
    assert apart(run, trained(False, METHODS["clusters"], given)) < 1e-4


@pytest.mark.parametrize("kind", METHODS)
def test_dropout_draws_the_same_masks(kind: str) -> None:
    plain, fast = (trained(graphs, METHODS[kind], model(dropout=0.4)) for graphs in (False, True))
    assert apart(plain, fast) < 1e-4


@pytest.mark.parametrize("kind", ["clusters", "overlapping", "svfl"])
def test_tokens_at_the_same_time_do_what_they_do_one_by_one(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = trained(True, METHODS[kind], model())
    monkeypatch.setattr(
        "mtcd.models.splitnet.problem.Lanes", lambda device, count: Lanes(device, 1)
    )
    assert apart(together, trained(True, METHODS[kind], model())) < 1e-6


def test_the_cpu_agrees() -> None:
    method = METHODS["clusters"]
    assert apart(trained(False, method, model(), "cpu"), trained(True, method, model())) < 1e-3


def test_mixed_precision_learns_and_keeps_single_precision_parameters() -> None:
    compute, stop = mtcd.Compute("cuda", "mixed"), mtcd.Stop(epochs=30)
    run = mtcd.train(pictures(), model(), "complete", METHODS["clusters"], stop, compute=compute)
    assert run.final.accuracy > 0.85
    assert {value.dtype for value in run.fusion.state_dict().values()} == {torch.float32}


def test_a_recorded_training_goes_on_from_a_plain_one(tmp_path) -> None:
    method, whole = slowly(METHODS["clusters"]), mtcd.Stop(epochs=4)
    given = model(optimiser=OPTIMISERS["momentum"])
    fast, plain = mtcd.Compute("cuda"), mtcd.Compute("cuda", graphs=False)
    half = mtcd.Stop(epochs=2)
    mtcd.train(pictures(), given, "complete", method, half, compute=plain, checkpoint=tmp_path)
    went_on = mtcd.train(
        pictures(), given, "complete", method, whole, compute=fast, checkpoint=tmp_path, resume=True
    )
    assert (
        apart(went_on, mtcd.train(pictures(), given, "complete", method, whole, compute=plain))
        < 1e-4
    )


def test_recordings_are_really_used() -> None:
    problem: NetProblem = model().problem(pictures(), mtcd.Compute("cuda"), seed=0)
    split_parties(METHODS["clusters"], problem, mtcd.make_network("complete", CLIENTS), seed=0)
    assert all(isinstance(client, GraphClient) and client._recordings for client in problem.staged)
