"""The document of the report page, against its contract and against the runs it is about."""

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtcd
from mtcd.core.errors import MtcdError
from mtcd.methods.method import Method
from mtcd.reporting.document import make_report
from mtcd.reporting.live import LiveRun
from mtcd.reporting.record import of_run, read_record
from mtcd.reporting.shown import coefficients
from mtcd.reporting.trace.tracer import WINDOW
from problems import make_data
from report_contract import Run, checked

RIDGE = mtcd.Glm("ridge", alpha=1.0)
METHODS = {
    "mtcd": mtcd.MTCD(2, 3, stepsize=1e-3),
    "clusters": mtcd.MTCD(2, 3, stepsize=1e-3, combine="cluster"),
    "batches": mtcd.MTCD(2, 3, stepsize=1e-3, batch=4),
    "float32": mtcd.MTCD(2, 3, stepsize=1e-3, transport="float32"),
    "stcd": mtcd.STCD(stepsize=1e-3),
    "tours": mtcd.STCD(stepsize=1e-3, walk="tour", acceleration="conjugate"),
    "svfl": mtcd.SVFL(stepsize=1e-3),
    "dcpa": mtcd.DCPA(),
    "tree-cg": mtcd.TreeCG(),
}


def trained(method: Method, model: mtcd.Glm = RIDGE, **others: Any) -> mtcd.Run:
    data = make_data(model, 12, [2, 1, 2, 3], seed=1)
    return mtcd.train(
        data, model, "path", method, others.pop("stop", mtcd.Stop(iterations=12)), **others
    )


def reported(run: mtcd.Run, folder: Path) -> Run:
    run.save(folder)
    (found,) = checked(make_report([read_record(folder, "one")], "file", "a title", "1.0")).runs
    return found


@pytest.mark.parametrize("name", METHODS)
def test_every_method(name: str, tmp_path: Path) -> None:
    run = trained(METHODS[name], stop=mtcd.Stop(gap=1e-9, iterations=12))
    found = reported(run, tmp_path / "run")
    assert (found.status, found.message, found.notes) == (run.status, run.message, list(run.notes))
    assert dict(found.facts).get("tokens") == {
        "svfl": None,
        "dcpa": None,
        "tree-cg": None,
        "stcd": "1",
        "tours": "1",
    }.get(name, "2")
    assert found.network.kind == "path"
    assert sorted(map(sorted, found.network.edges)) == [[0, 1], [1, 2], [2, 3]]
    assert found.network.server == (name in ("mtcd", "clusters", "batches", "float32", "svfl"))
    assert [client.name for client in found.clients] == ["c0", "c1", "c2", "c3"]
    assert [client.features for client in found.clients] == [2, 1, 2, 3]
    norms = [math.sqrt(sum(x * x for x in theta)) for theta in run.parameters.values()]
    assert [client.norm for client in found.clients] == pytest.approx(norms)
    if run.ledger.hops:  # a visit ends when the token leaves
        left = Counter(sender for sender in found.trace.sender if sender >= 0)
        assert [client.visits for client in found.clients] == [left[k] for k in range(4)]
    else:
        assert {client.visits for client in found.clients} == {run.final.iteration}
    columns = found.curves.columns
    assert columns["objective"] == pytest.approx(run.history["objective"].tolist(), rel=1e-8)
    # digits make up most of a file
    assert max(len(repr(value)) for value in columns["objective"]) <= 15
    assert found.curves.y[:2] == ["gap", "objective"]
    assert found.curves.x[0] == "iteration"
    assert columns["bytes"][-1] == pytest.approx(sum(run.ledger.bytes().values()), abs=1)
    assert {one.link: one.bytes for one in found.links} == {
        k: v for k, v in run.ledger.bytes().items() if v
    }
    assert dict(found.facts)["objective"] == f"{run.objective:.8g}"
    seconds = [one for one in found.trace.seconds if one is not None]
    assert seconds == sorted(seconds)
    assert seconds[-1] <= run.final.seconds + 1e-6


def test_bytes_are_those_of_single_precision(tmp_path: Path) -> None:
    wide, single = (
        reported(trained(METHODS[name]), tmp_path / name) for name in ("mtcd", "float32")
    )
    for one, other in zip(wide.links, single.links, strict=True):
        assert (one.messages, one.floats, one.bytes) == (
            other.messages,
            other.floats,
            2 * other.bytes,
        )


