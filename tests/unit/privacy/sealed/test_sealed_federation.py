"""Sealed tours in a federation: the same model as in one process, restarts, and what the parties
wrote and sent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("tenseal")
pytest.importorskip("cryptography")

import mtcd
from federations import changed
from live import engine_of, in_process, unobserved
from mtcd.core.errors import ConfigError
from mtcd.federation.file import check_federation, check_keys
from mtcd.privacy.sealed import participant as sealed_participant
from mtcd.privacy.sealed.participant import KEY_FILE, columns_to_bytes
from mtcd.testing.federation_engine import FederationEngine

SEALED: dict[str, Any] = {
    "model": {"kind": "logistic", "l2": 1.0},
    "privacy": {"mode": "sealed"},
    "labels__shared_with": None,
    "network": {"kind": "path"},
    "stop": {"iterations": 2},
}
WITH_SERVER = SEALED | {"method": {"kind": "mtcd", "walk": "tour"}}
ALONE = SEALED | {"method": {"kind": "stcd", "walk": "tour"}, "server": None}


def table(clients: int = 2) -> mtcd.VerticalData:
    return mtcd.synthetic("logistic", samples=120, features=6 * clients, clients=clients, seed=5)


@pytest.mark.parametrize("settings", [WITH_SERVER, ALONE], ids=["server", "alone"])
def test_a_federation_trains_what_one_process_trains(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    data = table()
    found = unobserved(engine_of(tmp_path, data, **settings))
    run = in_process(data, found.bundles[data.clients[0]])
    for name in data.clients:
        assert (found.blocks[name].theta == run.parameters[name]).all()
    assert found.ledger == run.ledger
    assert not list(tmp_path.rglob(KEY_FILE))  # the key has served


def interrupted(
    folder: Path, data: mtcd.VerticalData, settings: dict[str, Any]
) -> tuple[FederationEngine, Any]:
    """A federation that was stopped after its first tour, and what it left."""
    engine = engine_of(folder, data, **settings)
    with engine:
        for progress in engine.run():
            if progress is not None and progress.hop == 1:
                break
        return engine, engine.snapshot()


def test_a_federation_that_is_interrupted_goes_on_with_the_key_of_its_folder(
    tmp_path: Path,
) -> None:
    data, settings = table(), WITH_SERVER | {"stop": {"iterations": 3}}
    engine, snapshot = interrupted(tmp_path, data, settings)
    [key] = tmp_path.rglob(KEY_FILE)
    assert key.parent.name == "server"
    assert key.stat().st_mode & 0o077 == 0
    again = type(engine)(engine.bundles, engine.folder, engine.participant)
    again.resume(snapshot)
    found = unobserved(again)
    run = in_process(data, found.bundles[data.clients[0]])
    for name in data.clients:
        assert (found.blocks[name].theta == run.parameters[name]).all()


@pytest.mark.parametrize("settings", [WITH_SERVER, ALONE], ids=["server", "alone"])
def test_the_key_holder_ends_a_training_on_a_plateau(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    data, rule = table(), {"patience": 1, "min_improvement": 0.2}
    found = unobserved(
        engine_of(tmp_path, data, **settings | {"stop": {"plateau": rule, "iterations": 9}})
    )
    run = in_process(data, found.bundles[data.clients[0]])
    assert run.status == "plateau"
    assert 0 < run.final.iteration < 9
    for summary in found.summaries.values():
        assert (summary.status, summary.iterations) == ("plateau", run.final.iteration)
    for name in data.clients:
        assert (found.blocks[name].theta == run.parameters[name]).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels__shared_with": "parties"}, "labels stay with their holder"),
        ({"holdout": 0.2}, "scores of the held-out samples"),
        ({"model": {"kind": "huber"}}, "a loss of the form"),
        (
            {
                "stop": {"plateau": 0.01, "iterations": 9},
                "privacy": {"mode": "sealed", "dp": {"epsilon": 3.0}},
            },
            "does not count",
        ),
    ],
)
def test_files_that_would_tell_more_are_refused(changes: dict[str, Any], words: str) -> None:
    file = changed(**(WITH_SERVER | {"network": {"kind": "complete"}} | changes))
    with pytest.raises(ConfigError, match=words):
        check_federation(check_keys(file, "the file"))


def test_a_column_that_singles_out_rows_ends_the_opening(tmp_path: Path) -> None:
    data = table()
    spoilt = np.array(data.blocks[0])
    spoilt[:, 0] = 0.0
    spoilt[7, 0] = 1.0
    data = replace(data, blocks=(spoilt, *data.blocks[1:]))
    with pytest.raises(mtcd.MtcdError, match="differs from its usual value in 1 rows only"):
        unobserved(engine_of(tmp_path, data, **WITH_SERVER))


def test_the_label_holder_refuses_what_a_party_has_declared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half as many columns as samples; the party itself would not have asked to take part."""
    monkeypatch.setattr(
        sealed_participant, "columns_to_bytes", lambda columns: columns_to_bytes(60)
    )
    with pytest.raises(mtcd.MtcdError, match="has 60 columns .*accept_revealed_labels"):
        unobserved(engine_of(tmp_path, table(), **WITH_SERVER))


def test_a_party_that_has_declared_other_columns_than_it_has_does_not_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sealed_participant, "columns_to_bytes", lambda columns: columns_to_bytes(columns - 1)
    )
    with pytest.raises(
        mtcd.MtcdError, match="number of columns is not what this party has declared"
    ):
        unobserved(engine_of(tmp_path, table(), **WITH_SERVER))


def test_a_federation_that_ends_at_the_cap_says_its_estimated_gap(tmp_path: Path) -> None:
    data = table()
    found = unobserved(engine_of(tmp_path, data, **ALONE | {"stop": {"iterations": 9}}))
    holder, other = (found.summaries[name] for name in data.clients)
    assert holder.iterations == other.iterations == 3
    assert any(
        "at the cap of 3 tours" in note and "estimated gap is" in note for note in holder.notes
    )
    assert any(
        "at the cap of 3 tours" in note and "at the label holder" in note for note in other.notes
    )


@pytest.mark.long
def test_a_private_federation_has_secret_noise_and_ends_with_its_budget(tmp_path: Path) -> None:
    dp = {"epsilon": 8.0, "tours": 2, "parties": {"client_1": 3.0}}
    settings = WITH_SERVER | {"privacy": {"mode": "sealed", "dp": dp}, "stop": {"iterations": 9}}
    data = table()
    engine, snapshot = interrupted(tmp_path, data, settings)
    again = type(engine)(engine.bundles, engine.folder, engine.participant)
    # no gradient is released twice: the answers are in the journal of the server
    again.resume(snapshot)
    found = unobserved(again)
    run = in_process(data, found.bundles[data.clients[0]])
    assert run.final.iteration == 2
    assert any((found.blocks[name].theta != run.parameters[name]).any() for name in data.clients)
    [summary] = [path for path in tmp_path.rglob("summary.json") if path.parent.name == "client_0"]
    assert "The budget is spent" in summary.read_text()
    assert "protects nobody" not in summary.read_text()
