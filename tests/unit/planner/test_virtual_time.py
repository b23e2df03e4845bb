"""Simulated time against closed forms, and mtcd simulate."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import mtcd
from mtcd.cli.app import main
from mtcd.network.topology import make_network
from mtcd.planner.links import read_links
from mtcd.planner.timing import travel
from mtcd.planner.virtual_time import SimulatedQueue, Use, VirtualTime
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Begin, Message
from simulated_links import UnevenLinks

N, K, VISIT = 60, 5, 0.003
LINKS = "from,to,latency_ms,bandwidth_mbps\n*,*,2,4\nclient_1,client_2,9,1\nserver,*,40,2\nserver,client_3,60,1\n"
DATA = mtcd.synthetic("ridge", samples=N, features=10, clients=K, seed=2)
METHODS = {
    "stcd": mtcd.STCD(2, stepsize=1e-3, walk="tour"),
    "svfl": mtcd.SVFL(2, stepsize=1e-3),
    "dcpa": mtcd.DCPA(stepsize=1e-2, dual_stepsize=1e-2),
    "mtcd": mtcd.MTCD(None, 6, 2, stepsize=1e-3, clusters=[[0, 1], [2, 3, 4]], walk="tour"),
    "tree-cg": mtcd.TreeCG(),
}


def twice(links: str) -> str:
    """The links with twice the bandwidth."""
    head, *rows = links.splitlines()
    cells = [row.split(",") for row in rows]
    return "\n".join([head, *(",".join([*row[:3], str(2 * int(row[3]))]) for row in cells)])


def simulated(method: mtcd.MTCD, folder: Path, iterations: int, links: str = LINKS) -> mtcd.Run:
    (folder / "links.csv").write_text(links)
    network = make_network("path", DATA.clients)
    engine = VirtualTime(read_links(folder / "links.csv", network), VISIT)
    stop = mtcd.Stop(iterations=iterations)
    return mtcd.train(
        DATA, mtcd.Glm("ridge", alpha=1.0), network, method, stop, engine=engine, metrics=()
    )


@pytest.mark.parametrize("name", METHODS)
def test_an_iteration_takes_what_the_formula_says(name: str, tmp_path: Path) -> None:
    """The planner computes the time on the wire without messages; visits are added by hand."""
    method, iterations = METHODS[name], 48
    run = simulated(method, tmp_path, iterations)
    network = make_network("path", DATA.clients)
    wire = travel(method, network, N, 1, 0, read_links(tmp_path / "links.csv", network)).wire
    # computing on the critical path, per iteration: a visit; client and server; with mtcd, the
    # server once per 6 hops
    depth = {"stcd": 1.0, "svfl": 1.0 + K, "dcpa": 2.0, "mtcd": 1.0 + 2 / 6, "tree-cg": 8.0}[name]
    found = run.final.seconds / iterations
    assert wire < found <= wire + depth * VISIT + 0.05 * wire, (found, wire)
    if name == "stcd":  # exact, but for the start: nothing is sent to the first client
        assert found == pytest.approx(wire + VISIT, rel=0.05)


def test_the_iterates_and_the_ledger_are_those_of_train(tmp_path: Path) -> None:
    for name, method in METHODS.items():
        run = simulated(method, tmp_path, 24)
        plain = mtcd.train(
            DATA, mtcd.Glm("ridge", alpha=1.0), "path", method, mtcd.Stop(iterations=24), metrics=()
        )
        assert run.ledger.to_dict() == plain.ledger.to_dict(), name
        for theta, its in zip(run.parameters.values(), plain.parameters.values(), strict=True):
            np.testing.assert_allclose(theta, its, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("size", [4, 8])
def test_a_message_takes_the_time_of_its_bytes(size: int) -> None:
    links, use = UnevenLinks(), Use()
    timeline = SimulatedQueue(links, Ledger(float_bytes=size), use)
    timeline.append(Message(0, 1, Begin(), 100))
    timeline.popleft()
    wire = 100 * links.seconds_per_float(0, 1) * size / 8
    assert timeline.now == pytest.approx(wire + links.latency_of(0, 1))
    assert use.sending == {(0, 1): pytest.approx(wire)}


@pytest.mark.parametrize("name", ["stcd", "svfl", "mtcd"])
def test_float32_halves_the_time_on_the_wire(name: str, tmp_path: Path) -> None:
    """All times but those of latency and visits are proportional to the bytes: twice the bandwidth
    does the same."""
    method = replace(METHODS[name], transport="float32")
    halved = simulated(method, tmp_path, 24)
    faster = simulated(METHODS[name], tmp_path, 24, twice(LINKS))
    slower = simulated(METHODS[name], tmp_path, 24)
    assert halved.final.seconds == pytest.approx(faster.final.seconds, rel=1e-9)
    assert halved.final.seconds < slower.final.seconds


def test_messages_on_one_link_queue_and_on_others_do_not() -> None:
    use = Use()
    timeline = SimulatedQueue(UnevenLinks(), Ledger(), use)
    for to, floats in ((1, 100), (1, 100), (2, 100), (1, 0), (0, 100)):
        timeline.append(Message(0, to, Begin(), floats))
    links = UnevenLinks()
    wire, latency = 100 * links.seconds_per_float(0, 1), links.latency_of(0, 1)
    arrived = []
    while timeline:
        message = timeline.popleft()
        arrived.append((message.to, message.floats, pytest.approx(timeline.now)))
    expected = [
        (0, 100, 0.0),  # to itself
        (1, 0, latency),  # a signal does not wait
        (1, 100, wire + latency),
        (1, 100, 2 * wire + latency),
        (2, 100, 100 * links.seconds_per_float(0, 2) + links.latency_of(0, 2)),
    ]
    assert sorted(arrived, key=str) == sorted(expected, key=str)
    assert use.queueing[0, 1] == pytest.approx(wire)
    assert use.queueing[0, 2] == 0.0


def test_a_limit_of_seconds_is_one_of_simulated_time(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("from,to,latency_ms,bandwidth_mbps\n*,*,1000,1000\n")
    network = make_network("path", DATA.clients)
    engine = VirtualTime(read_links(tmp_path / "links.csv", network), 0.0)
    run = mtcd.train(
        DATA,
        mtcd.Glm("ridge"),
        network,
        METHODS["stcd"],
        mtcd.Stop(seconds=500),
        engine=engine,
        metrics=(),
    )
    assert run.status == "seconds"
    assert run.final.iteration == pytest.approx(500, abs=2)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "links.csv").write_text(LINKS)
    (tmp_path / "c.yaml").write_text(
        "data: {synthetic: ridge, samples: 60, features: 10, clients: 5}\nmodel: {kind: ridge, "
        "alpha: 1}\n"
        "network: {kind: path}\nmethod: {kind: mtcd, tokens: 2, hops: 6}\nstop: {gap: 1e-2, "
        "iterations: 600}\n"
    )
    command = [
        "simulate",
        str(tmp_path / "c.yaml"),
        "--links",
        str(tmp_path / "links.csv"),
        "--out",
        str(tmp_path / "o"),
    ]
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--json"])
    said = json.loads(capsys.readouterr().out)
    rows = list(csv.DictReader((tmp_path / "o/history.csv").read_text().splitlines()))
    assert float(rows[-1]["seconds"]) == said["seconds"] > 0
    assert said["seconds_to_target"] is None or said["seconds_to_target"] <= said["seconds"]
    busy = list(csv.DictReader((tmp_path / "o/links.csv").read_text().splitlines()))
    assert all(0 < float(row["busy"]) <= 1 for row in busy)
    assert (tmp_path / "o/simulation.png").read_bytes()[:4] == b"\x89PNG"
    (tmp_path / "links.csv").write_text("from,to,latency_ms,bandwidth_mbps\n*,*,2,4\n")
    with pytest.raises(SystemExit, match="2"):
        main(command)
    assert "server" in capsys.readouterr().err
