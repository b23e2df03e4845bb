"""Hold-outs of federations: samples, models and metrics of one process, and labels that stay with
their holder."""

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from killed_at_end import KilledAtEnd, KilledBeforeVerdict, run_killing
from killed_at_end import impatient as impatient
from live import (
    Federated,
    engine_of,
    federate,
    in_process,
    make_bundles,
    nodes_of,
    run_all,
    unobserved,
)
from mtcd.core.errors import DataError, DataWarning
from mtcd.data.draws import drawn_holdout
from mtcd.data.tables import TableShare, read_tables
from mtcd.data.vertical import VerticalData
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.node import final_check
from mtcd.federation.node.aligning import agreement
from mtcd.federation.node.opening import Agreed
from mtcd.federation.participant.held_out import check_fits
from mtcd.federation.participant.keeping import read_metrics, read_summary
from mtcd.federation.participant.labels import labels_from_bytes
from mtcd.federation.participant.table import read_party_table
from mtcd.federation.transport import HEAD_BYTES
from mtcd.models.glm.model import Glm
from mtcd.models.glm.party.problem import own_part
from mtcd.training.run import Run
from own_parts import bundles as bundle_configs
from patients import CLIENTS
from prepared_federations import OWN, TABLE, own_tables
from prepared_federations import federate as federate_tables
from problems import make_data

FRACTION, SEED, SAMPLES = 0.25, 5, 40
METHODS: dict[str, dict[str, Any]] = {
    "stcd": {"method": {"kind": "stcd", "stepsize": 0.02}, "server": None},
    "mtcd": {"method": {"kind": "mtcd", "tokens": 2, "hops": 4, "stepsize": 0.02}},
    "batches": {"method": {"kind": "mtcd", "tokens": 1, "hops": 3, "stepsize": 0.02, "batch": 8}},
    "dcpa": {"method": {"kind": "dcpa", "stepsize": 0.1}, "server": None},
}
HOLDER, OTHER, LAST = "c0", "c1", "c2"


def settings(kind: str, method: str, **changes: Any) -> dict[str, Any]:
    model = {"kind": kind, "l2": 1.0, "intercept": True}
    common = {
        "model": model,
        "stop": {"iterations": 30},
        "standardise": True,
        "seed": SEED,
        "holdout": FRACTION,
    }
    return common | METHODS[method] | changes


def table(kind: str = "logistic") -> VerticalData:
    """Columns of different scales, so that it matters on which rows these are measured."""
    data = make_data(Glm(kind), SAMPLES, [2, 3, 1], seed=4)
    return replace(
        data, blocks=tuple(np.asarray(X) * (3.0 + k) + 1 for k, X in enumerate(data.blocks))
    )


def expected_of(run: Run, held: VerticalData) -> dict[str, float]:
    assert held.test is not None
    parts = {"train": replace(held, test=None), "test": held.test}
    return {
        f"{part}_{name}": value
        for part, data in parts.items()
        for name, value in run.evaluate(data).items()
    }


def assert_same_model(told: Federated, run: Run) -> None:
    for name, block in told.blocks.items():
        np.testing.assert_allclose(block.theta, run.parameters[name], rtol=0, atol=1e-9)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("logistic", "stcd"),
        ("logistic", "mtcd"),
        ("multinomial", "mtcd"),
        ("ridge", "stcd"),
        ("ridge", "batches"),
        ("ridge", "dcpa"),
    ],
)
def test_model_and_metrics_are_those_of_one_process_with_the_same_hold_out(
    kind: str, method: str, tmp_path: Path
) -> None:
    data = table(kind)
    told = federate(tmp_path, data, **settings(kind, method))
    held = data.holdout(FRACTION, SEED)
    one = in_process(held, told.bundles[HOLDER])
    assert_same_model(told, one)
    metrics = told.summaries[HOLDER].metrics
    assert metrics == pytest.approx(expected_of(one, held), rel=1e-9, abs=1e-9)
    assert read_metrics(tmp_path / "runs" / HOLDER) == metrics
    events = [
        json.loads(line)
        for line in (tmp_path / "runs" / HOLDER / "log.jsonl").read_text().splitlines()
    ]
    *_, said = [one for one in events if one["event"] == "metrics"]
    assert "On the held-out samples: test_" in said["text"]
    assert said.items() >= metrics.items()
    assert any(
        "Held out for the test: 10 of 40 samples, drawn with seed 5." in one.get("text", "")
        for one in events
    )
    for name, summary in told.summaries.items():
        assert summary.unjudged == ""
        assert name == HOLDER or not any(key.startswith("test_") for key in summary.metrics)


@pytest.mark.long
def test_prepared_columns_are_fitted_on_the_training_rows(tmp_path: Path) -> None:
    # a federation agrees on the sorted ids
    paths = own_tables(tmp_path / "tables", TABLE.sort("patient"))
    bundles, told = federate_tables(tmp_path, paths, holdout=FRACTION)
    shares = {name: TableShare(path, CLIENTS[name]) for name, path in paths.items()}
    with pytest.warns(DataWarning, match="hashed into 32 columns"):
        data = read_tables(paths["clinic"], "outcome", shares, id="patient", prepare=OWN)
    held = data.holdout(FRACTION, bundles["clinic"].config.seed)
    one = in_process(held, bundles["clinic"])
    assert_same_model(told, one)
    expected = expected_of(one, held)
    assert told.summaries["clinic"].metrics == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("method", ["stcd", "mtcd"])
