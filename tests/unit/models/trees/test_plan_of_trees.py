"""The plan of trees: what its candidates have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from boosting import samples
from mtcd.config.build import build
from mtcd.config.read import read_config
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.models.trees import plan as additive

CONFIG = """
data: {table: t.csv, label: y, clients: {a: [c0], b: [c1], c: [c2], d: [c3, c4, c5]}, holdout: 0.3}
model: {kind: trees}
network: {kind: complete}
"""


@pytest.mark.parametrize(
    ("own", "trees"),
    [
        ("method: {kind: stcd}\nstop: {iterations: 24}", 24),
        ("method: {kind: stcd, local_updates: 2}\nstop: {iterations: 12}", 24),
        ("method: {kind: mtcd, tokens: 2, hops: 3, combine: optimal}\nstop: {iterations: 4}", 24),
        ("method: {kind: stcd}\nstop: {seconds: 9}", 200),
    ],
)
def test_all_candidates_train_for_as_many_trees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, trees: int
) -> None:
    X, y = samples("values", 60)
    frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(6)}).with_columns(
        y=pl.Series(np.asarray(y))
    )
    frame.write_csv(tmp_path / "t.csv")
    (tmp_path / "c.yaml").write_text(CONFIG + own)
    most: list[int] = []

    def untrained(
        data: Any, model: Any, network: Any, method: Any, stop: Any, *rest: Any, **more: Any
    ) -> None:
        most.append(
            stop.iterations * (method.tokens or 1) * (method.hops or 1) * method.local_updates
        )
        raise MtcdError("Not trained.")

    monkeypatch.setattr(additive, "train", untrained)
    with pytest.raises(ConfigError, match="Not trained"):
        additive.plan_additive(build(read_config(tmp_path / "c.yaml")))
    assert len(most) >= 5
    assert all(0.9 * trees <= one <= trees for one in most)
