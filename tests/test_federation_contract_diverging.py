"""The engine contract on step sizes that are too large: the same status, and a model or none, in every engine."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zenoh")

from live import in_process, make_kits, own_table_of, run_all
from mtcd.divergence import DIVERGED
from mtcd.federation.kit import Kit
from mtcd.federation.node.brings import LinearBrings
from mtcd.federation.node.node import Node
from mtcd.federation.own.block import read_block
from mtcd.federation.own.keeping import read_summary
from own_parts import model_section
from problems import MODELS, make_data

MODEL = MODELS[0]
DATA = make_data(MODEL, 20, [2, 1, 3, 2], seed=3)
STCD = {"kind": "stcd", "local_updates": 2}
MTCD = {"kind": "mtcd", "tokens": 2, "hops": 5, "local_updates": 2}
SVFL = {"kind": "svfl", "local_updates": 2}
AT_SERVER = {"labels__shared_with": ["parties", "server"]}
KEPT = "iterations"
# by method: step sizes, after how many iterations to end, and how; some ends are above the start, but not without hope
CASES: dict[str, tuple[dict[str, Any], list[tuple[float, int, str]]]] = {
    "stcd": (STCD, [(0.04, 40, KEPT), (0.06, 19, DIVERGED), (0.1, 40, DIVERGED)]),
    "momentum": (
        {**STCD, "walk": "tour", "acceleration": "momentum"},
        [(0.04, 40, KEPT), (0.08, 12, DIVERGED), (0.12, 40, DIVERGED)],
    ),
    "conjugate": (
        {**STCD, "walk": "tour", "acceleration": "conjugate"},
        [(0.1, 40, KEPT), (0.12, 40, DIVERGED), (0.3, 40, DIVERGED)],
    ),
    "average": ({**MTCD, "combine": "average"}, [(0.04, 40, KEPT), (0.06, 20, DIVERGED), (0.15, 40, DIVERGED)]),
    "visitors": ({**MTCD, "combine": "visitors"}, [(0.08, 10, DIVERGED), (0.12, 40, DIVERGED)]),
    "clusters": ({**MTCD, "combine": "cluster"}, [(0.06, 10, DIVERGED), (0.1, 40, DIVERGED)]),
    "optimal": ({**MTCD, "combine": "optimal"}, [(0.08, 40, KEPT), (0.12, 40, DIVERGED)]),
    "batches": ({**MTCD, "combine": "cluster", "batch": 7}, [(0.02, 40, KEPT), (0.04, 25, KEPT), (0.08, 5, DIVERGED)]),
    "svfl": (SVFL, [(0.04, 40, KEPT), (0.06, 3, DIVERGED), (0.2, 40, DIVERGED)]),
    "svfl in batches": ({**SVFL, "batch": 6}, [(0.04, 40, KEPT), (0.06, 2, DIVERGED), (0.2, 40, DIVERGED)]),
    "dcpa": ({"kind": "dcpa"}, [(0.3, 40, KEPT), (0.5, 4, DIVERGED), (1.0, 40, DIVERGED)]),
}
SETTINGS = [(name, *setting) for name, (_, settings) in CASES.items() for setting in settings]


def trained(folder: Path, method: dict[str, Any], iterations: int, **changes: Any) -> tuple[Kit, dict[str, str]]:
    """The first kit, and how everybody says that it ended."""
    server = {} if method["kind"] in ("mtcd", "svfl") else {"server": None}
    settings = {"model": model_section(MODEL), "method": method, "stop": {"iterations": iterations}, "seed": 5}
    kits = make_kits(folder, DATA.clients, network={"kind": "cycle"}, **settings, **server, **changes)
    nodes = {
        one: Node(kit, folder / "runs" / one, LinearBrings(kit, own_table_of(DATA, kit)), None)
        for one, kit in kits.items()
    }
    statuses = run_all(nodes)
    assert statuses == {one: read_summary(folder / "runs" / one).status for one in kits}
    return kits[DATA.clients[0]], statuses


@pytest.mark.parametrize(("name", "stepsize", "iterations", "status"), SETTINGS)
def test_a_federation_diverges_where_one_process_does(
    name: str, stepsize: float, iterations: int, status: str, tmp_path: Path
) -> None:
    method = {**CASES[name][0], "stepsize": stepsize}
    changes = AT_SERVER if name == "optimal" else {}
    kit, statuses = trained(tmp_path, method, iterations, **changes)
    same = in_process(DATA, kit)
    assert same.status == status
    assert set(statuses.values()) == {status}
    folders = {client: tmp_path / "runs" / client for client in DATA.clients}
    if same.model is None:
        assert not list(tmp_path.glob("runs/*/block*"))
        return
    for client, theta in same.parameters.items():
        np.testing.assert_allclose(read_block(folders[client]).theta, theta, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("stepsize", [0.3, 0.5])
def test_those_far_from_the_holder_of_the_labels_hear_the_same(stepsize: float, tmp_path: Path) -> None:
    data = make_data(MODEL, 20, [1] * 7, seed=3)
    settings = {"model": model_section(MODEL), "method": {"kind": "dcpa", "stepsize": stepsize}, "seed": 5}
    kits = make_kits(tmp_path, data.clients, network={"kind": "path"}, server=None, stop={"iterations": 6}, **settings)
    nodes = {
        one: Node(kit, tmp_path / "runs" / one, LinearBrings(kit, own_table_of(data, kit)), None)
        for one, kit in kits.items()
    }
    status = in_process(data, kits[data.clients[0]]).status
    assert set(run_all(nodes).values()) == {status}
