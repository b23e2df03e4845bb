"""Federations with randomised labels: the model of one process, and what leaves the label
holder."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("zenoh")

import mtcd
from federations import changed
from live import engine_of, federate, in_process, own_table_of, unobserved
from mtcd.core.errors import ConfigError
from mtcd.federation.file import check_federation, check_keys
from mtcd.federation.node import link
from mtcd.federation.participant.keeping import OWN_METRICS, read_metrics
from mtcd.federation.participant.kinds import participant_of
from mtcd.federation.participant.labels import labels_to_bytes
from mtcd.privacy.labels.draws import TableDraws

HOLDER = "client_0"
OPEN: dict[str, Any] = {
    "model": {"kind": "logistic", "l2": 1.0},
    "method": {"kind": "stcd"},
    "privacy": {"labels": {"epsilon": 1.0}},
    "server": None,
    "stop": {"iterations": 12},
}
MASKED = OPEN | {
    "method": {"kind": "mtcd", "tokens": 2, "hops": 3, "combine": "average"},
    "privacy": {"aggregation": "masked", "labels": {"epsilon": 1.0}},
    "server": "127.0.0.1:7000",
}
SEALED = OPEN | {
    "method": {"kind": "stcd", "walk": "tour"},
    "privacy": {"mode": "sealed", "labels": {"epsilon": 1.0}},
    "labels__shared_with": None,
    "stop": {"iterations": 2},
}
SOFT = SEALED | {"privacy": {"mode": "sealed", "labels": {"soft": 0.125}}}
TREES = OPEN | {"model": {"kind": "trees", "loss": "logistic", "min_samples": 5}}


def table(clients: int = 3) -> mtcd.VerticalData:
    return mtcd.synthetic("logistic", samples=120, features=6 * clients, clients=clients, seed=5)


class Sent:
    """All bytes that the parties of this process send."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bodies: list[bytes] = []
        post = link.Link.post

        def noted(here: Any, to: str, kind: str, body: bytes, done: Any) -> None:
            self.bodies.append(bytes(body))
            post(here, to, kind, body, done)

        monkeypatch.setattr(link.Link, "post", noted)

    def has(self, labels: Any) -> bool:
        """Whether these labels are in any message, in one of the forms that numbers have."""
        _, _, packed = labels_to_bytes(labels).partition(b"\n")
        forms = [packed, *(labels.astype(form).tobytes() for form in ("<f8", "<i8", "u1", "<f4"))]
        return any(form in body for form in forms for body in self.bodies)


def released_of(data: mtcd.VerticalData, engine: Any) -> mtcd.VerticalData:
    """The data with the labels that the parties got."""
    bundle = engine.bundles[HOLDER]
    participant = engine.participant(bundle)
    assert (participant.table.true_labels == data.labels).all()
    return replace(data, labels=participant.table.labels)


