"""Small split networks and data for the tests, chosen by hypothesis or by hand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

import mtcd
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.splitnet.problem import NetProblem
from mtcd.network.topology import Network
from mtcd.protocol.party import SERVER, Message
from mtcd.training.compute import Compute
from problems import networks

CPU = Compute(device="cpu")
MOMENTUM = partial(torch.optim.SGD, momentum=0.9)
Made = Callable[[int, int], nn.Module]


def net(inputs: int, width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 4), nn.Tanh(), nn.Linear(4, width))


def normed(inputs: int, width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, width))


def dropping(inputs: int, width: int) -> nn.Module:
    return nn.Sequential(nn.Linear(inputs, 6), nn.Tanh(), nn.Dropout(0.4), nn.Linear(6, width))


def samples(
    clients: int = 4, count: int = 12, classes: int = 3, seed: int = 0, test: int = 0
) -> mtcd.VerticalDataset:
    """Random features, 2 or 3 numbers at each client; labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    widths = [2 + k % 2 for k in range(clients)]
    X = rng.standard_normal((count + test, sum(widths))).astype(np.float32)
    score = np.sin(X @ rng.standard_normal(sum(widths)) * 2)
    labels = np.argsort(np.argsort(score)) * classes // len(X)
    bounds = np.cumsum([0, *widths])
    features = {f"c{k}": X[:, bounds[k] : bounds[k + 1]] for k in range(clients)}
    data = mtcd.VerticalDataset({name: x[:count] for name, x in features.items()}, labels[:count])
    if not test:
        return data
    return replace(
        data,
        test=mtcd.VerticalDataset(
            {name: x[count:] for name, x in features.items()}, labels[count:]
        ),
    )


def model(
    data: mtcd.VerticalDataset,
    aggregation: str = "concat",
    made: Made = net,
    head: Made = nn.Linear,
    seed: int = 0,
    widths: Sequence[int] | None = None,
    **others: Any,
) -> mtcd.SplitModel:
    """A network for every client, and a head for the classes."""
    torch.manual_seed(seed)
    widths = widths or [3] * len(data.clients)
    shapes = [data.shapes[client][0] for client in data.clients]
    reps = {client: made(x, w) for client, x, w in zip(data.clients, shapes, widths, strict=True)}
    width = sum(widths) if aggregation == "concat" else widths[0]
    return mtcd.SplitModel(reps, head(width, len(np.unique(data.labels))), aggregation, **others)


@dataclass(frozen=True)
class SplitCase:
    data: mtcd.VerticalDataset
    model: mtcd.SplitModel
    network: Network
    seed: int

    def problem(self) -> NetProblem:
        return self.model.problem(self.data, CPU, self.seed)

    def train(self, method: Method, stop: mtcd.Stop, **others: Any) -> mtcd.Run:
        return mtcd.train(
            self.data, self.model, self.network, method, stop, seed=self.seed, compute=CPU, **others
        )


def case(network: str = "path", seed: int = 0, clients: int = 4, **about: Any) -> SplitCase:
    """A case by hand."""
    data = samples(clients, about.pop("count", 12), seed=seed, test=about.pop("test", 0))
    return SplitCase(
        data, model(data, seed=seed, **about), mtcd.make_network(network, data.clients), seed
    )


@st.composite
def split_cases(draw: st.DrawFn, connected: bool = False) -> SplitCase:
    clients, seed = draw(st.integers(2, 5)), draw(st.integers(0, 1000))
    data = samples(clients, draw(st.integers(6, 12)), seed=seed)
    aggregation = draw(st.sampled_from(["sum", "mean", "concat"]))
    widths = (
        draw(st.lists(st.integers(1, 3), min_size=clients, max_size=clients))
        if aggregation == "concat"
        else None
    )
    optimiser = draw(st.sampled_from([None, MOMENTUM]))
    made = model(data, aggregation, seed=seed, widths=widths, optimiser=optimiser)
    return SplitCase(data, made, draw(networks(clients, connected)), seed)


@st.composite
def split_settings(draw: st.DrawFn, one: SplitCase) -> MTCD:
    combine = draw(st.sampled_from(["average", "cluster", "visitors"]))
    fewest = nx.number_connected_components(one.network.graph) if combine == "cluster" else 1
    batch = draw(st.sampled_from([None, 1, 3, one.data.samples]))
    return MTCD(
        tokens=draw(
            st.integers(fewest, one.network.size if combine == "cluster" else one.network.size + 1)
        ),
        hops=draw(st.integers(1, 4)),
        local_updates=draw(st.integers(1, 3)),
        stepsize=draw(st.sampled_from([0.01, 0.03])),
        batch=batch,
        combine=combine,
        walk=draw(st.sampled_from(["lazy", "metropolis"])),
        schedule=draw(st.sampled_from([None, mtcd.Schedule(every=1, factor=0.7)])),
        fusion_updates=draw(st.sampled_from([None, 1, 5])),
    )


def tensors(one: SplitCase) -> tuple[list[Tensor], Tensor]:
    """Features in the order of the clients, and labels as numbers of classes."""
    return [torch.as_tensor(one.data.features[c]) for c in one.data.clients], torch.as_tensor(
        one.data.labels
    )


def weights_of(run: mtcd.Run) -> dict[str, Tensor]:
    return run.trained().weights()


def same_weights(ours: Mapping[str, Tensor], theirs: Mapping[str, Tensor]) -> bool:
    """Bit by bit."""
    return ours.keys() == theirs.keys() and all(
        torch.equal(ours[name], theirs[name]) for name in ours
    )


def rows_but_seconds(run: mtcd.Run) -> list[Any]:
    return [replace(row, seconds=0.0) for row in run.history.rows]


def receiver(parties: Any, message: Message) -> Any:
    return parties.server if message.to == SERVER else parties.clients[message.to]


cross_entropy = functional.cross_entropy


def assert_same_modules(ours: Any, theirs: Any) -> None:
    """But for the last digits."""
    known = theirs.state_dict()
    for name, value in ours.state_dict().items():
        torch.testing.assert_close(value, known[name], rtol=1e-6, atol=1e-7)
