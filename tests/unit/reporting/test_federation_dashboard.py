"""The page of a whole federation: its document, from what real parties answer, and the command that
serves it."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

pytest.importorskip("cryptography")
pytest.importorskip("bokeh")

from bundles_on_disk import found
from hubs import Hub, Passing, linear
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.node.operator import operator_bundle
from mtcd.federation.node.overview import summarise
from mtcd.reporting.federation import FederationView
from own_parts import model_section
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 12, [2, 1, 3, 2], seed=3)
K = len(DATA.clients)
METHOD = {"kind": "mtcd", "tokens": 2, "hops": 5, "stepsize": 0.01}


def looked(
    hub: Hub, view: FederationView, seconds: float, gone: str | None = None
) -> dict[str, Any]:
    """The document after a look at the nodes of a hub."""
    answers = {}
    for name in hub.nodes:
        answer = hub.ask(Passing("operator", name, "control/status", b""))
        if answer is not None and name != gone:
            answers[name] = json.loads(answer[1:])
    view.observe(summarise(view.config, answers), seconds)
    document = view.document()
    json.dumps(document, allow_nan=False)
    return document


def test_the_document_follows_a_run(tmp_path: Path) -> None:
    settings = {"model": model_section(MODELS[0]), "method": METHOD, "stop": {"iterations": 40}}
    with Hub(tmp_path, DATA.clients, linear(DATA), network={"kind": "cycle"}, **settings) as hub:
        view = FederationView(operator_bundle(tmp_path / "bundles", read_bundle).config)
        hub.begin()
        states = [[one["state"] for one in looked(hub, view, 0.0)["runs"][0]["clients"]]]
        for step in range(20_000):
            if all(node.phase == "ended" for node in hub.nodes.values()):
                break
            if not hub.act() and not hub.deliver():
                hub.wait()
            document = looked(hub, view, 0.001 * step)
        hops = sum(
            node.trainer.reliable.ledger.hops
            for node in hub.nodes.values()
            if node.trainer is not None
        )
        states.append([one["state"] for one in looked(hub, view, 300.0)["runs"][0]["clients"]])
        last = looked(hub, view, 301.0, gone=DATA.clients[1])["runs"][0]
        view.observe(summarise(view.config, {}), 302.0)
        unanswered = view.document()["runs"][0]
    assert states == [["waiting"] * K, ["finished"] * K]
    assert document["mode"] == "federation"
    assert [one["state"] for one in last["clients"]] == ["finished", "gone", "finished", "finished"]
    assert last["clients"][1]["detail"].startswith("not reached")
    assert dict(last["facts"])["hops"] == f"{hops:,}"  # also those of who is gone
    assert dict(unanswered["facts"])["iteration"] == "40"
    assert unanswered["message"] == f"0 of {K + 1} members answer. Iteration 40."
    check_trace(last, hops)
    columns = last["curves"]["columns"]
    assert columns["iteration"][-1] == 40
    for name in ("iteration", "hops", "cost", "bytes", "seconds"):
        assert columns[name] == sorted(columns[name]), name


def check_trace(run: dict[str, Any], hops: int) -> None:
    """Every pass is along a link or with the server, in order, and each token goes on where it
    was."""
    trace, links = run["trace"], {frozenset(link) for link in run["network"]["edges"]}
    assert trace["tokens"] == 2
    assert trace["total"] == hops
    passes = list(
        zip(*(trace[name] for name in ("token", "sender", "receiver", "iteration")), strict=True)
    )
    assert len(passes) > 20
    for _, sender, receiver, _ in passes:
        assert -1 in (sender, receiver) or frozenset((sender, receiver)) in links
    for token in (0, 1):
        iterations = [iteration for index, _, _, iteration in passes if index == token]
        assert iterations == sorted(iterations)
    assert [end for _, end in trace["windows"]][-1] == len(passes)
    assert all(a[1] == b[0] for a, b in zip(trace["windows"], trace["windows"][1:], strict=False))


def test_another_run_begins_anew(tmp_path: Path) -> None:
    bundles = found(tmp_path / "f")
    view = FederationView(operator_bundle(bundles, read_bundle).config)
    one = {"phase": "ended", "ended": "iterations", "tokens": [], "waiting_for": []}
    summary = {"status": None, "hops": 0, "syncs": 0, "cost": 0.0, "gap": None, "objective": 1.0}
    for run, iteration in (("r1", 100), ("r1", 120), ("r2", 5)):
        parties = {name: {**one, "run": run} for name in ("a", "b", "c", "server")}
        view.observe({**summary, "iteration": iteration, "parties": parties}, 0.0)
    (run_shown,) = view.document()["runs"]
    assert run_shown["curves"]["columns"]["iteration"] == [5]
    assert run_shown["curves"]["columns"]["objective"] == [1.0]
    assert run_shown["curves"]["y"] == ["objective"]
    assert dict(run_shown["facts"])["run"] == "r2"


def test_the_command_serves_the_page_until_ctrl_c(tmp_path: Path) -> None:
    bundles = found(tmp_path / "f")
    command = [sys.executable, "-m", "mtcd", "federation", "dashboard", str(bundles)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "200"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            address = process.stdout.readline().split()[-1]
            assert address.startswith("http://127.0.0.1:")
            assert "Ctrl-C" in process.stdout.readline()
            with urlopen(f"{address}data") as answer:
                (run,) = json.load(answer)["runs"]
            with urlopen(address) as answer:
                assert b"<canvas" in answer.read()
            process.send_signal(signal.SIGINT)
            assert process.wait() == 0
        finally:
            process.kill()
    assert [(one["name"], one["state"]) for one in run["clients"]] == [
        (name, "gone") for name in ("a", "b", "c")
    ]
    assert run["network"]["edges_total"] == 2
    assert run["message"] == "0 of 4 members answer."
