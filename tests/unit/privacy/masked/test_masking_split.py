"""Masked aggregation of split networks: the plain training up to the rounding of uploads."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("cryptography")

import mtcd
from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method
from mtcd.privacy.masked.masked import with_masks
from split_problems import model, samples

DATA = samples(4, 24)
METHODS: dict[str, Method] = {
    "batches": mtcd.MTCD(clusters=[[0, 1], [2, 3]], hops=2, batch=6, stepsize=0.1),
    "svfl": mtcd.SVFL(batch=8, stepsize=0.1),
    "svfl, full batch": mtcd.SVFL(stepsize=0.1),
}


def trained(method: Method, aggregation: str, **where: object) -> mtcd.Run:
    split = model(DATA, aggregation)
    return mtcd.train(DATA, split, "cycle", method, mtcd.Stop(iterations=24), seed=3, **where)


@pytest.mark.parametrize("aggregation", ["sum", "mean"])
@pytest.mark.parametrize("name", METHODS)
def test_networks_are_those_of_plain_aggregation(name: str, aggregation: str) -> None:
    plain, masked = (
        trained(method, aggregation) for method in (METHODS[name], with_masks(METHODS[name]))
    )
    assert masked.ledger == plain.ledger
    assert masked.final.objective == pytest.approx(plain.final.objective, abs=1e-3)
    apart = [
        float((one - other).detach().abs().max())
        for client, module in plain.modules.items()
        for one, other in zip(module.parameters(), masked.modules[client].parameters(), strict=True)
    ]
    assert 0 < max(apart) < 1e-3  # they did travel in fixed point


def test_a_resumed_training_exchanges_new_keys(tmp_path: Path) -> None:
    method = with_masks(METHODS["batches"])
    whole = trained(method, "sum")
    split, folder = model(DATA, "sum"), tmp_path / "kept"
    mtcd.train(DATA, split, "cycle", method, mtcd.Stop(iterations=8), seed=3, checkpoint=folder)
    resumed = mtcd.train(
        DATA,
        split,
        "cycle",
        method,
        mtcd.Stop(iterations=24),
        seed=3,
        checkpoint=folder,
        resume=True,
    )
    assert resumed.final.objective == pytest.approx(whole.final.objective, abs=1e-6)
    assert resumed.ledger == whole.ledger


def test_what_cannot_be_summed_is_refused() -> None:
    with pytest.raises(ConfigError, match="sum or mean"):
        trained(with_masks(METHODS["svfl"]), "concat")
    with pytest.raises(ConfigError, match="needs batch"):
        trained(with_masks(mtcd.MTCD(tokens=2, hops=2, stepsize=0.1)), "sum")
