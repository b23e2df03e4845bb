"""Trees in a federation: faults in the simulator, journals, and real parties against one
process."""

from __future__ import annotations

import csv
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

pytest.importorskip("cryptography")

import mtcd
from boosting import SETTINGS, samples
from mtcd.core.errors import MtcdError
from mtcd.data.tables import TableShare, read_tables
from mtcd.federation.node.predicting import Predictor, new_samples, writer
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.models.trees.party.block import read_additive_block
from mtcd.models.trees.problem import AdditiveProblem
from mtcd.models.trees.training import additive_method
from mtcd.network.topology import make_network
from mtcd.protocol.party import Parties
from mtcd.testing.simulator.invariants import check_lone_token, check_server
from mtcd.testing.simulator.world import Faults, World, make_with
from patients import CLIENTS, patients
from prepared_federations import federate, own_tables
from restored_parties import restore_after_every_message
from waiting import PATIENCE

# new samples have categories that no training row has
pytestmark = pytest.mark.filterwarnings("ignore::mtcd.core.errors.DataWarning")

DATA = mtcd.split(*samples("values", n=40, d=6), 3)
PROBLEM = AdditiveProblem.of(mtcd.Trees("squared", **{**SETTINGS, "rows": 0.8}), DATA, 7)
NETWORK = make_network("complete", DATA.clients)
FAULTS = Faults(loss=0.05, duplicate=0.1, crash=0.01, cut=0.01, hang=0.01)


def parties_of(method: Any) -> Parties:
    return additive_method(method, PROBLEM.families).parties(PROBLEM, NETWORK, 7)


def test_a_lone_token_of_trees_survives_faults() -> None:
    world = World(
        lambda: parties_of(mtcd.STCD()), 1, make_with(make_reliable_party, NETWORK), FAULTS
    )
    while world.time < 700:
        world.report_truth(NETWORK)
        world.step()
        if world.time % 50 == 0:
            check_lone_token(world, PROBLEM)
    assert check_lone_token(world, PROBLEM).hop > 30
    assert world.happened["crash"] > 2


@pytest.mark.parametrize(
    "method", [mtcd.MTCD(tokens=2, hops=2), mtcd.MTCD(clusters=[[0, 1], [2]], hops=2)]
)
def test_tokens_of_trees_and_their_server_survive_faults(method: Any) -> None:
    world = World(lambda: parties_of(method), 2, make_with(make_reliable_party, NETWORK), FAULTS)
    while world.time < 500:
        world.report_truth(NETWORK)
        world.step()
        if world.time % 50 == 0:
            check_server(world, PROBLEM)
    assert len(world.reports) > 5
    assert world.happened["crash"] > 2


@pytest.mark.parametrize(
    "method",
    [
        mtcd.STCD(local_updates=2),
        mtcd.MTCD(tokens=2, hops=3),
        mtcd.MTCD(tokens=2, hops=2, combine="optimal"),
    ],
)
def test_a_party_with_trees_goes_on_from_its_journal(method: Any) -> None:
    restore_after_every_message(lambda: parties_of(method), 25)


MODEL = {"kind": "trees", "loss": "logistic", "min_samples": 5, "learning_rate": 0.3, "rows": 0.9}
TRAINING: dict[str, Any] = {
    "model": MODEL,
    "method": {"kind": "mtcd", "tokens": 2, "hops": 3},
    "stop": {"iterations": 12},
}


def federate_trees(folder: Path, paths: dict[str, Path], **changes: Any) -> Any:
    return federate(folder, paths, None, **{**TRAINING, **changes})


