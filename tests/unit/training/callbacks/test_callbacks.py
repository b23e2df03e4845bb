"""Callbacks: what they see, how they end a training, the built-in ones, and what the writers
wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from commands import outcome
from commands import run as command
from mtcd.core.errors import ConfigError
from mtcd.training.callbacks.callback import CALLBACKS, Callback, Moment
from problems import MODELS, make_data

LOGISTIC, RIDGE = MODELS[5], MODELS[0]
DATA = make_data(LOGISTIC, 60, [2, 3, 1, 2], seed=3)
METHOD = mtcd.MTCD(2, 3, 2, 0.01)


def train(*callbacks: Callback, stop: int = 90, **how: Any) -> mtcd.Run:
    given: dict[str, Any] = {"data": DATA, "model": LOGISTIC, "network": "cycle", "method": METHOD}
    return mtcd.train(**{**given, **how}, stop=mtcd.Stop(iterations=stop), callbacks=callbacks)


class Recorder(Callback):
    """Notes every call."""

    def __init__(
        self, stop_at: int | None = None, hook: str = "on_measure", fail: str | None = None
    ) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.stop_at, self.hook, self.fail = stop_at, hook, fail

    def note(self, hook: str, told: Any) -> None:
        self.calls.append((hook, told))
        if hook == self.fail:
            raise RuntimeError("a mistake")
        if (
            hook == self.hook
            and isinstance(told, Moment)
            and told.measurement.iteration == self.stop_at
        ):
            told.stop("far enough")

    def on_start(self, info: Any) -> None:
        self.note("on_start", info)

    def on_measure(self, moment: Moment) -> None:
        self.note("on_measure", moment)

    def on_sync(self, moment: Moment) -> None:
        self.note("on_sync", moment)

    def on_end(self, run: mtcd.Run) -> None:
        self.note("on_end", run)

    def close(self) -> None:
        self.note("close", None)

    def of(self, hook: str) -> list[Any]:
        return [told for name, told in self.calls if name == hook]


def test_hooks_are_called_in_order_with_the_rows_of_the_history() -> None:
    seen, plain = Recorder(), train()
    run = train(seen, watch=lambda row, fraction: None)
    assert [hook for hook, _ in seen.calls][:2] == ["on_start", "on_measure"]
    assert [hook for hook, _ in seen.calls][-2:] == ["on_end", "close"]
    assert [moment.measurement for moment in seen.of("on_measure")] == list(run.history)
    assert len(seen.of("on_sync")) == run.final.syncs == 30
    assert seen.of("on_end") == [run]
    # watching changes nothing
    assert run.parameters["c0"].tobytes() == plain.parameters["c0"].tobytes()
    info = seen.of("on_start")[0]
    assert (info.clients, info.settings["method.hops"], info.settings["clients"]) == (
        DATA.clients,
        3,
        4,
    )


@pytest.mark.parametrize(
    "method", [METHOD, mtcd.STCD(2, 0.01), mtcd.DCPA(stepsize=0.01), mtcd.TreeCG()]
)
def test_a_moment_gives_the_model_of_its_measurement(method: Any) -> None:
    found = []

    class Look(Callback):
        def on_measure(self, moment: Moment) -> None:
            found.append((moment.model, moment.measurement, moment.fraction))

    how = {"data": make_data(RIDGE, 30, [2, 3, 1], seed=3), "model": RIDGE, "method": method}
    train(Look(), stop=20, **how)
    problem = RIDGE.problem(how["data"])
    assert len(found) > 3
    for model, row, fraction in found:
        assert problem.evaluate(list(model.thetas)) == pytest.approx(row.objective, rel=1e-9)
        assert fraction == pytest.approx(min(row.iteration / 20, 1.0))


@pytest.mark.parametrize("hook", ["on_measure", "on_sync"])
def test_a_callback_ends_the_training_with_its_reason(hook: str, tmp_path: Path) -> None:
    run = train(Recorder(30, hook), Recorder(), checkpoint=tmp_path)
    assert (run.status, run.final.iteration) == ("stopped", 30)
    assert "by Recorder: far enough" in run.message
    assert run.parameters["c0"].tobytes() == train(stop=30).parameters["c0"].tobytes()
    run.save(tmp_path)
    assert mtcd.load_run(tmp_path).status == "stopped"
    assert (
        train(checkpoint=tmp_path, resume=True).parameters["c1"].tobytes()
        == train().parameters["c1"].tobytes()
    )


@pytest.mark.parametrize("hook", ["on_start", "on_measure", "on_sync", "on_end", "close"])
def test_a_callback_that_fails_is_named_and_the_training_can_be_resumed(
    hook: str, tmp_path: Path
) -> None:
    failing, other = Recorder(fail=hook), Recorder()
    with pytest.raises(
        mtcd.MtcdError, match=f"callback Recorder failed in {hook}: RuntimeError: a mistake"
    ):
        train(failing, other, checkpoint=tmp_path)
    assert [one.of("close") for one in (failing, other)] == [[None], [None]]
    if hook != "on_start":
        resumed = train(checkpoint=tmp_path, resume=True)
        assert resumed.parameters["c1"].tobytes() == train().parameters["c1"].tobytes()


@pytest.mark.parametrize("hook", ["state", "restore", "chosen"])
def test_one_that_fails_beside_the_training_is_named_too(hook: str, tmp_path: Path) -> None:
    train(mtcd.KeepBest(), stop=30, checkpoint=tmp_path)
    broken = type("KeepBest", (mtcd.KeepBest,), {hook: lambda self, *given: 1 / 0})
    with pytest.raises(
        mtcd.MtcdError, match=f"callback KeepBest failed in {hook}: ZeroDivisionError"
    ):
        train(broken(), checkpoint=tmp_path, resume=True)


# --- early stopping and the best model ------------------------------------------------------------


@pytest.mark.long
@given(patience=st.integers(1, 6), share=st.sampled_from([0.0, 1e-3, 1e-2]))
@settings(max_examples=8, deadline=None)
def test_early_stopping_ends_where_the_history_says(patience: int, share: float) -> None:
    rows = list(train(stop=3000).history)
    best, waited, expected = float("inf"), 0, rows[-1].iteration
    for row in rows:
        improved = best == float("inf") or best - row.objective > share * abs(best)
        best, waited = (row.objective, 0) if improved else (best, waited + 1)
        if waited == patience:
            expected = row.iteration
            break
    run = train(mtcd.EarlyStopping("objective", patience, share), stop=3000)
    assert run.final.iteration == expected
    assert (run.status == "stopped") == (expected < rows[-1].iteration)


def test_early_stopping_counts_on_after_a_break(tmp_path: Path) -> None:
    stopping = mtcd.EarlyStopping(patience=3, min_improvement=1e-3)
    whole = train(stopping, stop=3000)
    train(stopping, stop=whole.final.iteration // 2, checkpoint=tmp_path)
    again = train(stopping, stop=3000, checkpoint=tmp_path, resume=True)
    assert (again.status, again.final.objective) == ("stopped", whole.final.objective)
    at_once = train(stopping, stop=3000, checkpoint=tmp_path, resume=True)
    assert (at_once.status, at_once.final.iteration) == ("stopped", again.final.iteration)


def test_the_best_model_is_kept_by_objective_or_metric(tmp_path: Path) -> None:
    noisy = {"method": mtcd.SVFL(3, 0.15, batch=5)}
    run = train(mtcd.KeepBest(), stop=60, **noisy)
    best = min(run.history, key=lambda row: row.objective)
    assert best.iteration < run.final.iteration
    until = train(stop=best.iteration, **noisy)
    assert [theta.tobytes() for theta in run.parameters.values()] == [
        theta.tobytes() for theta in until.parameters.values()
    ]
    assert f"that of iteration {best.iteration}, with the best objective" in run.notes[-1]
    train(mtcd.KeepBest(), stop=best.iteration + 2, checkpoint=tmp_path, **noisy)
    resumed = train(mtcd.KeepBest(), stop=60, checkpoint=tmp_path, resume=True, **noisy)
    assert resumed.parameters["c2"].tobytes() == run.parameters["c2"].tobytes()
    assert resumed.notes == run.notes
    by_auc = train(mtcd.KeepBest("train_auc"), stop=60, **noisy)
    aucs = by_auc.history["train_auc"]
    assert f"train_auc: {np.nanmax(aucs):.6g}" in by_auc.notes[-1]


def test_a_training_resumes_with_other_callbacks(tmp_path: Path) -> None:
    train(mtcd.CsvWriter(tmp_path / "log.csv"), stop=30, checkpoint=tmp_path / "kept")
    run = train(mtcd.KeepBest(), checkpoint=tmp_path / "kept", resume=True)
    assert run.final.objective == train().final.objective
    assert "with the best objective" in run.notes[-1]


def test_the_best_split_network_is_kept(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from split_problems import case, same_weights, weights_of

    one, method = case(count=10), mtcd.SVFL(2, 0.5, 5)
    run = one.train(method, mtcd.Stop(epochs=12), callbacks=[mtcd.KeepBest()])
    best = min(run.history, key=lambda row: row.objective).iteration
    until = one.train(method, mtcd.Stop(iterations=best))
    assert same_weights(weights_of(run), weights_of(until))
    one.train(method, mtcd.Stop(iterations=best), callbacks=[mtcd.KeepBest()], checkpoint=tmp_path)
    more = {"callbacks": [mtcd.KeepBest()], "checkpoint": tmp_path, "resume": True}
    assert same_weights(
        weights_of(one.train(method, mtcd.Stop(epochs=12), **more)), weights_of(run)
    )


@pytest.mark.parametrize("made", [mtcd.EarlyStopping, mtcd.KeepBest])
def test_a_column_that_is_not_there_is_refused(made: Any) -> None:
    with pytest.raises(ConfigError, match=r"no column 'test_auc'.*objective"):
        train(made("test_auc"))


# --- writers --------------------------------------------------------------------------------------


def test_the_writers_wrote_the_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    mlflow = pytest.importorskip("mlflow")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    # the small package comes without a database
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "mlruns").as_uri()
    logged = mtcd.MLflowWriter("trial", uri)
    writers = [
        mtcd.CsvWriter(tmp_path / "log.csv"),
        mtcd.TensorBoardWriter(tmp_path / "tb"),
        logged,
    ]
    run = train(*writers, stop=20)

    assert mtcd.History.read(tmp_path / "log.csv").rows == run.history.rows
    events = EventAccumulator(str(tmp_path / "tb"))
    events.Reload()
    found = [(one.step, one.value) for one in events.Scalars("objective")]
    assert found == [(row.iteration, pytest.approx(row.objective)) for row in run.history]
    assert {"train_auc", "cost"} <= set(events.Tags()["scalars"])
    client = mlflow.MlflowClient(uri)
    kept = client.get_run(logged.run_id)
    assert (kept.info.status, kept.data.tags["status"]) == ("FINISHED", "iterations")
    assert kept.data.params["method.hops"] == "3"
    steps = client.get_metric_history(logged.run_id, "objective")
    assert [(one.step, one.value) for one in steps] == [
        (row.iteration, row.objective) for row in run.history
    ]


def test_the_csv_file_grows_while_training_and_is_whole_after_a_break(tmp_path: Path) -> None:
    path, kept = tmp_path / "log.csv", tmp_path / "kept"
    seen: list[int] = []
    run = train(
        mtcd.CsvWriter(path),
        stop=10,
        checkpoint=kept,
        watch=lambda *now: seen.append(path.stat().st_size),
    )
    assert seen == sorted(set(seen))
    assert len(seen) == len(run.history)
    resumed = train(mtcd.CsvWriter(path), stop=20, checkpoint=kept, resume=True)
    assert mtcd.History.read(path).rows == resumed.history.rows
    assert resumed.history.rows[: len(run.history)] == run.history.rows


def test_a_file_of_something_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ConfigError, match="is another file"):
        train(mtcd.CsvWriter(tmp_path / "notes.csv"))
    assert (tmp_path / "notes.csv").read_text() == "a,b\n1,2\n"


def test_callbacks_are_a_list() -> None:
    for callbacks, said in (
        (mtcd.KeepBest(), "KeepBest"),
        ([mtcd.KeepBest], "KeepBest"),
        ("csv", "'csv'"),
    ):
        with pytest.raises(
            ConfigError, match=rf"callbacks takes a list of Callback objects, .*{said}"
        ):
            mtcd.train(DATA, LOGISTIC, "cycle", METHOD, callbacks=callbacks)  # type: ignore[arg-type]


# --- configs --------------------------------------------------------------------------------------

CONFIG: dict[str, Any] = {
    "data": {"synthetic": "logistic", "samples": 60, "features": 8, "clients": 4, "seed": 1},
    "model": {"kind": "logistic", "l2": 0.1},
    "method": {"kind": "svfl", "local_updates": 2},
    "stop": {"iterations": 400},
}


def write(folder: Path, callbacks: Any) -> str:
    (folder / "config.yaml").write_text(json.dumps({**CONFIG, "callbacks": callbacks}))
    return str(folder / "config.yaml")


def test_callbacks_of_a_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [
        {"kind": "csv", "file": "log.csv"},
        {"kind": "early-stopping", "min_improvement": 1e-3, "patience": 2},
    ]
    path = write(tmp_path, [*asked, {"kind": "keep-best", "on": "train_auc"}])
    assert command("train", path, "--out", "out", "--json") == 0
    told = outcome(capsys)
    assert told["status"] == "stopped"
    assert "EarlyStopping" in told["message"]
    assert pl.read_csv("log.csv")["iteration"][-1] == told["iterations"]
    assert command("train", "out/config.yaml", "--out", "again", "--json") == 0
    assert outcome(capsys)["objective"] == told["objective"]


@pytest.mark.parametrize(
    ("callbacks", "said"),
    [
        ([{"kind": "csw"}], "did you mean 'csv'"),
        ([{"kind": "csv", "fil": "x"}], "csv has no key 'fil'; did you mean 'file'"),
        ([{"kind": "early-stopping", "patience": "long"}], "callbacks.0.patience"),
        ([{"kind": "early-stopping", "patience": 0}], "callbacks.patience"),
        ([{}], "callbacks"),
        ("csv", "callbacks"),
    ],
)
def test_mistakes_in_the_callbacks_of_a_config(
    callbacks: Any, said: str, tmp_path: Path, capsys: Any
) -> None:
    assert command("train", write(tmp_path, callbacks), "--out", str(tmp_path / "out")) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_a_callback_of_ones_own_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.setattr(CALLBACKS, "_classes", dict(CALLBACKS._classes))
    CALLBACKS.register("recorder", Recorder)
    path = write(tmp_path, [{"kind": "recorder", "stop_at": 7}])
    assert command("train", path, "--out", str(tmp_path / "out"), "--json") == 0
    assert outcome(capsys)["iterations"] == 7