def test_held_out_labels_stay_with_their_holder(method: str, tmp_path: Path) -> None:
    data = table("ridge")
    told = federate(tmp_path, data, **settings("ridge", method))
    rows, apart, _ = drawn_holdout(FRACTION, SAMPLES, SEED)
    agreed = Agreed.unpacked((tmp_path / "runs" / OTHER / "agreed.bin").read_bytes())
    np.testing.assert_array_equal(labels_from_bytes(agreed.labels, len(rows))[0], data.labels[rows])
    secret = [float(label).hex().encode() for label in data.labels[apart]]
    secret += [np.float64(label).tobytes() for label in data.labels[apart]]
    for name in told.bundles:
        for path in (tmp_path / "runs" / name).iterdir():
            assert not any(label in path.read_bytes() for label in secret), path


def test_a_run_that_is_interrupted_ends_with_the_same_metrics(tmp_path: Path) -> None:
    data = table()
    whole = federate(tmp_path / "whole", data, **settings("logistic", "mtcd"))
    engine = engine_of(tmp_path / "stopped", data, **settings("logistic", "mtcd"))
    with engine:
        assert next(told for told in engine.run() if told is not None and told.hop >= 12)
    assert not list((tmp_path / "stopped").rglob("summary.json"))
    again = type(engine)(engine.bundles, engine.folder, engine.participant)
    assert unobserved(again).summaries[HOLDER].metrics == whole.summaries[HOLDER].metrics


@pytest.mark.usefixtures("impatient")
def test_a_party_away_at_the_end_is_named_and_a_restart_of_all_gives_the_metrics(
    tmp_path: Path,
) -> None:
    data, held = table(), table().holdout(FRACTION, SEED)
    bundles = make_bundles(tmp_path, data.clients, **settings("logistic", "stcd"))
    run_killing(nodes_of(tmp_path, bundles, data, LAST, KilledAtEnd), LAST)
    message = read_summary(tmp_path / "runs" / HOLDER).message
    assert f"The held-out samples are not evaluated: {LAST} took no part" in message
    assert "diverged" not in message, "the token told that it has not"
    assert set(run_all(nodes_of(tmp_path, bundles, data)).values()) == {"iterations"}
    summary = read_summary(tmp_path / "runs" / HOLDER)
    assert summary.unjudged == ""
    expected = expected_of(in_process(held, bundles[HOLDER]), held)
    assert summary.metrics == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.usefixtures("impatient")
def test_a_holder_killed_after_the_evaluation_still_has_the_metrics(tmp_path: Path) -> None:
    data, held = table(), table().holdout(FRACTION, SEED)
    bundles = make_bundles(tmp_path, data.clients, **settings("logistic", "stcd"))
    run_killing(nodes_of(tmp_path, bundles, data, HOLDER, KilledBeforeVerdict), HOLDER)
    assert run_all(nodes_of(tmp_path, {HOLDER: bundles[HOLDER]}, data)) == {HOLDER: "iterations"}
    expected = expected_of(in_process(held, bundles[HOLDER]), held)
    assert read_summary(tmp_path / "runs" / HOLDER).metrics == pytest.approx(
        expected, rel=1e-9, abs=1e-9
    )


def test_an_outlier_among_held_out_samples_is_no_divergence(tmp_path: Path) -> None:
    data = table()
    blocks = [np.array(X) for X in data.blocks]
    blocks[1][drawn_holdout(FRACTION, SAMPLES, SEED)[1][0], 0] = 1e14
    told = federate(tmp_path, replace(data, blocks=tuple(blocks)), **settings("logistic", "mtcd"))
    assert {one.status for one in told.summaries.values()} == {"iterations"}
    assert "train_auc" in told.summaries[HOLDER].metrics
    assert "test_auc" not in told.summaries[HOLDER].metrics
    assert (
        "no metrics on the held-out samples"
        in (tmp_path / "runs" / HOLDER / "log.jsonl").read_text()
    )


def test_a_metric_that_is_not_defined_is_left_out(tmp_path: Path) -> None:
    data = table()
    labels = np.array(data.labels)
    labels[drawn_holdout(FRACTION, SAMPLES, SEED)[1]] = 1.0
    told = federate(tmp_path, replace(data, labels=labels), **settings("logistic", "stcd"))
    metrics = told.summaries[HOLDER].metrics
    assert {"train_auc", "test_accuracy"} <= metrics.keys(), "held-out samples may be of one class"
    assert "test_auc" not in metrics


def spoilt(data: VerticalData) -> VerticalData:
    labels = np.array(data.labels)
    labels[drawn_holdout(FRACTION, SAMPLES, SEED)[1][0]] = "z"
    return replace(data, labels=labels)


