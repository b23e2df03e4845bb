"""Hosts whose links share the bandwidth of one interface."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mtcd
from mtcd.cli.app import main
from mtcd.core.errors import NetworkError
from mtcd.methods.planned import Leg
from mtcd.network.topology import make_network
from mtcd.planner.interfaces import Interfaces, fair_rates, read_interfaces, sharing_notes
from mtcd.planner.links import Links
from mtcd.planner.timing import travel
from mtcd.planner.transfers import seconds_of
from mtcd.planner.virtual_time import SharedQueue, Use, VirtualTime
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Begin, Message

K, VISIT = 5, 0.003
RATE = 1000.0
"""Floats per second of the server's interface, each way."""
LATENCY = 0.01
CLIENTS = [f"client_{k}" for k in range(K)]
FAST = dict.fromkeys([(None, None), (None, K), (K, None)], (LATENCY, 1e-9))
"""Links that carry a billion floats per second: only interfaces take time."""
AT_SERVER = Links(K, FAST, Interfaces(K, {K: (RATE, RATE)}))

rates_of_hosts = st.floats(1.0, 1e4) | st.just(math.inf)


@given(
    st.integers(2, 6).flatmap(
        lambda hosts: st.tuples(
            st.lists(
                st.tuples(st.integers(0, hosts - 1), st.integers(0, hosts - 1)).filter(
                    lambda link: link[0] != link[1]
                ),
                min_size=1,
                max_size=12,
                unique=True,
            ),
            st.lists(st.tuples(rates_of_hosts, rates_of_hosts), min_size=hosts, max_size=hosts),
            st.lists(st.floats(1.0, 1e4), min_size=12, max_size=12),
        )
    )
)
def test_rates_are_max_min_fair(
    case: tuple[list[tuple[int, int]], list[tuple[float, float]], list[float]],
) -> None:
    """The definition: nothing is beyond what it can carry, and every message has a bottleneck: its
    link at its full rate, or a full interface at which nobody has more."""
    links, hosts, own = case
    interfaces = Interfaces(len(hosts), dict(enumerate(hosts)))
    link_rates = dict(zip(links, own, strict=False))
    rates = fair_rates(links, link_rates, interfaces)
    used: dict[object, list[float]] = {}
    for link in links:
        for interface in interfaces.of_link(*link):
            used.setdefault(interface, []).append(rates[link])
    for interface, found in used.items():
        assert sum(found) <= interfaces.capacity(interface) * (1 + 1e-9)
    for link in links:
        full = rates[link] >= link_rates[link] * (1 - 1e-9)
        for interface in interfaces.of_link(*link):
            users = used[interface]
            crowded = sum(users) >= interfaces.capacity(interface) * (1 - 1e-9)
            full = full or (crowded and rates[link] >= max(users) * (1 - 1e-9))
        assert full, (link, rates)


def test_uploads_at_once_take_as_long_as_one_after_the_other() -> None:
    """The paper's tau * l for l links of the server at once."""
    together = [Leg((k, -1), 100) for k in range(K)]
    assert seconds_of(together, AT_SERVER) == pytest.approx(K * 100 / RATE + LATENCY, rel=1e-6)
    assert seconds_of(together[:1], AT_SERVER) == pytest.approx(100 / RATE + LATENCY, rel=1e-6)


def test_both_directions_of_an_interface_are_apart() -> None:
    legs = [Leg((0, -1), 100), Leg((-1, 1), 100)]
    assert seconds_of(legs, AT_SERVER) == pytest.approx(100 / RATE + LATENCY, rel=1e-6)


def test_who_ends_first_leaves_its_share_to_the_others() -> None:
    """Sizes 1, 2, 3: all at RATE/3 until the first ends, then RATE/2, then RATE."""
    use = Use()
    timeline = SharedQueue(AT_SERVER, Ledger(), use)
    for k, floats in ((0, 100), (1, 200), (2, 300)):
        timeline.append(Message(k, -1, Begin(), floats))
    arrived = {}
    while timeline:
        message = timeline.popleft()
        arrived[message.sender] = timeline.now - LATENCY
    expected = {0: 300 / RATE, 1: 500 / RATE, 2: 600 / RATE}
    assert arrived == pytest.approx(expected, rel=1e-6)
    assert use.carrying == {(K, "down"): pytest.approx(600 / RATE)}
    assert use.messages == {(k, -1): 1 for k in range(3)}


