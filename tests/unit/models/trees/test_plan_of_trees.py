"""The plan of trees: what its candidates have in common."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import mtcd
from boosting import samples
from mtcd.config.build import Setup, build
from mtcd.config.read import read_config
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.models.trees import plan as additive

CONFIG = """
data: {table: t.csv, label: y, clients: {a: [c0], b: [c1], c: [c2], d: [c3, c4, c5]}, holdout: 0.3}
model: {kind: trees}
network: {kind: complete}
"""


def set_up(folder: Path, own: str, config: str = CONFIG) -> Setup:
    """The parts of the config with these keys more, on a table of 60 samples."""
    X, y = samples("values", 60)
    frame = pl.DataFrame({f"c{j}": X[:, j] for j in range(6)})
    frame.with_columns(y=pl.Series(np.asarray(y))).write_csv(folder / "t.csv")
    (folder / "c.yaml").write_text(config + own)
    return build(read_config(folder / "c.yaml"))


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
    setup = set_up(tmp_path, own)
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
        additive.plan_additive(setup)
    assert len(most) >= 5
    assert all(0.9 * trees <= one <= trees for one in most)


LONE = [
    mtcd.STCD(walk="tour"),
    mtcd.STCD(walk="tour", local_updates=3),
    mtcd.STCD(),
]


@pytest.mark.parametrize(
    ("clients", "clusters", "hops"), [(2, 0, 0), (3, 2, 2), (4, 2, 2), (9, 3, 3), (11, 3, 4)]
)
def test_candidates_are_lone_tokens_and_where_there_are_more_than_two_parties_tokens_that_sync(
    clients: int, clusters: int, hops: int
) -> None:
    network = mtcd.make_network("complete", [f"c{k}" for k in range(clients)])
    own = mtcd.STCD(local_updates=7)
    expected = [own, *LONE]
    if clusters:
        expected += [
            mtcd.MTCD(tokens=clusters, clusters="auto", hops=hops, combine="optimal"),
            mtcd.MTCD(tokens=clusters, hops=clients, combine="optimal"),
        ]

    assert additive.candidates(own, network) == expected
    assert additive.candidates(LONE[1], network) == [LONE[1], LONE[0], LONE[2], *expected[4:]]


CURVES = {
    # held-out loss, cost and iteration of each measurement
    "STCD, Q=1": [(4.0, 0.0, 0), (1.0, 9.0, 9)],
    "STCD, Q=1, tour": [(4.0, 0.0, 0), (1.01, 3.0, 2), (1.3, 5.0, 4)],  # the target itself
    "STCD, Q=3, tour": [(4.0, 0.0, 0), (1.2, 1.0, 1)],
}


def test_the_cheapest_to_the_target_wins_and_those_that_miss_it_come_in_the_order_of_their_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = "method: {kind: stcd, local_updates: 2}\nstop: {iterations: 12}\nseed: 5\n"
    setup, asked, told = set_up(tmp_path, own), [], []

    def trained(*given: Any, metrics: Any) -> Any:
        asked.append((*given[4:], metrics))
        points = CURVES.get(given[3].describe(), [(4.0, 0.0, 0), (1.5, 1.0, 1)])
        rows = []
        for loss, cost, iteration in points:
            measured = SimpleNamespace(metrics={}, cost=cost, iteration=iteration)
            rows.append(measured)
            rows.append(SimpleNamespace(**{**vars(measured), "metrics": {"test_rmse": loss}}))
        return SimpleNamespace(
            history=SimpleNamespace(rows=rows), final=SimpleNamespace(seconds=0.5)
        )

    monkeypatch.setattr(additive, "train", trained)
    plan = additive.plan_additive(setup, 30.0, 7.0, lambda *said: told.append(said))
    assert len(asked) == len(told) == len(plan.candidates) == 6
    for stop, costs, seed, metrics in asked:
        assert stop.seconds == 5.0
        assert stop.iterations in range(1, 25)
        assert (costs.ratio, seed, metrics) == (7.0, 5, ("rmse",))

    assert [share for _, share in told] == [number / 6 for number in range(6)]
    assert told[0][0] == "STCD, Q=2"
    found = [(one.label, one.cost, one.best, one.iterations) for one in plan.candidates]
    assert found[:3] == [
        ("STCD, Q=1, tour", 3.0, 1.01, 2),
        ("STCD, Q=1", 9.0, 1.0, 9),
        ("STCD, Q=3, tour", np.inf, 1.2, 1),
    ]
    assert {one[1:] for one in found[3:]} == {(np.inf, 1.5, 1)}
    assert [one.own for one in plan.candidates].count(True) == 1
    assert (plan.metric, plan.target) == ("rmse", 1.01)
    assert (plan.config.method.kind, plan.config.method.walk) == ("stcd", "tour")
    assert (plan.config.stop.iterations, plan.config.costs.ratio) == (2, 7.0)
    assert plan.table().best
    assert plan.summary()["notes"] == []
    assert plan.summary()["candidates"][2]["cost"] is None


def test_what_cannot_be_planned_is_refused(tmp_path: Path) -> None:
    own = "method: {kind: stcd}\n"
    setup = set_up(tmp_path, own)
    with pytest.raises(ConfigError, match="budget must be above 0"):
        additive.plan_additive(setup, 0.0)
    linear = set_up(tmp_path, own, CONFIG.replace("kind: trees", "kind: ridge"))
    with pytest.raises(ConfigError, match="for trees and mixed families"):
        additive.plan_additive(linear)