@pytest.mark.parametrize("settings", [OPEN, MASKED, SEALED], ids=["open", "masked", "sealed"])
def test_true_labels_are_in_no_message_and_the_model_is_that_of_one_process(
    tmp_path: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    if settings is SEALED:
        pytest.importorskip("tenseal")
    data, sent = table(), Sent(monkeypatch)
    engine = engine_of(tmp_path, data, **settings)
    drawn = released_of(data, engine)
    found = unobserved(engine)
    assert not sent.has(data.labels)
    # the search does find labels that are sent
    assert sent.has(drawn.labels) == (settings is not SEALED)
    assert (drawn.labels != data.labels).mean() == pytest.approx(1 / (1 + np.e), abs=0.2)

    if settings is not MASKED:
        run = in_process(drawn, found.bundles[HOLDER])
        for name in data.clients:
            np.testing.assert_allclose(found.blocks[name].theta, run.parameters[name], atol=1e-9)


def test_soft_labels_are_in_no_message_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tenseal")
    data, sent = table(), Sent(monkeypatch)
    engine = engine_of(tmp_path, data, **SOFT)
    drawn = released_of(data, engine)
    assert 0.1 < (drawn.labels - data.labels).std() < 0.15
    found = unobserved(engine)
    assert sent.bodies
    assert not sent.has(data.labels)
    assert not sent.has(drawn.labels)

    run = in_process(drawn, found.bundles[HOLDER])
    for name in data.clients:
        np.testing.assert_allclose(found.blocks[name].theta, run.parameters[name], atol=1e-9)


def test_without_it_the_search_finds_true_labels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, sent = table(), Sent(monkeypatch)
    federate(tmp_path, data, **OPEN | {"privacy": None})
    assert sent.has(data.labels)


def test_metrics_on_true_labels_stay_with_the_label_holder(tmp_path: Path) -> None:
    data = table()
    engine = engine_of(tmp_path, data, **OPEN | {"holdout": 0.25, "stop": {"iterations": 60}})
    drawn = released_of(data, engine)
    unobserved(engine)
    runs = tmp_path / "runs"
    own = json.loads((runs / HOLDER / OWN_METRICS).read_text())
    shown = read_metrics(runs / HOLDER)
    assert own.keys() == shown.keys()
    assert {"train_auc", "test_auc"} <= own.keys()
    assert own != shown

    # in no other folder, and in no log, which others may ask for
    assert [path.parent.name for path in runs.rglob(OWN_METRICS)] == [HOLDER]
    for path in runs.rglob("*.jsonl"):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        for event in events:
            told = {name: event[name] for name in own if name in event}
            assert told == pytest.approx({name: shown[name] for name in told}, rel=1e-9)
        said = any(
            "The metrics on the labels of the table" in one.get("text", "") for one in events
        )
        assert said == (path.parent.name == HOLDER)

    # of the predictions that the blocks give together, from scratch
    held = data.holdout(0.25, engine.bundles[HOLDER].config.seed)
    run = in_process(drawn.holdout(0.25, 0), engine.bundles[HOLDER])
    right = (run.predict(held.test) == held.test.labels).mean()
    assert own["test_accuracy"] == pytest.approx(right)


def test_own_metrics_count_labels_that_are_none_of_the_declared_classes_as_the_first(
    tmp_path: Path,
) -> None:
    data = table()
    labels = data.labels.copy()
    labels[:3] = 7.0
    settings = OPEN | {"privacy": {"labels": {"epsilon": 3.0, "classes": [0.0, 1.0]}}}
    engine = engine_of(tmp_path, replace(data, labels=labels), **settings)
    participant: Any = engine.participant(engine.bundles[HOLDER])
    drawn = replace(data, labels=participant.table.labels)
    unobserved(engine)
    own = json.loads((tmp_path / "runs" / HOLDER / OWN_METRICS).read_text())
    run = in_process(drawn, engine.bundles[HOLDER])
    counted = np.where(labels == 7.0, 0.0, labels)
    assert own["train_accuracy"] == pytest.approx((run.predict(data) == counted).mean())


def test_a_second_federation_and_a_restart_have_the_same_draws_and_spend_once(
    tmp_path: Path,
) -> None:
    data, path = table(), tmp_path / "labels.csv"
    path.write_text("outcome\n")
    engine = engine_of(tmp_path / "one", data, **OPEN)
    drawn = []
    for _ in range(2):
        bundle = engine.bundles[HOLDER]
        own = own_table_of(data, bundle)
        assert own is not None
        participant: Any = participant_of(bundle, replace(own, path=path))
        drawn.append(participant.table.labels)
        engine = engine_of(tmp_path / f"again {len(drawn)}", data, **OPEN)
    assert (drawn[0] == drawn[1]).all()
    [release] = TableDraws(path).releases()
    assert (release.holder, release.epsilon) == (HOLDER, 1.0)
    assert any("have spent epsilon 1 in 1 release" in note for note in participant.notes)


def test_trees_train_on_them(tmp_path: Path) -> None:
    pytest.importorskip("lightgbm")
    found = federate(tmp_path, table(), **TREES)
    assert {summary.status for summary in found.summaries.values()} == {"iterations"}


def test_networks_train_on_them(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    settings = OPEN | {
        "model": {"kind": "split", "client": "mlp", "fusion": "linear"},
        "method": {"kind": "stcd", "stepsize": 0.05, "batch": 20},
        "stop": {"epochs": 2},
    }
    engine = engine_of(tmp_path, table(), **settings)
    unobserved(engine)
    own = json.loads((tmp_path / "runs" / HOLDER / OWN_METRICS).read_text())
    assert "train_accuracy" in own


def test_draws_that_protect_nobody_are_refused_at_the_label_holder(tmp_path: Path) -> None:
    seeded = {"labels": {"epsilon": 1.0, "insecure_seeded_draws": True}}
    with pytest.raises(ConfigError, match="for studies in one process"):
        federate(tmp_path, table(), **OPEN | {"privacy": seeded})


def test_files_are_refused_before_bundles_are_made() -> None:
    for changes, words in (
        ({"model": {"kind": "huber"}}, "not linear in the label"),
        ({"model": {"kind": "logistic"}}, "l2 must be above 0"),
        ({"model": {"kind": "ridge"}}, "need a range"),
        ({"privacy": {"labels": {"epsilon": -1}}}, "epsilon"),
        ({"privacy": {"labels": {"soft": 0.125}}}, "rounding takes the noise off"),
    ):
        file = changed(**(OPEN | {"network": {"kind": "complete"}} | changes))
        with pytest.raises(ConfigError, match=words):
            check_federation(check_keys(file, "the file"))