def test_messages_of_one_link_queue_and_signals_do_not() -> None:
    use = Use()
    timeline = SharedQueue(AT_SERVER, Ledger(), use)
    for floats in (100, 100, 0):
        timeline.append(Message(0, -1, Begin(), floats))
    assert len(timeline) == 3
    times = []
    while timeline:
        left = len(list(timeline))
        message = timeline.popleft()
        times.append((message.floats, timeline.now))
        assert len(timeline) == left - 1
    expected = [(0, LATENCY), (100, 0.1 + LATENCY), (100, 0.2 + LATENCY)]
    assert times == [(floats, pytest.approx(time, rel=1e-6)) for floats, time in expected]
    assert use.queueing[0, -1] == pytest.approx(0.1, rel=1e-6)


@pytest.mark.parametrize("size", [4, 8])
def test_float32_takes_half_the_time(size: int) -> None:
    timeline = SharedQueue(AT_SERVER, Ledger(float_bytes=size), Use())
    timeline.append(Message(0, -1, Begin(), 100))
    timeline.popleft()
    assert timeline.now == pytest.approx(size / 8 * 100 / RATE + LATENCY, rel=1e-6)


METHODS = {
    "stcd": mtcd.STCD(2, stepsize=1e-3, walk="tour"),
    "svfl": mtcd.SVFL(2, stepsize=1e-3),
    "dcpa": mtcd.DCPA(stepsize=1e-2, dual_stepsize=1e-2),
    "mtcd": mtcd.MTCD(None, 6, 2, stepsize=1e-3, clusters=[[0, 1], [2, 3, 4]], walk="tour"),
    "tree-cg": mtcd.TreeCG(),
}
SLOW_HOSTS = Links(
    K, FAST, Interfaces(K, {K: (RATE, 2 * RATE), 1: (500.0, 400.0), None: (3e3, 2e3)})
)


@pytest.mark.parametrize("name", METHODS)
def test_the_planner_computes_what_is_simulated(name: str) -> None:
    samples, iterations = 60, 48
    data = mtcd.synthetic("ridge", samples=samples, features=10, clients=K, seed=2)
    network = make_network("path", data.clients)
    engine = VirtualTime(SLOW_HOSTS, VISIT)
    run = mtcd.train(
        data,
        mtcd.Glm("ridge", alpha=1.0),
        network,
        METHODS[name],
        mtcd.Stop(iterations=iterations),
        engine=engine,
        metrics=(),
    )
    wire = travel(METHODS[name], network, samples, 1, 0, SLOW_HOSTS).wire
    # visits on the critical path of an iteration
    depth = {"stcd": 1.0, "svfl": 1.0 + K, "dcpa": 2.0, "mtcd": 1.0 + 2 / 6, "tree-cg": 8.0}[name]
    found = run.final.seconds / iterations
    assert 0.95 * wire < found <= 1.05 * wire + depth * VISIT, (found, wire)
    if name == "stcd":
        assert found == pytest.approx(wire + VISIT, rel=0.05)


def test_iterates_are_those_of_one_process() -> None:
    data = mtcd.synthetic("ridge", samples=60, features=10, clients=K, seed=2)
    for name, method in METHODS.items():
        settings = (data, mtcd.Glm("ridge", alpha=1.0), "path", method, mtcd.Stop(iterations=24))
        shared = mtcd.train(*settings, engine=VirtualTime(SLOW_HOSTS, VISIT), metrics=())
        plain = mtcd.train(*settings, metrics=())
        assert shared.ledger.to_dict() == plain.ledger.to_dict(), name
        for theta, its in zip(shared.parameters.values(), plain.parameters.values(), strict=True):
            np.testing.assert_allclose(theta, its, rtol=1e-12, atol=1e-13)


