"""Experiments: what is trained, what is kept, how step sizes are chosen, and every bad file."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from multiprocessing.context import SpawnProcess
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import mtcd
from mtcd.cli.app import main
from mtcd.config.build import Setup, build
from mtcd.config.read import check_config
from mtcd.config.schema import Config
from mtcd.core.errors import DataError
from mtcd.core.files import write_whole
from mtcd.core.workers import Backend, Failed, open_workers
from mtcd_experiments.merge import laid_over
from mtcd_experiments.plan import plan_figure
from mtcd_experiments.results import Results
from mtcd_experiments.run import reproduce
from mtcd_experiments.schedule import TrainingQueue
from mtcd_experiments.schema import Experiment
from mtcd_experiments.store import SENT, Store
from mtcd_experiments.work import CurveJob
from small_experiment import FIXED, FOREVER, SMALL, Inline, changed, plan, text
from waiting import PATIENCE, until


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> type[Inline]:
    return Inline.take_over(monkeypatch)


def results_of(
    content: dict, folder: Path, jobs: int = 2, seeds: int = 2, fresh: bool = False
) -> Results:
    found: list[Results] = []
    failed = reproduce([plan(content, seeds)], Store(folder, fresh), Backend(jobs), found.append)
    assert failed == {}
    return found[0]


def same(a: Results, b: Results) -> bool:
    """Whether two results hold the very same numbers."""
    pairs = [
        (x, y)
        for key in a.curves
        for x, y in zip(a.curves[key].trained, b.curves[key].trained, strict=True)
    ]
    return a.curves.keys() == b.curves.keys() and all(
        x.stepsize == y.stepsize
        and all(np.array_equal(x.columns[name], y.columns[name]) for name in x.columns)
        for x, y in pairs
    )


# ---- what is trained


def test_changes_are_laid_over_key_by_key_and_another_kind_replaces_the_section() -> None:
    base = {
        "data": {"synthetic": "ridge", "samples": 9},
        "network": {"kind": "grid", "rows": 2},
        "method": {"hops": 1},
    }
    assert laid_over(base, {"data": {"samples": 5}})["data"] == {"synthetic": "ridge", "samples": 5}
    assert laid_over(base, {"data": {"synthetic": "logistic"}})["data"] == {
        "synthetic": "logistic",
        "samples": 9,
    }
    assert laid_over(base, {"data": {"table": "a.csv"}})["data"] == {"table": "a.csv"}
    assert laid_over(base, {"data": {"dataset": "gisette"}}, {"data": {"samples": 3}})["data"] == {
        "dataset": "gisette",
        "samples": 3,
    }
    assert laid_over(base, {"network": {"rows": 1}})["network"] == {"kind": "grid", "rows": 1}
    assert laid_over(base, {"network": {"kind": "path"}})["network"] == {"kind": "path"}
    assert laid_over(base, {"network": {"edges": "e.csv"}})["network"] == {"edges": "e.csv"}
    start = laid_over({"method": {"start": {"a": 1}}}, {"method": {"start": {"b": 1}}})
    assert start == {"method": {"start": {"b": 1}}}, "a value is replaced, not mixed"
    assert base["network"] == {"kind": "grid", "rows": 2}


def test_a_case_wins_over_a_curve_and_quick_over_all() -> None:
    content = changed(
        {"cases": {"row": {"changes": {"method": {"hops": 2}, "stop": {"iterations": 50}}}}},
        {
            "curves": {
                "mtcd": {
                    "changes": {"method": {"hops": 9, "tokens": 3}, "stop": {"iterations": 70}}
                }
            }
        },
        {"quick": {"changes": {"method": {"local_updates": 1}}}},
    )
    config = {(one.case, one.curve): one.config(1) for one in plan(content).curves}
    assert (config["ring", "mtcd"].method.hops, config["row", "mtcd"].method.hops) == (9, 2)
    assert config["row", "mtcd"].method.tokens == 3
    assert (config["row", "mtcd"].stop.iterations, config["row", "svfl"].stop.iterations) == (
        70,
        50,
    )
    assert config["row", "svfl"].network.kind == "path"
    assert config["row", "mtcd"].seed == 1
    quick = plan(content, None, quick=True)
    assert all(
        one.config(0).method.local_updates == 1 and one.config(0).stop.gap == 1e-2
        for one in quick.curves
    )


def test_how_many_seeds() -> None:
    assert plan(SMALL, None).seeds == 5
    assert plan(SMALL, None, quick=True).seeds == 2
    assert plan(SMALL, 3, quick=True).seeds == 3
    assert plan(SMALL).ratio == 20
    assert plan({**SMALL, "problem": {**SMALL["problem"], "costs": None}}).ratio == 100


@pytest.mark.parametrize(
    ("change", "once"),
    [
        ({}, False),
        (FIXED, True),
        ({**FIXED, "curves": {"svfl": {"method": {"batch": 10}}}}, False),
        (
            {
                "problem": {"data": {"seed": 7}, "network": {"kind": "erdos-renyi", "p": 0.9}},
                "cases": {"row": {}},
            },
            False,
        ),
    ],
)
def test_what_does_not_depend_on_the_seed_is_trained_once(change: dict, once: bool) -> None:
    figure = plan(changed(change), 3)
    seeds = {one.curve: one.seeds for one in figure.curves if one.case == "ring"}
    assert seeds == {"svfl": (0,) if once else (0, 1, 2), "mtcd": (0, 1, 2)}
    assert any("Trained once" in note and "SVFL" in note for note in figure.notes) == (
        once or any(len(one.seeds) == 1 for one in figure.curves)
    )


def test_tables_are_found_beside_the_experiment_and_other_content_is_another_training(
    tmp_path,
) -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {"y": rng.standard_normal(20), **{f"f{j}": rng.standard_normal(20) for j in range(4)}}
    )
    frame.write_csv(tmp_path / "data.csv")
    content = changed({"problem": {"data": None}})
    content["problem"]["data"] = {"table": "data.csv", "label": "y", "clients": 4}
    config = plan(content, folder=tmp_path).curves[0].config(0)
    assert config.data.table == tmp_path / "data.csv"
    path = Store(tmp_path).path(config)
    frame.with_columns(y=-pl.col("y")).write_csv(tmp_path / "data.csv")
    assert Store(tmp_path).path(config) != path


def test_an_optional_case_without_data_is_left_out_and_others_need_theirs(monkeypatch) -> None:
    monkeypatch.delenv("MTCD_DATA", raising=False)
    case = {
        "title": "Gisette",
        "optional": True,
        "changes": {"data": {"dataset": ["gisette"], "clients": 4}},
    }
    figure = plan(changed({"cases": {"real": case}}))
    assert {one.case for one in figure.curves} == {"ring", "row"}
    assert any("'Gisette' is left out" in note for note in figure.notes)
    with pytest.raises(DataError, match="case real.*MTCD_DATA"):
        plan(changed({"cases": {"real": {**case, "optional": False}}}))
    case["changes"] = {"data": {"dataset": "gisete", "clients": 4}}
    with pytest.raises(DataError, match="did you mean 'gisette'"):
        plan(changed({"cases": {"real": case}}))


# ---- what is kept


def test_the_same_again_trains_nothing_and_fresh_trains_all(tmp_path, inline) -> None:
    content = changed(FIXED)
    first = results_of(content, tmp_path)
    assert inline.trained == 2 * (1 + 2) == len(list(tmp_path.iterdir()))
    again = results_of(content, tmp_path)
    assert inline.trained == 6
    assert same(first, again)
    assert same(first, results_of(content, tmp_path, fresh=True))
    assert inline.trained == 12
    assert len(list(tmp_path.iterdir())) == 6


def test_damaged_and_missing_files_are_trained_again(tmp_path, inline) -> None:
    first = results_of(SMALL, tmp_path)
    kept = sorted(tmp_path.iterdir())
    kept[0].unlink()
    kept[1].write_text(kept[1].read_text()[:-20])
    record = json.loads(kept[2].read_text())
    record["columns"]["gap"].pop()
    kept[2].write_text(json.dumps(record))
    kept[3].write_bytes(b"\xff\xfe")
    kept[4].write_text("[]")
    kept[5].write_text(kept[5].read_text().replace('"gap": [', '"gap": [NaN, ', 1))
    before = inline.trained
    assert same(first, results_of(SMALL, tmp_path))
    assert inline.trained == before + 6
    assert sorted(tmp_path.iterdir()) == kept


def test_a_changed_setting_is_a_new_curve_and_only_that_one(tmp_path, inline) -> None:
    results_of(SMALL, tmp_path)
    before = inline.trained
    results_of(
        changed({"curves": {"mtcd": {"label": "other words", "method": {"hops": 3}}}}), tmp_path
    )
    assert inline.trained == before + 4
    results_of(SMALL, tmp_path, seeds=3)
    assert inline.trained == before + 4 + 4


def test_what_is_kept_says_what_it_is_and_diverged_trainings_are_finite(tmp_path, inline) -> None:
    results = results_of(changed({"curves": {"svfl": {"method": {"stepsize": 10}}}}), tmp_path)
    assert any("A ring, SVFL: 2 of 2 trainings diverged" in note for note in results.notes)
    diverged = results.curves["ring", "svfl"].trained[0]
    assert diverged.status == "diverged"
    assert all(np.isfinite(column).all() for column in diverged.columns.values())
    path = next(path for path in tmp_path.glob("mtcd-seed1-*.json"))
    record = json.loads(path.read_text())
    assert set(record) == {"config", "status", "message", "stepsize", "seconds", "notes", "columns"}
    assert record["config"]["method"]["hops"] == 4
    columns = record["columns"]
    assert set(columns) == {"iteration", "gap", *SENT}
    assert columns["floats_client_client"][-1] > columns["client_client"][-1]


def test_a_training_that_two_cases_show_is_trained_once(tmp_path, inline) -> None:
    twice = changed({"cases": {"again": {"title": "The same ring"}}})
    results = results_of(twice, tmp_path)
    assert inline.trained == 8  # 2 seeds of 2 curves in 2 different cases
    for curve in ("svfl", "mtcd"):
        for one, other in zip(
            results.curves["ring", curve].trained,
            results.curves["again", curve].trained,
            strict=True,
        ):
            assert np.array_equal(one.columns["gap"], other.columns["gap"])


def test_the_quick_version_may_differ_by_curve_and_leave_out_cases() -> None:
    given = changed(
        {
            "cases": {"row": {"quick": False}},
            "curves": {"svfl": {"quick": {"stop": {"iterations": 7}}}},
        }
    )
    full, small = plan(given), plan(given, quick=True)
    assert [curve.case for curve in full.curves] == ["ring", "ring", "row", "row"]
    assert [(curve.case, curve.curve) for curve in small.curves] == [
        ("ring", "svfl"),
        ("ring", "mtcd"),
    ]
    assert [curve.config(0).stop.iterations for curve in small.curves] == [7, 4000]
    assert [curve.config(0).stop.iterations for curve in full.curves[:2]] == [4000, 4000]


def test_titles_tell_the_facts_of_what_is_trained() -> None:
    asking = {
        "title": "{clients} clients, {data}",
        "cases": {"ring": {"title": "a ring of {clients}, {connectivity}"}},
    }
    smaller = {"quick": {"changes": {"data": {"clients": 3}}}}
    experiment = plan(changed(asking, smaller)).experiment
    assert experiment.title == "4 clients, made-up data"
    assert experiment.cases["ring"].title == "a ring of 4, 2"  # 2 - 2 cos(2 pi/4)
    assert (
        plan(changed(asking, smaller), quick=True).experiment.cases["ring"].title
        == "a ring of 3, 3"
    )


def test_notes_about_the_data_are_notes_of_the_figure(tmp_path, inline, monkeypatch) -> None:
    def noted(config: Config) -> Setup:
        setup = build(config)
        return replace(setup, data=replace(setup.data, notes=("not the real thing",)))

    monkeypatch.setattr("mtcd.config.one_training.build", noted)
    assert results_of(SMALL, tmp_path).notes == ("not the real thing",)


def test_the_quick_version_says_when_its_data_is_made_up() -> None:
    made_up = {"synthetic": "ridge", "samples": 30, "features": 12, "clients": 4}
    given = changed({"quick": {"changes": {"data": made_up}}})
    given["problem"]["data"] = {"dataset": ["gisette", "basehock"], "clients": 4}
    assert "Made-up data in place of gisette." in plan(given, quick=True).notes
    assert plan(SMALL, quick=True).notes == ()


# ---- tuning

GRID = {"stepsizes": [1e-4, 1e-3, 2e-3, 10.0], "gap": 1e-3, "iterations": 1500}
TUNED = changed(FIXED, {"tune": GRID, "curves": {"svfl": {"method": {"stepsize": "tune"}}}})


def test_tuning_takes_the_best_and_tells_of_the_grid(tmp_path, inline) -> None:
    results = results_of(TUNED, tmp_path)
    curve = results.curves["ring", "svfl"]
    assert inline.trained == 2 * (4 + 1 + 2), "a grid and one final training per case, and MTCD"
    assert curve.stepsize == 2e-3
    assert not curve.at_edge
    assert curve.tuned[10.0] == "diverged"
    assert curve.tuned[2e-3].endswith("iterations")
    assert curve.trained[0].columns["gap"][-1] <= 1e-5, (
        "the real training goes on to the gap of the problem"
    )
    assert same(results, results_of(TUNED, tmp_path))
    assert inline.trained == 14


def test_where_no_step_size_gets_there_the_closest_is_taken(tmp_path, inline) -> None:
    grid = {**GRID, "stepsizes": [1e-5, 1e-4], "iterations": 40}
    results = results_of(changed(TUNED, {"tune": grid}), tmp_path)
    curve = results.curves["ring", "svfl"]
    assert curve.stepsize == 1e-4
    assert curve.at_edge
    assert any("edge of the grid: A ring, SVFL" in note for note in results.notes)
    assert all(said.startswith("gap ") for said in curve.tuned.values())


def test_a_grid_that_diverges_altogether_fails_that_figure_only(tmp_path, inline) -> None:
    bad = plan(changed(TUNED, {"tune": {**GRID, "stepsizes": [10.0, 100.0]}}))
    good = plan_figure("good", Experiment.model_validate(SMALL), Path(), 1)
    found: list[Results] = []
    failed = reproduce([bad, good], Store(tmp_path), Backend(2), found.append)
    assert [one.name for one in found] == ["good"]
    assert list(failed) == ["small"]
    assert "Add smaller ones" in failed["small"]
    assert "curve svfl" in failed["small"]


# ---- workers


@pytest.mark.long
def test_processes_give_the_numbers_of_train_called_directly(tmp_path) -> None:
    one, two = (results_of(TUNED, tmp_path / str(jobs), jobs=jobs) for jobs in (1, 2))
    assert same(one, two)
    data = mtcd.synthetic("ridge", 30, 12, 4, seed=7)
    run = mtcd.train(
        data,
        mtcd.Glm("ridge", alpha=1),
        "path",
        mtcd.MTCD(tokens=2, hops=4, local_updates=2),
        mtcd.Stop(gap=1e-5, iterations=4000),
        seed=1,
    )
    trained = one.curves["row", "mtcd"].trained[1]
    assert np.array_equal(trained.columns["iteration"], run.history["iteration"])
    assert np.allclose(trained.columns["gap"], run.history["gap"], rtol=1e-9, atol=1e-14)
    assert np.array_equal(trained.columns["client_client"], run.history["messages_client_client"])
    cost = mtcd.Costs(20).total(run.ledger)
    assert trained.cost(20)[-1] == pytest.approx(cost)


@pytest.mark.long
def test_a_worker_that_dies_or_cannot_train_says_so() -> None:
    before = dict(os.environ)
    forever = check_config(
        {**SMALL["problem"], "method": FOREVER, "stop": {"gap": 1e-9, "iterations": 10**9}}
    )
    wrong = check_config({**SMALL["problem"], "network": {"kind": "ring"}})
    with open_workers(Backend(2)) as workers:
        workers.give("forever", CurveJob(forever))
        workers.give("wrong", CurveJob(wrong))
        heard = {}
        while "forever" not in heard or "wrong" not in heard:
            for name, news in workers.news(1.0):
                heard[name] = news
                if isinstance(news, float):
                    worker = next(
                        worker for worker, busy_with in workers._busy.items() if busy_with == name
                    )
                    process, _ = workers._started[worker]
                    os.kill(process.pid or 0, signal.SIGKILL)
                    del heard[name]
        assert workers.free == 2
    assert isinstance(heard["forever"], Failed)
    assert "signal 9" in heard["forever"].why
    assert isinstance(heard["wrong"], Failed)
    assert "ring" in heard["wrong"].why
    assert dict(os.environ) == before


def test_the_first_seeds_go_first_then_the_longest(tmp_path) -> None:
    schedule = TrainingQueue([plan(SMALL, 3)], Store(tmp_path))
    first = [schedule.next()[0] for _ in range(4)]
    assert all(job.first for job in first)
    assert schedule.status(2).left is None
    took = {"svfl": 1.0, "mtcd": 9.0}
    for job in first:
        schedule._running.pop(job)
        schedule._finish(job, Store(tmp_path).load(tmp_path), took[job.plan.curve])  # type: ignore[arg-type]
    assert schedule.status(2).left == pytest.approx((4 * 1 + 4 * 9) / 2)
    assert schedule.next()[0].plan.curve == "mtcd"


def test_an_interrupt_while_a_worker_starts_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(process: SpawnProcess) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(SpawnProcess, "start", start)
    with pytest.raises(KeyboardInterrupt), open_workers(Backend(1)) as workers:
        workers.give("some", CurveJob(Config.model_validate(changed({})["problem"])))


@pytest.mark.long
def test_interrupted_says_what_is_kept_and_goes_on_from_there(tmp_path) -> None:
    content = changed(
        {"curves": {"mtcd": {"method": FOREVER, "changes": {"stop": {"iterations": 10**9}}}}}
    )
    (tmp_path / "slow.yaml").write_text(text(content))
    command = [sys.executable, "-m", "mtcd", "reproduce", "slow.yaml", "--out", "out"]
    process = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert until(lambda: list((tmp_path / "out").glob("curves/*.json")))
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    kept = len(list((tmp_path / "out" / "curves").glob("*.json")))
    assert process.returncode == 130, said
    assert f"Interrupted: {kept} of 20 trainings are kept" in said
    assert "Traceback" not in said
    figure = plan_figure("slow", Experiment.model_validate(content), tmp_path)
    assert TrainingQueue([figure], Store(tmp_path / "out" / "curves")).status(2).done == kept > 0


def test_what_is_written_in_the_moment_of_an_interrupt_is_counted(
    inline: type[Inline],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def write(path: Path, content: str) -> None:
        write_whole(path, content)
        raise KeyboardInterrupt

    (tmp_path / "some.yaml").write_text(text(SMALL))
    monkeypatch.setattr("mtcd_experiments.store.write_whole", write)
    with pytest.raises(SystemExit, match="130"):
        main(["reproduce", str(tmp_path / "some.yaml"), "--out", str(tmp_path / "out")])
    assert len(list(tmp_path.glob("out/curves/*.json"))) == 1
    assert "Interrupted: 1 of " in capsys.readouterr().err