def test_parties_with_trees_train_and_predict_as_one_process_would(tmp_path: Path) -> None:
    table = patients(120).sort("patient")  # a federation agrees on the sorted ids
    paths = own_tables(tmp_path / "tables", table, whole=True)
    bundles, told = federate_trees(tmp_path, paths, holdout=0.25)
    shares = {name: TableShare(path, CLIENTS[name]) for name, path in paths.items()}
    data = read_tables(paths["clinic"], "outcome", shares, id="patient", prepare="trees").holdout(
        0.25
    )
    method = mtcd.MTCD(tokens=2, hops=3)
    model = mtcd.Trees(**{key: value for key, value in MODEL.items() if key != "kind"})
    one = mtcd.train(
        data, model, bundles["clinic"].config.network, method, mtcd.Stop(iterations=12)
    )
    for k, name in enumerate(CLIENTS):
        block = told.blocks[name]
        np.testing.assert_array_equal(
            block.part.margins(data.blocks[k]), one.parts[name].margins(data.blocks[k])
        )
    summary = json.loads((tmp_path / "runs" / "clinic" / "summary.json").read_text())
    assert summary["metrics"]["test_auc"] == pytest.approx(one.evaluate(data.test)["auc"])

    new = patients(40, seed=5).with_columns(sex=pl.lit("unheard of"), marker=pl.lit(None))
    files = own_tables(tmp_path / "new", new, whole=True)
    predictors = []
    for name in CLIENTS:
        fresh = new_samples(bundles[name], tmp_path / "runs" / name, files[name], "patient")
        written = writer(bundles[name].config, tmp_path / f"{name}.csv")
        predictors.append(Predictor(bundles[name], fresh, written, None, None))
    with ThreadPoolExecutor(3) as pool:
        for future in [pool.submit(predictor.run) for predictor in predictors]:
            future.result(PATIENCE)
    with (tmp_path / "clinic.csv").open() as file:
        rows = {row["id"]: float(row["p_ill"]) for row in csv.DictReader(file)}
    expected = dict(
        zip(new["patient"], one.predict_proba(new.drop("patient", "outcome"))[:, 1], strict=True)
    )
    assert len(rows) == 40
    np.testing.assert_allclose([rows[key] for key in expected], list(expected.values()), atol=1e-8)


def test_mixed_families_in_a_federation_are_those_of_one_process(tmp_path: Path) -> None:
    paths = own_tables(tmp_path / "tables", patients(90, seed=4).sort("patient"), whole=True)
    parties: dict[str, Any] = {
        "clinic": {"kind": "trees", "min_samples": 5},
        "lab": "linear",
        "insurer": "trees",
    }
    model, method = {"loss": "logistic", "parties": parties}, {"kind": "stcd", "walk": "tour"}
    bundles, told = federate_trees(
        tmp_path, paths, model=model, method=method, server=None, stop={"iterations": 9}
    )
    shares = {name: TableShare(path, CLIENTS[name]) for name, path in paths.items()}
    prepare = {"clinic": "trees", "lab": "auto", "insurer": "trees"}
    data = read_tables(paths["clinic"], "outcome", shares, id="patient", prepare=prepare)
    tour, stop = mtcd.STCD(walk="tour"), mtcd.Stop(iterations=9)
    one = mtcd.train(
        data, mtcd.Mixed("logistic", parties), bundles["clinic"].config.network, tour, stop
    )
    for k, name in enumerate(CLIENTS):
        X = data.blocks[k]
        np.testing.assert_array_equal(told.blocks[name].part.margins(X), one.parts[name].margins(X))


def test_a_spoilt_block_of_trees_is_refused(tmp_path: Path) -> None:
    paths = own_tables(tmp_path / "tables", patients(60), whole=True)
    federate_trees(tmp_path, paths, method={"kind": "stcd"}, server=None, stop={"iterations": 4})
    folder = tmp_path / "runs" / "lab"
    assert read_additive_block(folder).party == "lab"
    with np.load(folder / "block.npz") as stored:
        arrays = {name: stored[name] for name in stored.files}
    np.savez(folder / "block.npz", **{**arrays, "part/trees": arrays["part/trees"][:40]})
    with pytest.raises(MtcdError, match="not a whole block"):
        read_additive_block(folder)
