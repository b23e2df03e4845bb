"""A training that diverges in a federation ends for everybody, and leaves no block."""

from pathlib import Path
from typing import Any

import pytest

from live import make_bundles, nodes_of, run_all
from mtcd.federation.participant.keeping import read_summary
from own_parts import model_section
from problems import MODELS, make_data

MODEL = MODELS[0]
DATA = make_data(MODEL, 20, [2, 1, 2], seed=3)
METHODS: dict[str, dict[str, Any]] = {
    "stcd": {"kind": "stcd"},
    "mtcd": {"kind": "mtcd", "tokens": 2, "hops": 3, "combine": "average"},
    "mtcd in batches": {"kind": "mtcd", "tokens": 1, "hops": 3, "batch": 7},
    "svfl": {"kind": "svfl"},
    "dcpa": {"kind": "dcpa"},
}


@pytest.mark.parametrize("name", METHODS)
def test_a_diverging_training_ends(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    method = {**METHODS[name], "stepsize": 1e9}
    server = {} if method["kind"] in ("mtcd", "svfl") else {"server": None}
    model = {"model": model_section(MODEL), "stop": {"iterations": 5000}}
    bundles = make_bundles(tmp_path, DATA.clients, method=method, **model, **server)
    nodes = nodes_of(tmp_path, bundles, DATA)
    assert set(run_all(nodes).values()) == {"diverged"}
    assert {read_summary(tmp_path / "runs" / one).status for one in bundles} == {"diverged"}
    assert not list(tmp_path.glob("runs/*/block*"))
    assert capfd.readouterr().err == ""