@pytest.mark.parametrize(
    ("data", "holdout", "why"),
    [
        (
            table("multinomial"),
            0.01,
            "holdout: A fraction of 0.01 cannot be held out of 40 samples.*another holdout",
        ),
        (
            table("multinomial"),
            0.99,
            "holdout: A fraction of 0.99 cannot be held out of 40 samples",
        ),
        (
            spoilt(table("multinomial")),
            FRACTION,
            "holdout: The label 'z' is of a class that no training sample has",
        ),
    ],
)
def test_what_cannot_be_held_out_ends_the_opening(
    data: VerticalData, holdout: float, why: str, tmp_path: Path
) -> None:
    with pytest.raises(DataError, match=why):
        federate(tmp_path, data, **settings("multinomial", "mtcd", holdout=holdout))
    assert not list(tmp_path.rglob("agreed.bin"))


def test_an_error_about_held_out_rows_holds_no_value(tmp_path: Path) -> None:
    """Other parties see why a party refuses to prepare."""
    (tmp_path / "t.csv").write_text("city\nRome\nOslo\nRome\nParis\n")
    table = read_party_table(tmp_path / "t.csv", "a", None, None, prepare={"on_unseen": "error"})
    config = bundle_configs(("a", "b"))["a"]
    assert own_part(config, table, [0, 1], np.array([0.0, 1.0]), [2]).held_out.tolist() == [
        [0.0, 1.0, 0.0]
    ]
    with pytest.raises(
        DataError, match="held-out rows of 'a' cannot be prepared.*on_unseen: ignore"
    ) as error:
        own_part(config, table, [0, 1, 2], np.array([0.0, 1.0, 1.0]), [3])
    assert "Paris" not in str(error.value)


def test_what_does_not_fit_into_a_message_is_refused() -> None:
    config, without = (
        bundle_configs(("a", "b"), holdout=holdout, limits={"message_mb": 1})["a"]
        for holdout in (FRACTION, None)
    )
    check_fits(100_000, config)
    with pytest.raises(
        DataError, match=r"do not fit into a message of 1 MB.*larger limits\.message_mb"
    ):
        check_fits(131_000, config)
    check_fits(131_000, without)


def test_bundles_with_and_without_a_hold_out_do_not_mix(tmp_path: Path) -> None:
    bundles = make_bundles(tmp_path, ("a", "b"))
    assert "holdout" not in (tmp_path / "bundles" / "a" / "party.yaml").read_text()
    assert bundles["a"].config.holdout is None
    other = bundles["a"].config.model_copy(update={"holdout": FRACTION})
    assert agreement(other, "training") != agreement(bundles["a"].config, "training")
    (tmp_path / "with").mkdir()
    assert make_bundles(tmp_path / "with", ("a", "b"), holdout=0.3)["b"].config.holdout == 0.3
    assert read_bundle(tmp_path / "with" / "bundles" / "server").config.holdout == 0.3


class Asked(SimpleNamespace):
    """A request of the holder, and what became of it."""

    said: Any = None

    def answer(self, body: bytes = b"") -> None:
        self.said = body

    def drop(self) -> None:
        self.said = "dropped"


def test_a_party_takes_part_only_with_the_block_of_the_token_that_ended_the_run(
    tmp_path: Path,
) -> None:
    bundle = make_bundles(tmp_path, ("a", "b", "c"), holdout=FRACTION)["b"]
    rpc = SimpleNamespace(
        on=lambda kind, handler: None, seal=SimpleNamespace(certificate=b"certificate")
    )
    loop, kept = (
        SimpleNamespace(later=lambda seconds, act: None),
        SimpleNamespace(final_check=lambda: None),
    )
    context: Any = SimpleNamespace(rpc=rpc, rpc_client=None, loop=loop, log=None)
    own: Any = SimpleNamespace(term=None, evidence=lambda: np.zeros(3))
    concluded: list[Any] = []
    one = final_check.FinalCheck(context, bundle.config, "run7", own, kept)  # type: ignore[arg-type]
    one.begin(concluded.append)
    one._announce(final_check.Outcome(away=("a",)))
    assert not concluded, "the end was undone"
    for term, body, said in [
        (None, b"run7", "dropped"),
        (0, b"run7", b"certificate"),
        (0, b"run7 4", "dropped"),
        (4, b"run7", "dropped"),
        (4, b"run7 4", b"certificate"),
    ]:
        own.term, asked = term, Asked(sender="a", body=body)
        one._send_certificate(asked)
        assert asked.said == said, (term, body)


def test_outputs_fit_up_to_the_last_byte_of_a_message() -> None:
    """Eight bytes a number and two more of them, and the heads of all parties, in one megabyte."""
    config: Any = SimpleNamespace(
        holdout=0.2, limits=SimpleNamespace(message_mb=1), parties=["a", "b", "c"]
    )
    most = (2**20 - 3 * HEAD_BYTES) // 8 - 2
    check_fits(most, config)
    with pytest.raises(DataError, match="do not fit into a message of 1 MB"):
        check_fits(most + 1, config)
    config.holdout = None
    check_fits(most + 1, config)
