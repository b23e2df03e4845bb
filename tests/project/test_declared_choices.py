"""What docs/paper.md declares of our choices is what code and experiments do."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import yaml

from mtcd.core.errors import ConfigError
from mtcd.data.synthetic import synthetic
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.network.spectrum import algebraic_connectivity
from mtcd.network.topology import make_network
from mtcd.protocol.batches import Batches
from mtcd_experiments.read import FIGURES
from project import ROOT


def experiment(name: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(
        (ROOT / "experiments" / f"{name}.yaml").read_text(encoding="utf-8")
    )
    return content


def declared(number: int) -> str:
    lines = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith(f"{number}. **"))


def test_choices_are_numbered_one_after_the_other() -> None:
    text = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
    numbers = [int(line.split(".")[0]) for line in text.splitlines() if line[:1].isdigit()]
    assert numbers[0] == 1
    assert all(after == before + 1 for before, after in pairwise(numbers))


def test_batches_are_drawn_without_replacement_within_an_epoch() -> None:
    assert "(A2)" in declared(8)
    batches = Batches(samples=12, size=4, seed=0)
    epoch = [batches.rows(t) for t in range(3)]
    assert sorted(np.concatenate([rows for rows in epoch if rows is not None])) == list(range(12))
    # so the last batch is known from the others: given the past, its gradient is not unbiased


def test_variant_b_of_dcpa_has_no_consensus_stepsize() -> None:
    assert "μ_x" in declared(11)
    with pytest.raises(ConfigError, match="belongs to variant A"):
        DCPA(consensus_stepsize=3e-2)
    curves = [
        c
        for name in FIGURES
        for c in experiment(name)["curves"].values()
        if c["method"]["kind"] == "dcpa"
    ]
    assert curves
    assert all(
        "consensus_stepsize" not in c["method"] and c["method"].get("variant", "B") == "B"
        for c in curves
    )


def test_the_ridge_generator() -> None:
    assert "y = Xθ + 0.1·noise" in declared(16)
    data = synthetic("ridge", samples=4000, features=20, clients=2)
    X = np.hstack([np.asarray(block) for block in data.blocks])
    theta, squares, *_ = np.linalg.lstsq(X, data.labels, rcond=None)
    assert np.sqrt(squares[0] / 3980) == pytest.approx(0.1, rel=0.05)
    assert (X.mean(), X.std()) == (pytest.approx(0.0, abs=0.02), pytest.approx(1.0, rel=0.02))
    assert 0.5 < theta.std() < 1.5


@pytest.mark.parametrize(("p", "seed", "connectivity"), [(0.4, 34, 7.7), (0.2, 21, 1.4)])
def test_random_networks_are_those_nearest_to_the_papers(
    p: float, seed: int, connectivity: float
) -> None:
    assert f"{seed} (p = {p})" in declared(17)
    clients = [f"c{k}" for k in range(40)]
    found = [
        algebraic_connectivity(make_network("erdos-renyi", clients, p=p, seed=s)) for s in range(60)
    ]
    assert int(np.argmin(np.abs(np.array(found) - connectivity))) == seed


def test_seeds_of_the_convex_figures_draw_neither_data_nor_networks() -> None:
    for name in FIGURES:
        content = experiment(name)
        if content.get("measure") == "accuracy":
            continue
        problem, cases = content["problem"], content["cases"].values()
        assert "synthetic" not in problem["data"] or problem["data"]["seed"] == 0
        networks = [
            case["changes"]["network"] for case in cases if "network" in case.get("changes", {})
        ]
        assert all("seed" in network for network in networks if network["kind"] == "erdos-renyi")


def test_settings_that_the_paper_does_not_give() -> None:
    said = declared(18)
    sparse = experiment("sparse-logistic")["curves"]["mtcd"]["method"]
    assert f"Γ = {sparse['tokens']}, S = {sparse['hops']}" in said
    path80 = experiment("path80")
    hops = [path80["curves"][name]["method"]["hops"] for name in path80["cases"]["hops"]["curves"]]
    assert f"S = {', '.join(map(str, hops))}." in said
    path40 = [
        c["method"]
        for c in experiment("path40-ratios")["curves"].values()
        if c["method"]["kind"] == "mtcd"
    ]
    assert {m["hops"] for m in path40} == {32}
    assert f"S = 32, Γ = {', '.join(str(m['tokens']) for m in path40)}." in said
    for name, key, most in (
        ("tokens", "tokens", 16),
        ("hops", "hops", 64),
        ("local-updates", "local_updates", 2500),
    ):
        curves = experiment(f"ablation-{name}")["curves"].values()
        assert max(c["method"][key] for c in curves) == most
        assert f"up to {most}" in said