def test_clusters(tmp_path: Path) -> None:
    found = reported(trained(METHODS["clusters"]), tmp_path / "run")
    assert [client.cluster for client in found.clients] == [0, 0, 1, 1]
    assert found.network.clusters == [0, 0, 1, 1]


@pytest.mark.parametrize(
    "method", [mtcd.MTCD(2, 3, 1, 0.05, batch=4), mtcd.STCD(1, 0.05), mtcd.SVFL(1, 0.05)]
)
def test_split_networks_need_no_code(method: Method, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from split_problems import case

    run = case(network="cycle").train(method, mtcd.Stop(iterations=6))
    found = reported(run, tmp_path / "run")
    assert found.trace is not None
    assert [client.features for client in found.clients] == [2, 3, 2, 3]
    assert found.coefficients == []
    assert "accuracy" in found.curves.y


def test_a_diverged_run_and_a_run_of_an_older_version(tmp_path: Path) -> None:
    run = trained(mtcd.SVFL(stepsize=1e3))
    assert run.status == "diverged"
    found = reported(run, tmp_path / "run")
    assert {client.norm for client in found.clients} == {None}
    assert found.coefficients == []
    older = trained(METHODS["mtcd"])
    older.save(tmp_path / "older")
    (tmp_path / "older" / "trace.npz").unlink()
    (found,) = checked(make_report([read_record(tmp_path / "older", "one")], "file", "", "")).runs
    assert (found.network, found.trace) == (None, None)
    assert [client.name for client in found.clients] == ["c0", "c1", "c2", "c3"]
    assert {client.visits for client in found.clients} == {None}
    assert found.coefficients


@pytest.mark.parametrize(
    "spoilt", ["run.json", "history.csv", "ledger.json", "trace.npz", "coefficients.csv"]
)
def test_a_damaged_folder_is_refused(spoilt: str, tmp_path: Path) -> None:
    trained(METHODS["mtcd"]).save(tmp_path)
    (tmp_path / spoilt).write_bytes(b"client,column\n\xff\xfe")
    with pytest.raises(MtcdError, match="not a complete run folder"):
        read_record(tmp_path, "one")


def test_the_largest_coefficients_are_shown() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"client": f"c{k}", "column": f"x{k}.{i}", "coefficient": 0.0, "scaled_coefficient": value}
        for k in range(30)
        for i, value in enumerate(rng.standard_normal(15).tolist())
    ]
    rows.append(
        {"client": None, "column": "(intercept)", "coefficient": 99.0, "scaled_coefficient": 99.0}
    )
    shown = coefficients(rows)
    assert len(shown) == 200
    assert max(Counter(one["client"] for one in shown).values()) <= 10
    values = [abs(one["value"]) for one in shown]
    assert values == sorted(values, reverse=True)
    tenth = {
        f"c{k}": sorted(abs(r["scaled_coefficient"]) for r in rows[15 * k : 15 * k + 15])[5]
        for k in range(30)
    }
    expected = sorted(
        abs(r["scaled_coefficient"])
        for r in rows[:-1]
        if abs(r["scaled_coefficient"]) >= tenth[r["client"]]
    )
    assert values == expected[::-1][:200]


def test_coefficients_of_several_classes_are_named(tmp_path: Path) -> None:
    run = trained(METHODS["stcd"], mtcd.Glm("multinomial", l2=1.0))
    found = reported(run, tmp_path / "run")
    assert {one.column for one in found.coefficients if one.client == "c1"} == {
        "x2, a",
        "x2, b",
        "x2, c",
    }
    table = {(row["client"], row["column"]): row for row in run.coefficients_table()}
    for one in found.coefficients:
        column, label = one.column.split(", ")
        assert one.value == table[one.client, column][f"scaled_coefficient_{label}"]


