"""Split networks on a GPU: the time of a local update, recorded and replayed against an eager loop
in the same run.

usage: python -m benchmarks.gpu [--clients 4] [--batch 100] [--check]

The networks are CIFAR ResNet18s on quadrants; pictures are made up, as their content does not
matter for the time. ``--check`` also holds the recorded path to the eager one, and tokens at the
same time to one after the other.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import perf_counter

import numpy as np
import torch
from torch.nn.functional import cross_entropy

import mtcd
from mtcd.engines.local import LocalEngine
from mtcd.models.splitnet.lanes import Lanes
from mtcd.models.splitnet.nets import linear, resnet18
from mtcd.models.splitnet.problem import NetProblem
from mtcd.models.splitnet.setup import split_parties
from mtcd.network.topology import make_network
from mtcd.protocol.ledger.ledger import Ledger

WIDTH, CLASSES, SIDE = 16, 10, 16
HOPS, LOCAL_UPDATES = 2, 10


def made_up(clients: int, batch: int) -> tuple[mtcd.VerticalDataset, mtcd.SplitModel]:
    """Pictures for 20 batches, and the networks."""
    draw = np.random.default_rng(0)
    samples = 20 * batch
    pictures = {
        f"client_{k}": draw.normal(size=(samples, 3, SIDE, SIDE)).astype("f4")
        for k in range(clients)
    }
    labels = np.arange(samples) % CLASSES
    torch.manual_seed(0)
    networks = {client: resnet18(WIDTH) for client in pictures}
    return mtcd.VerticalDataset(pictures, labels), mtcd.SplitModel(
        networks, linear(WIDTH * clients, CLASSES)
    )


def mtcd_of(clients: int, batch: int) -> mtcd.MTCD:
    """Two clusters, a token each: the paper's setting."""
    names = [f"client_{k}" for k in range(clients)]
    clusters = [names[: clients // 2], names[clients // 2 :]]
    return mtcd.MTCD(
        clusters=clusters, hops=HOPS, local_updates=LOCAL_UPDATES, stepsize=1e-4, batch=batch
    )


class Trainer:
    """A training that is taken on iteration by iteration."""

    def __init__(
        self,
        clients: int,
        batch: int,
        method: mtcd.MTCD | mtcd.SVFL,
        compute: mtcd.Compute,
        lanes: bool = True,
    ):
        data, model = made_up(clients, batch)
        self.problem: NetProblem = model.problem(data, compute, seed=0)
        parties = split_parties(
            method, self.problem, make_network("complete", data.clients), seed=0
        )
        if not lanes:
            alone = Lanes(self.problem.device, 1)
            parties.stage.lane, parties.stage.join = alone.lane, alone.join  # type: ignore[attr-defined]
        self._moments = LocalEngine(parties.parties(), Ledger()).run()
        next(self._moments)

    def go(self, iterations: int) -> None:
        """So many syncs."""
        for _ in range(iterations):
            next(self._moments)

    def weights(self) -> torch.Tensor:
        """All parameters in a row."""
        torch.cuda.synchronize()
        nets = [*self.problem.nets, self.problem.fusion]
        return torch.cat([value.flatten() for net in nets for value in net.values()]).double()


def timed(work: Callable[[], None], repeats: int = 5) -> float:
    """Seconds, the median: the device has done all of it by then."""
    work()
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        began = perf_counter()
        work()
        torch.cuda.synchronize()
        taken.append(perf_counter() - began)
    return statistics.median(taken)


def joint(clients: int, batch: int, mixed: bool) -> float:
    """Seconds for a step of the same network trained as one, eagerly."""
    data, model = made_up(clients, batch)
    problem = model.problem(
        data, mtcd.Compute(graphs=False, precision="mixed" if mixed else "full"), seed=0
    )
    parameters = [p for net in [*problem.nets, problem.fusion] for p in net.parameters]
    optimiser = torch.optim.SGD(parameters, lr=1e-4)
    pairs = zip(problem.nets, problem.sources, strict=True)
    xs = [net.laid_out(source.rows(torch.arange(batch))) for net, source in pairs]
    y = problem.labels[:batch]

    def step() -> None:
        with problem.around.precision():
            told = [net.module(x).float() for net, x in zip(problem.nets, xs, strict=True)]
            outputs = problem.fusion.module(problem.around.aggregation.of(told))
        optimiser.zero_grad()
        cross_entropy(outputs.float(), y).backward()
        optimiser.step()

    return timed(lambda: [step() for _ in range(10)] and None) / 10


def rows(clients: int, batch: int) -> None:
    """The table."""
    print(f"K={clients} CIFAR ResNet18, B={batch}, Q={LOCAL_UPDATES}")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    mtcd_, svfl = mtcd_of(clients, batch), mtcd.SVFL(LOCAL_UPDATES, 1e-4, batch)
    updates = {"mtcd": 2 * HOPS * LOCAL_UPDATES, "svfl": clients * LOCAL_UPDATES}
    settings = {
        "eager": (mtcd.Compute(graphs=False), True),
        "recorded, one after the other": (mtcd.Compute(), False),
        "recorded, at the same time": (mtcd.Compute(), True),
    }
    for mixed in (False, True):
        floor = 0.0
        for kind, method in (("mtcd", mtcd_), ("svfl", svfl)):
            for name, (compute, lanes) in settings.items():
                precise = mtcd.Compute(
                    graphs=compute.graphs, precision="mixed" if mixed else "full"
                )
                trainer = Trainer(clients, batch, method, precise, lanes)
                trainer.go(2)
                each = timed(lambda: trainer.go(4), repeats=3) / 4  # noqa: B023
                per_update = 1e3 * each / updates[kind]
                floor = per_update if name == "eager" else floor
                print(
                    f"{'mixed' if mixed else 'full':5}  {kind}  {name:30} {per_update:6.2f} ms per "
                    f"local update  "
                    f"{1e3 * each:7.1f} ms per iteration  {floor / per_update:4.1f}x the eager "
                    f"loop  "
                    f"{batch / each:8.0f} samples/s",
                    flush=True,
                )
        step, precision = joint(clients, batch, mixed), "mixed" if mixed else "full"
        print(
            f"{precision:5}  as one network, eager: {1e3 * step:.1f} ms per batch, "
            f"{batch / step:.0f} samples/s"
        )


def check(clients: int, batch: int) -> None:
    """The twins: how far apart their parameters are, relative to how far they have come."""
    torch.backends.cudnn.deterministic = True
    method = mtcd_of(clients, batch)
    ends = {}
    for name, compute, lanes, iterations in (
        ("eager", mtcd.Compute(graphs=False), True, 20),
        ("recorded", mtcd.Compute(), False, 20),
        ("same time", mtcd.Compute(), True, 20),
        ("one by one, 200", mtcd.Compute(), False, 200),
        ("same time, 200", mtcd.Compute(), True, 200),
    ):
        trainer = Trainer(clients, batch, method, compute, lanes)
        start = trainer.weights()
        trainer.go(iterations)
        ends[name] = trainer.weights()
        print(f"{name}: moved {float((ends[name] - start).norm() / start.norm()):.3e}", flush=True)
    pairs = (
        ("eager", "recorded"),
        ("recorded", "same time"),
        ("one by one, 200", "same time, 200"),
    )
    for a, b in pairs:
        print(
            f"{a} against {b}: {float((ends[a] - ends[b]).norm() / ends[a].norm()):.3e} apart, "
            f"relative"
        )


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("There is no GPU that PyTorch can use.")
    if given.check:
        check(given.clients, given.batch)
    rows(given.clients, given.batch)


if __name__ == "__main__":
    main()