def test_many_tokens_wait_for_a_slow_server() -> None:
    """The effect that motivates the paper: a token per client is slower than few tokens."""
    size = 12
    rows = dict.fromkeys([(None, None), (None, size), (size, None)], (1e-4, 1e-6))
    links = Links(size, rows, Interfaces(size, {size: (1e4, 1e4)}))
    network = make_network("complete", [f"client_{k}" for k in range(size)])
    times = {}
    for tokens in (2, size):
        method = mtcd.MTCD(tokens, size // tokens, 1, walk="tour").with_stepsize(1.0)
        per_hop = travel(method, network, 1000, 1, 0, links).wire
        times[tokens] = per_hop * method.hops
    assert times[size] > 4 * times[2]


def test_a_file_of_hosts(tmp_path: Path) -> None:
    network = make_network("path", CLIENTS)
    file = tmp_path / "hosts.csv"
    file.write_text("host,mbps_up,mbps_down\nserver,10,20\n*,1,2\nclient_3,5,6.4\n")
    found = read_interfaces(file, network)
    assert found.capacity((K, "up")) == pytest.approx(10e6 / 64)
    assert found.capacity((K, "down")) == pytest.approx(20e6 / 64)
    assert found.capacity((0, "down")) == pytest.approx(2e6 / 64)
    assert found.capacity((3, "down")) == pytest.approx(1e5)
    assert found.limits_server
    file.write_text("host,mbps_up,mbps_down\nclient_3,5,6\n")
    found = read_interfaces(file, network)
    assert found.capacity((0, "up")) == found.capacity((K, "up")) == math.inf
    assert not found.limits_server


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("server,0,1", "above 0"),
        ("server,1,-2", "above 0"),
        ("server,1,nan", "must be a number"),
        ("server,fast,1", "must be a number, but is 'fast'"),
        ("nobody,1,1", "nobody"),
        ("server,1,1\nserver,2,2", "given before"),
        ("", "has no hosts"),
        ("server,1,", "empty"),
    ],
)
def test_bad_files_are_refused(rows: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "hosts.csv"
    file.write_text(f"host,mbps_up,mbps_down\n{rows}\n")
    with pytest.raises(NetworkError, match=said):
        read_interfaces(file, make_network("path", CLIENTS))


def test_a_server_without_a_limit_is_mentioned() -> None:
    unlimited = Links(K, FAST)
    assert "--hosts" in sharing_notes(unlimited, True)[0]
    assert sharing_notes(unlimited, False) == ()
    assert sharing_notes(AT_SERVER, True) == ()
    only_clients = Links(K, FAST, Interfaces(K, {None: (1.0, 1.0)}))
    assert sharing_notes(only_clients, True) != ()


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "links.csv").write_text(
        "from,to,latency_ms,bandwidth_mbps\n*,*,0,1000\nserver,*,0,1000\n"
    )
    (tmp_path / "hosts.csv").write_text("host,mbps_up,mbps_down\nserver,0.5,0.5\n")
    (tmp_path / "c.yaml").write_text(
        "data: {synthetic: ridge, samples: 60, features: 10, clients: 5}\n"
        "model: {kind: ridge, alpha: 1}\nnetwork: {kind: path}\nmethod: {kind: svfl}\n"
        "stop: {iterations: 20}\n"
    )
    links = ["--links", str(tmp_path / "links.csv")]
    hosts = ["--hosts", str(tmp_path / "hosts.csv")]
    command = ["simulate", str(tmp_path / "c.yaml"), "--visit-ms", "0", *links]
    with pytest.raises(SystemExit, match="0"):
        main([*command, *hosts, "--out", str(tmp_path / "o"), "--json"])
    said = json.loads(capsys.readouterr().out)
    # 20 rounds: 5 clients x 60 floats down and up, at 0.5 Mb/s
    assert said["seconds"] == pytest.approx(20 * 2 * 5 * 60 * 64 / 0.5e6, rel=0.05)
    assert said["busiest_interface"]["host"] == "server"
    assert (tmp_path / "o/hosts.csv").read_text().startswith("host,direction,seconds,busy\n")
    with pytest.raises(SystemExit, match="0"):
        main([*command, "--out", str(tmp_path / "p")])
    assert "bandwidth to itself" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(SystemExit, match="2"):
        main(["plan", str(tmp_path / "c.yaml"), *hosts])
    assert "--links" in capsys.readouterr().err
