"""What a run gives: coefficients on the columns as given, folders that read back, and a short text
of itself."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.preprocessing import StandardScaler

import mtcd
from commands import run as command
from mtcd.models.glm.model import Glm
from problems import MODELS, make_data

WIDTHS = [2, 3, 1, 2]
RNG = np.random.default_rng(3)
# columns of very different means and scales, one of them constant
X = np.hstack(
    [
        RNG.standard_normal((60, 4)) * [1.0, 50.0, 0.01, 3.0] + [5.0, -200.0, 0.3, 0.0],
        np.full((60, 1), 7.0),
    ]
)


def trained(model: Glm, y: Any, clients: Any = 2, X: Any = X, **how: Any) -> mtcd.Run:
    method, stop = mtcd.STCD(local_updates=20), mtcd.Stop(gap=1e-13, iterations=20_000)
    return mtcd.train(mtcd.split(X, y, clients), model, "path", method, stop, **how)


# --- coefficients --------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
def test_of_standardised_ridge_coefficients_are_on_the_given_columns(intercept: bool) -> None:
    y = X[:, 0] - 0.1 * X[:, 1] + 40 * X[:, 2] + 12 + RNG.standard_normal(60)
    run = trained(
        Glm("ridge", alpha=2.0, intercept=intercept),
        y,
        {"a": [4, 2], "b": [0, 3, 1]},
        standardise=True,
    )
    scaler = StandardScaler().fit(X)
    expected = Ridge(alpha=2.0, fit_intercept=intercept, solver="cholesky").fit(
        scaler.transform(X), y
    )
    np.testing.assert_allclose(run.scaled_coefficients, expected.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        run.coefficients, expected.coef_ / scaler.scale_, rtol=1e-5, atol=1e-6
    )
    np.testing.assert_allclose(
        X @ run.coefficients + run.intercept, expected.predict(scaler.transform(X)), atol=1e-4
    )
    assert type(run.intercept) is float


@pytest.mark.parametrize("standardise", [False, True])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_coefficients_and_intercept_are_the_decision(model: Glm, standardise: bool) -> None:
    """Of every kind of model, on samples that were not trained on."""
    data = make_data(model, 30, WIDTHS, seed=4)
    how = {
        "method": mtcd.MTCD(tokens=2, hops=4),
        "stop": mtcd.Stop(iterations=400),
        "standardise": standardise,
    }
    run = mtcd.train(data, model, "path", **how)
    new = np.random.default_rng(8).standard_normal((9, 8)) * 3 + 1
    np.testing.assert_allclose(
        new @ run.coefficients + run.intercept, run.decision(new), rtol=1e-10, atol=1e-12
    )
    assert np.array_equal(run.scaled_coefficients, run.coefficients) == (not standardise)
    assert type(run.intercept) is float or (
        run.intercept.shape == (3,) and model.kind == "multinomial"
    )
    if not (model.intercept or standardise):
        assert not np.any(run.intercept)


def test_of_standardised_multinomial_too() -> None:
    names = np.array(["low", "middle", "high"])[np.digitize(X[:, 0] + X[:, 3], [3, 7])]
    run = trained(Glm("multinomial", l2=1.0, intercept=True), names, standardise=True)
    scaled = StandardScaler().fit_transform(X)
    expected = LogisticRegression(C=1.0, tol=1e-12, max_iter=10_000).fit(scaled, names)
    shown = X @ run.coefficients + run.intercept
    columns = [run.trained().classes.index(name) for name in expected.classes_]
    ours, theirs = shown[:, columns], expected.decision_function(scaled)
    np.testing.assert_allclose(ours - ours[:, :1], theirs - theirs[:, :1], atol=1e-3)
    assert run.predict(X).tolist() == expected.predict(scaled).tolist()


# --- folders -------------------------------------------------------------------------------------


def check_same(back: mtcd.Run, run: mtcd.Run, new: Any) -> None:
    assert back.summary() == run.summary()
    assert list(back.history) == list(run.history)
    assert (back.ledger, back.costs, back.notes) == (run.ledger, run.costs, run.notes)
    assert repr(back) == repr(run)
    if run.model is not None:
        np.testing.assert_array_equal(back.decision(new), run.decision(new))
        assert back.predict(new).tolist() == run.predict(new).tolist()
        assert back.predict(new).dtype == run.predict(new).dtype


Y01 = (X[:, 0] > 5).astype(int)
RUNS = {
    "ridge": (Glm("ridge"), X[:, 0], {}),
    "scaled": (Glm("ridge", intercept=True), X[:, 0], {"standardise": True}),
    "no gap": (Glm("linear"), X[:, 0], {"stop": mtcd.Stop(iterations=7)}),
    "sparse": (Glm("huber", l2=1.0), X[:, 0], {"X": sp.csr_array(X)}),
    "0 and 1": (Glm("logistic", l2=1.0), Y01, {}),
    "truths": (Glm("logistic", l2=1.0), Y01 == 1, {}),
    "-1 and 1": (Glm("squared-hinge", l2=1.0), 2 * Y01 - 1, {}),
    "texts": (
        Glm("multinomial", l2=1.0, intercept=True),
        np.array(["no", "ja/é"])[Y01],
        {"standardise": True},
    ),
    "numbers": (Glm("multinomial", l2=1.0), Y01 + 0.5, {"costs": mtcd.Costs(7, "sent")}),
    "one client": (Glm("ridge"), X[:, 0], {"clients": 1}),
    "diverged": (Glm("ridge"), X[:, 0], {"method": mtcd.STCD(local_updates=5, stepsize=1e3)}),
    "dcpa": (Glm("ridge"), X[:, 0], {"method": mtcd.DCPA()}),
}


@pytest.mark.parametrize(("model", "y", "how"), RUNS.values(), ids=RUNS.keys())
def test_what_run_save_wrote_load_run_reads(
    model: Glm, y: Any, how: dict[str, Any], tmp_path: Path
) -> None:
    settings = {
        "method": mtcd.SVFL(local_updates=2),
        "stop": mtcd.Stop(iterations=20),
        "X": X,
        "clients": 2,
    } | how
    data = mtcd.split(settings.pop("X"), y, settings.pop("clients"))
    run = mtcd.train(data, model, "path", **settings)
    run.save(tmp_path / "run")
    check_same(mtcd.load_run(tmp_path / "run"), run, data)
    mtcd.load_run(str(tmp_path / "run")).save(tmp_path / "again")
    check_same(mtcd.load_run(tmp_path / "again"), run, data)


def test_a_run_of_more_arrays_than_a_plain_zip_file_holds_is_read_again(
    tmp_path: Path, monkeypatch
) -> None:
    """From 65,535 members on (a client has one array) the zip file has other records at its end;
    here from 3 on."""
    monkeypatch.setattr("zipfile.ZIP_FILECOUNT_LIMIT", 3)
    data = make_data(Glm("ridge"), 20, [2, 1, 3, 1, 2], seed=0)
    run = mtcd.train(data, Glm("ridge"), "path", mtcd.STCD(), mtcd.Stop(iterations=20))
    run.save(tmp_path)
    read = mtcd.load_run(tmp_path)
    np.testing.assert_array_equal(read.coefficients, run.coefficients)
    np.testing.assert_array_equal(read.trace.messages, run.trace.messages)


class CutError(BaseException):
    """The process ends here."""


def test_a_folder_with_a_marker_is_whole_wherever_a_save_is_cut_off(tmp_path: Path) -> None:
    """The marker goes before any file of the old run is replaced, and comes after all files of the
    new one."""
    data = make_data(Glm("ridge"), 20, [2, 1], seed=0)
    old, new = (
        mtcd.train(data, Glm("ridge"), "path", mtcd.STCD(), mtcd.Stop(iterations=n)) for n in (3, 9)
    )
    new = replace(new, attachments={})  # a file of the old run is removed
    for name, run in (("old", old), ("new", new)):
        run.save(tmp_path / name)
    content = {
        name: {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("old", "new")
    }
    change, moment, seen = tmp_path / "change", 0, set()
    while "new" not in seen:
        shutil.rmtree(change, ignore_errors=True)
        old.save(change)
        with pytest.MonkeyPatch.context() as patch:
            cut_off(patch, moment)
            with suppress(CutError):
                new.save(change)
        found = {path.name: path.read_bytes() for path in change.iterdir()}
        if "run.json" in found:
            [which] = [name for name in content if content[name] == found]
            seen.add(which)
        else:
            seen.add("neither")
            with pytest.raises(mtcd.MtcdError, match=r"has no run\.json"):
                mtcd.Run.load(change)
        moment += 1
    assert seen == {"old", "neither", "new"}
    assert moment > len(content["new"])


def cut_off(patch: pytest.MonkeyPatch, moment: int) -> None:
    """End the process when a file is replaced or removed for the time after ``moment`` such
    times."""
    left = [moment]

    def counted(call: Any) -> Any:
        def called(*args: Any, **named: Any) -> Any:
            if not left[0]:
                raise CutError
            left[0] -= 1
            return call(*args, **named)

        return called

    patch.setattr("mtcd.core.files.os.replace", counted(os.replace))
    patch.setattr(Path, "unlink", counted(Path.unlink))


def test_of_an_interrupted_run_too(tmp_path: Path) -> None:
    def interrupt(now: mtcd.Measurement, fraction: float) -> None:
        if now.iteration > 3:
            raise KeyboardInterrupt

    data = mtcd.split(X, X[:, 0], 2)
    run = mtcd.train(
        data, Glm("ridge"), "path", mtcd.STCD(), mtcd.Stop(iterations=100), watch=interrupt
    )
    assert run.status == "interrupted"
    run.save(tmp_path / "run")
    check_same(mtcd.load_run(tmp_path / "run"), run, data)


@pytest.mark.parametrize("status", ["epochs", "diverged"])
def test_of_a_split_network_the_model_is_given(status: str, tmp_path: Path) -> None:
    nn = pytest.importorskip("torch").nn
    data = mtcd.VerticalDataset({"a": X[:, :2] / 100, "b": X[:, 2:]}, np.array(["no", "yes"])[Y01])
    nets = {"a": nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)), "b": nn.Linear(3, 2)}
    model = mtcd.SplitModel(nets, nn.Linear(5, 2))
    method = mtcd.SVFL(2, stepsize=0.1 if status == "epochs" else 1e30, batch=20)
    run = mtcd.train(data, model, method=method, stop=mtcd.Stop(epochs=2))
    assert run.status == status
    run.save(tmp_path / "run")
    check_same(mtcd.load_run(tmp_path / "run", model), run, data)
    if status == "epochs":
        with pytest.raises(
            mtcd.MtcdError, match=r"only its weights: give load_run\(folder, model\)"
        ):
            mtcd.load_run(tmp_path / "run")


MODEL = "model: {kind: multinomial, l2: 1, intercept: true}\n"
SPLIT = "model: {kind: split, client: mlp, client_settings: {width: 3}, fusion: linear}\n"


@pytest.mark.parametrize(
    ("model", "changes"),
    [(MODEL, []), (SPLIT, []), (MODEL, ["method.stepsize=1000"]), (SPLIT, ["method.stepsize=1e9"])],
)
def test_a_run_of_the_command_line_is_saved_again(
    model: str, changes: list[str], tmp_path: Path
) -> None:
    """The folder of the command line has a config, that of ``run.save`` has not: both read back."""
    if model == SPLIT:
        pytest.importorskip("torch")
    config = tmp_path / "config.yaml"
    config.write_text(
        f"data: {{synthetic: multinomial, samples: 60, features: 8, clients: 2, standardise: "
        f"true}}\n{model}"
        "method: {kind: svfl, local_updates: 2, batch: 20, stepsize: 0.001}\nstop: {iterations: "
        "30}\n"
    )
    settings = [part for change in changes for part in ("--set", change)]
    assert command(
        "train", str(config), "--out", str(tmp_path / "out"), "--quiet", *settings
    ) == len(changes)
    config.unlink()
    run = mtcd.load_run(tmp_path / "out")
    assert (run.model is None) == bool(changes)
    new = {name: RNG.standard_normal((6, 4)) for name in ("client_0", "client_1")}
    samples = np.hstack([*new.values()]) if model == MODEL else new
    brought = None
    if model == SPLIT and run.model is not None:
        brought = mtcd.SplitModel(run.modules, run.fusion)
    run.save(tmp_path / "again")
    check_same(mtcd.load_run(tmp_path / "again", brought), run, samples)


@pytest.mark.parametrize("broken", ["run.json", "history.csv", "ledger.json", "parameters.npz"])
@pytest.mark.parametrize("how", ["removed", "empty", "cut"])
def test_a_broken_folder_is_refused_in_words(broken: str, how: str, tmp_path: Path) -> None:
    trained(Glm("ridge"), X[:, 0], standardise=True).save(tmp_path / "run")
    path = tmp_path / "run" / broken
    if how == "removed":
        path.unlink()
    else:
        path.write_bytes(b"" if how == "empty" else path.read_bytes()[: path.stat().st_size // 2])
    if (broken, how) == ("history.csv", "cut"):
        path.write_text("iteration\n3\n")
    with pytest.raises(mtcd.MtcdError, match="not a complete run folder"):
        mtcd.load_run(tmp_path / "run")


# --- texts ---------------------------------------------------------------------------------------


def test_what_people_print_is_short_however_large_it_is() -> None:
    nn = pytest.importorskip("torch").nn
    data = mtcd.synthetic("multinomial", samples=200, features=400, clients=100)
    network = mtcd.with_changes(
        mtcd.make_network("complete", data.clients), [mtcd.Change(5, leave=["client_7"])]
    )
    how = {"method": mtcd.SVFL(local_updates=2), "stop": mtcd.Stop(iterations=50)}
    run = mtcd.train(data, Glm("multinomial", l2=1.0), "complete", **how, standardise=True)
    samples = mtcd.VerticalDataset.from_table(data).holdout(0.2)
    model = mtcd.SplitModel({client: nn.Linear(4, 2) for client in data.clients}, nn.Linear(200, 3))
    nets = mtcd.train(
        samples, model, method=mtcd.SVFL(2, stepsize=0.1, batch=80), stop=mtcd.Stop(epochs=1)
    )
    shown = [data, network, run, run.history, run.final, run.ledger, run.model, run.model.scaling]
    for thing in [*shown, samples, model, nets, nets.model]:
        assert len(repr(thing)) <= 500, type(thing)
        assert repr(thing).startswith(type(thing).__name__)
    assert "status='iterations'" in repr(run)
    assert f"objective={run.objective:.6g}" in repr(run)
    assert "200 samples, 400 columns" in repr(data)
    assert "100 client(s)" in repr(network)
    assert "4,950 edges, 1 change(s)" in repr(network)
    assert "160 samples" in repr(samples)
    assert "40 samples for the test" in repr(samples)
    assert f"{sum(w.numel() for w in nets.trained().weights().values()):,} parameters" in repr(
        nets.model
    )
    assert f"{len(run.history)} measurements" in repr(run.history)


def test_folders_that_are_no_runs_are_told_in_words(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    for nothing in (tmp_path / "none", tmp_path, file):
        with pytest.raises(
            mtcd.MtcdError, match=r"is not a complete run folder, as it has no run.json: give one"
        ):
            mtcd.load_run(nothing)
    data = mtcd.synthetic("ridge", samples=20, features=4, clients=2)
    mtcd.train(
        data, mtcd.Glm("ridge", alpha=1.0), "path", mtcd.STCD(), mtcd.Stop(iterations=5)
    ).save(tmp_path / "run")
    (tmp_path / "run" / "parameters.npz").write_bytes(b"x")
    with pytest.raises(mtcd.MtcdError, match="not a complete run folder") as said:
        mtcd.load_run(tmp_path / "run")
    assert "pickle" not in str(said.value)  # NumPy's advice for other files
    assert "train it again" in str(said.value)


PARTS = (
    "coefficients",
    "scaled_coefficients",
    "column_names",
    "intercept",
    "parameters",
    "modules",
    "fusion",
    "parts",
)


def parts_of(run: mtcd.Run) -> set[str]:
    return {name for name in PARTS if hasattr(run, name)}


def test_a_run_has_the_parts_of_its_model_and_no_others() -> None:
    nn = pytest.importorskip("torch").nn
    data, labels = {"a": X[:, :2], "b": X[:, 2:]}, np.array(["no", "yes"])[Y01]
    table = mtcd.split(np.hstack(list(data.values())), labels, 2)
    method, stop = mtcd.STCD(walk="tour"), mtcd.Stop(iterations=4)
    linear = mtcd.train(table, Glm("logistic", l2=1.0), method=method, stop=stop)
    trees = mtcd.train(table, mtcd.Trees("logistic", min_samples=5), method=method, stop=stop)
    nets = mtcd.SplitModel({"a": nn.Linear(2, 2), "b": nn.Linear(3, 2)}, nn.Linear(4, 2))
    split = mtcd.train(
        mtcd.VerticalDataset(data, labels), nets, method=mtcd.SVFL(stepsize=0.01), stop=stop
    )
    diverged = mtcd.train(
        table, Glm("logistic", l2=1.0), method=mtcd.STCD(stepsize=1e30), stop=stop
    )

    assert parts_of(linear) == {*PARTS[:5]}
    assert parts_of(trees) == {"parts"}
    assert parts_of(split) == {"modules", "fusion"}
    assert diverged.status == "diverged"
    assert parts_of(diverged) == set()

    with pytest.raises(AttributeError, match=r"without coefficients: look at run\.parts"):
        _ = trees.coefficients
    with pytest.raises(mtcd.MtcdError, match="This run has no model. Diverged"):
        _ = diverged.coefficients