def test_trees_have_gains_instead_of_norms_and_step_sizes(tmp_path: Path) -> None:
    X = np.random.default_rng(0).standard_normal((80, 4))
    data = mtcd.split(X, X[:, 0] + X[:, 3], {"bank": [0, 1], "lab": [2, 3]})
    model = mtcd.Mixed("squared", {"bank": {"kind": "trees", "min_samples": 5}, "lab": "linear"})
    live = LiveRun("it", data, mtcd.Costs(), "seed: 0\n")
    run = mtcd.train(data, model, "path", mtcd.STCD(), mtcd.Stop(iterations=30), callbacks=[live])
    for found in (reported(run, tmp_path / "run"), checked(live.document()).runs[0]):
        assert [client.detail for client in found.clients] == ["trees", "linear"]
        assert found.clients[0].norm is None
        assert found.clients[1].norm == pytest.approx(float(np.linalg.norm(run.parts["lab"].theta)))
        assert [client.features for client in found.clients] == [2, 2]
        assert found.gains
        gains = {row["column"]: row["share"] for row in run.importance()}
        assert {one.column: one.value for one in found.coefficients} == pytest.approx(gains)
        assert "step size" not in dict(found.facts)


@pytest.mark.parametrize("name", METHODS)
def test_a_training_that_is_watched(name: str) -> None:
    data = make_data(RIDGE, 12, [2, 1, 2, 3], seed=1)
    live = LiveRun("it", data, mtcd.Costs(), "seed: 0\n", ["a note"])
    seen = [checked(live.document()).runs[0]]

    def watch(row: Any, fraction: float) -> None:
        seen.append(checked(live.document()).runs[0])

    run = mtcd.train(
        data, RIDGE, "path", METHODS[name], mtcd.Stop(iterations=12), watch=watch, callbacks=[live]
    )
    seen.append(checked(live.document()).runs[0])
    assert [one.status for one in seen] == ["running"] * (len(seen) - 1) + [run.status]
    assert seen[0].network is None
    assert all(one.network is not None for one in seen[1:])
    totals = [0 if one.trace is None else one.trace.total for one in seen]
    assert totals == sorted(totals)
    for one, row in zip(seen[1:-1], run.history.rows[:-1], strict=False):
        assert one.curves.columns["objective"][-1] == pytest.approx(row.objective, rel=1e-8)
        assert sum(link.messages for link in one.links) == sum(row.messages.values())
    assert seen[-1].message == run.message
    assert seen[-1].notes == ["a note", *run.notes]
    assert seen[-1].clients[0].norm == pytest.approx(float(np.linalg.norm(run.parameters["c0"])))
    assert len(seen[-1].coefficients) == 8


def test_watching_does_not_forget_what_other_callbacks_keep(tmp_path: Path) -> None:
    data = make_data(RIDGE, 12, [2, 1, 2, 3], seed=1)
    patient = mtcd.KeepBest("objective")

    def train(iterations: int, *callbacks: mtcd.Callback, resume: bool = False) -> mtcd.Run:
        stop = mtcd.Stop(iterations=iterations)
        method = METHODS["stcd"]
        return mtcd.train(
            data,
            RIDGE,
            "path",
            method,
            stop,
            checkpoint=tmp_path,
            resume=resume,
            callbacks=callbacks,
        )

    train(10, patient)
    kept = mtcd.KeepBest("objective")
    train(10, kept, LiveRun("it", data, mtcd.Costs(), ""), resume=True)
    assert json.dumps(kept.state().facts) == json.dumps(patient.state().facts)
    assert kept.chosen() is not None


def test_a_trace_with_gaps_says_what_the_messages_that_were_left_out_have_added() -> None:
    """The visits before each window, counted from those of all messages; the hops of tokens add up
    to the ledger's."""
    data = make_data(RIDGE, 12, [1] * 6, seed=4)
    method, stop = mtcd.MTCD(2, 20, stepsize=1e-3), mtcd.Stop(iterations=6000)
    run = mtcd.train(data, RIDGE, "cycle", method, stop)
    shown = checked(
        make_report([of_run(run, "long", None, clients=data.clients)], "file", "long", "1")
    )
    trace = shown.runs[0].trace
    assert sum(trace.all_hops) == run.ledger.hops
    whole = [client.visits or 0 for client in shown.runs[0].clients]
    assert sum(whole) == run.ledger.hops
    ends = [*trace.visits_before[1:], whole]
    for window, (before, after) in enumerate(zip(trace.visits_before, ends, strict=True)):
        start, end = trace.windows[window]
        inside = Counter(sender for sender in trace.sender[start:end] if sender >= 0)
        assert all(before[k] + inside[k] <= after[k] for k in range(6))
        sent = window * 2 * WINDOW  # every second window is kept
        rounds, rest = divmod(sent, 2 + 2 * 20)  # in each, the server sends two tokens, which hop
        assert sum(before) == sent - 2 * rounds - min(rest, 2)
