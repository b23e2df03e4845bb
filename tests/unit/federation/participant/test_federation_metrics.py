"""Metrics at the end of a federation: at the party that knows the labels and the aggregate, and
nowhere else."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from live import Federated, federate, in_process
from mtcd.data.vertical import VerticalData
from mtcd.federation.participant.keeping import keep_metrics, keep_run, read_metrics, read_summary
from mtcd.models.glm.model import Glm
from problems import make_data

METHODS: dict[str, dict[str, Any]] = {
    "mtcd": {"method": {"kind": "mtcd", "tokens": 2, "hops": 4, "stepsize": "auto"}},
    "stcd": {"method": {"kind": "stcd", "stepsize": "auto"}, "server": None},
}
MODELS = {"logistic": "auc", "multinomial": "log_loss", "ridge": "r2"}


def trained(folder: Path, kind: str, **changes: Any) -> tuple[VerticalData, Federated]:
    data = make_data(Glm(kind), 40, [2, 3, 1], seed=4)
    model = {"kind": kind, "l2": 1.0, **({} if kind == "ridge" else {"intercept": True})}
    return data, federate(folder, data, model=model, stop={"iterations": 30}, **changes)


@pytest.mark.parametrize(
    ("kind", "method"), [*((kind, "mtcd") for kind in MODELS), ("logistic", "stcd")]
)
def test_they_are_those_of_the_same_training_in_one_process(
    kind: str, method: str, tmp_path: Path
) -> None:
    data, told = trained(tmp_path, kind, **METHODS[method])
    expected = in_process(data, told.bundles["c0"]).evaluate(data)
    knowing = {name: one.metrics for name, one in told.summaries.items() if one.metrics}
    assert len(knowing) == 1
    if method == "mtcd":
        assert list(knowing) == ["c0"], "the label holder"
    name, metrics = knowing.popitem()
    assert f"train_{MODELS[kind]}" in metrics
    assert metrics == pytest.approx(
        {f"train_{one}": value for one, value in expected.items()}, rel=1e-6
    )
    events = [
        json.loads(line)
        for line in (tmp_path / "runs" / name / "log.jsonl").read_text().splitlines()
    ]
    said = [one for one in events if one["event"] == "metrics"]
    assert len(said) == 1
    assert "On the training samples at the end: " in said[0]["text"]


def test_a_diverged_training_has_none(tmp_path: Path) -> None:
    _, told = trained(
        tmp_path, "ridge", method={"kind": "mtcd", "tokens": 2, "hops": 4, "stepsize": 100.0}
    )
    assert {one.status for one in told.summaries.values()} == {"diverged"}
    assert not any(one.metrics for one in told.summaries.values())


def test_they_are_kept_and_summaries_of_before_have_none(tmp_path: Path) -> None:
    _, told = trained(tmp_path, "logistic", **METHODS["mtcd"])
    summary = told.summaries["c0"]
    keep_metrics(tmp_path, summary.metrics)
    assert read_metrics(tmp_path) == summary.metrics, "after a restart they are read from here"
    (tmp_path / "metrics.json").write_text("[1")
    assert read_metrics(tmp_path) == {}
    keep_run(tmp_path, summary, {})
    assert read_summary(tmp_path) == summary
    stored = json.loads((tmp_path / "summary.json").read_text())
    del stored["metrics"]
    (tmp_path / "summary.json").write_text(json.dumps(stored))
    assert read_summary(tmp_path) == replace(summary, metrics={})
