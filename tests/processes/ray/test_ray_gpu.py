"""Split networks on Ray with a GPU: two actors share it, and do what one process does."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
import torch
from torch import nn

import mtcd
from mtcd.ray.cluster import RayActors

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"),
    pytest.mark.usefixtures("one_ray"),
]

CLIENTS = [f"c{k}" for k in range(4)]
METHODS = {
    "clusters": mtcd.MTCD(
        clusters=[CLIENTS[:2], CLIENTS[2:]], hops=3, local_updates=3, stepsize=0.05, batch=20
    ),
    "overlapping": mtcd.MTCD(tokens=3, hops=3, local_updates=2, stepsize=0.05, batch=20),
    "full batch": mtcd.MTCD(
        clusters=[CLIENTS[:2], CLIENTS[2:]], hops=3, local_updates=2, stepsize=0.05
    ),
    "svfl": mtcd.SVFL(3, 0.05, 20),
    "stcd": mtcd.STCD(3, 0.05, fusion_client="each"),
}
ON_RAY = mtcd.Ray("local", actors=2)


class Noted(nn.Module):
    """Passes on what it is given, and notes process and device in a folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = str(folder)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Path(self.folder, f"{os.getpid()}-{x.device.type}").touch()
        return x


def data() -> mtcd.VerticalDataset:
    draw = np.random.default_rng(0)
    seen = {client: draw.normal(size=(120, 16)).astype("f4") for client in CLIENTS}
    return mtcd.VerticalDataset(seen, (sum(x.mean(axis=1) for x in seen.values()) > 0).astype(int))


def model(folder: Path | None = None) -> mtcd.SplitModel:
    torch.manual_seed(1)
    nets = {
        client: nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 6))
        for client in CLIENTS
    }
    if folder is not None:
        nets = {client: nn.Sequential(Noted(folder), net) for client, net in nets.items()}
    return mtcd.SplitModel(nets, nn.Linear(24, 2), "concat")


def trained(
    method: Any, engine: Any, given: mtcd.SplitModel, graphs: bool | str = "auto", **more: Any
) -> mtcd.Run:
    stop = mtcd.Stop(
        iterations=20 if method.batch is None else 20 * method.timeline().hops_per_sync
    )
    compute = mtcd.Compute("cuda", graphs=graphs)
    return mtcd.train(
        data(), given, "complete", method, stop, compute=compute, engine=engine, **more
    )


def apart(a: mtcd.Run, b: mtcd.Run) -> float:
    one, other = (
        torch.cat(
            [
                v.flatten().double().cpu()
                for m in (*run.modules.values(), run.fusion)
                for v in m.state_dict().values()
            ]
        )
        for run in (a, b)
    )
    return float((one - other).norm() / one.norm())


@pytest.mark.parametrize("kind", METHODS)
def test_actors_that_share_a_gpu_do_what_one_process_does(kind: str) -> None:
    here, there = (trained(METHODS[kind], engine, model()) for engine in (None, ON_RAY))
    assert apart(here, there) < 1e-4
    assert here.ledger == there.ledger


def test_every_actor_computes_on_the_gpu(tmp_path: Path) -> None:
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])  # actors do not find this file
    trained(METHODS["clusters"], ON_RAY, model(tmp_path), graphs=False)
    noted = [name.rsplit("-", 1) for name in os.listdir(tmp_path)]
    elsewhere = [device for pid, device in noted if int(pid) != os.getpid()]
    assert elsewhere == ["cuda", "cuda"]


def test_an_actor_that_dies_returns_to_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    method, killed = METHODS["overlapping"], list[int]()
    plain = trained(method, None, model())
    wait = RayActors.wait

    def kill_once(self: RayActors, refs: Any, seconds: float | None) -> dict[int, Any]:
        if not killed:
            killed.append(1)
            ray.kill(self.handles[1])
        return wait(self, refs, seconds)

    monkeypatch.setattr(RayActors, "wait", kill_once)
    run = trained(method, mtcd.Ray("local", actors=2, snapshot_seconds=0.01), model())
    assert killed
    assert apart(plain, run) < 1e-4
    assert run.ledger == plain.ledger


def test_a_process_on_the_gpu_is_not_mixed_with_actors_without() -> None:
    with pytest.raises(mtcd.MtcdError, match=r"engine\.gpus is 0"):
        trained(METHODS["svfl"], mtcd.Ray("local", actors=2, gpus=0), model())
