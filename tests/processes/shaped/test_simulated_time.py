"""Simulated time against federations of real processes, in network namespaces with links of given
bandwidths.

A federation is trained twice, to two numbers of iterations: the difference is without its start and
its end.
"""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cryptography")

import mtcd
from hosted import PATH, ended, federation
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import make_network
from mtcd.planner.interfaces import with_interfaces
from mtcd.planner.links import read_links
from mtcd.planner.virtual_time import VirtualTime
from namespaces import ROUTER, skip_where_not_allowed

skip_where_not_allowed()
SAMPLES = 100_000  # a token of 800 KB
WITHIN = 0.15
SYNCS = 2
CLIENTS = {"a": "client_0", "b": "client_1", "c": "client_2", "server": "server"}
Rates = dict[tuple[str, str], float]
STCD = {"kind": "stcd", "local_updates": 1, "stepsize": 1e-6, "walk": "tour"}
MTCD = {"kind": "mtcd", "tokens": 2, "hops": 4, "local_updates": 1, "stepsize": 1e-6}
SVFL = {"kind": "svfl", "local_updates": 1, "stepsize": 1e-6}
CASES = {
    "one token, uneven links": (STCD, {("a", "b"): 20, ("b", "c"): 10}, (4, 16)),
    "two tokens and a server": (
        MTCD,
        {
            ("a", "b"): 20,
            ("b", "c"): 20,
            ("a", "server"): 40,
            ("b", "server"): 40,
            ("c", "server"): 10,
        },
        (8, 24),
    ),
    "rounds of a server": (
        SVFL,
        {
            ("a", "b"): 20,
            ("b", "c"): 20,
            ("a", "server"): 20,
            ("b", "server"): 20,
            ("c", "server"): 10,
        },
        (2, 8),
    ),
}


SHARED_RATE = 10
"""Mbit/s of the server's one cable."""
CYCLES = {
    size: [(name, chr(ord("a") + (k + 1) % size)) for k, name in enumerate("abcdefgh"[:size])]
    for size in (4, 8)
}
ONE_CABLE = {
    f"{tokens} tokens, {size} clients": (size, tokens) for size in (4, 8) for tokens in (1, 2, size)
}


def real_seconds_at_one_cable(folder: Path, size: int, tokens: int, iterations: int) -> float:
    folder.mkdir()
    links = CYCLES[size]
    clients = "abcdefgh"[:size]
    cables = [*links, *((name, ROUTER) for name in (*clients, "server"))]
    with federation(
        folder,
        SAMPLES,
        links,
        server=True,
        cables=cables,
        method=roaming(size, tokens),
        stop={"iterations": iterations},
    ) as (hosts, processes, _, _):
        hosts.share("server", clients, f"{SHARED_RATE}mbit")
        processes.start(*processes.tables, "server")
        return max(summary.seconds or 0.0 for summary in ended(processes))


def roaming(size: int, tokens: int) -> dict[str, Any]:
    """Each token visits its share of the clients before the sync."""
    hops = size // tokens
    return {
        "kind": "mtcd",
        "tokens": tokens,
        "hops": hops,
        "walk": "tour",
        "local_updates": 1,
        "stepsize": 1e-6,
    }


def simulated_seconds_at_one_cable(folder: Path, size: int, tokens: int, iterations: int) -> float:
    (folder / "links.csv").write_text(
        "from,to,latency_ms,bandwidth_mbps\n*,*,0,10000\nserver,*,0,10000\n"
    )
    (folder / "hosts.csv").write_text(
        f"host,mbps_up,mbps_down\nserver,{SHARED_RATE},{SHARED_RATE}\n"
    )
    data = mtcd.synthetic("ridge", samples=SAMPLES, features=2 * size, clients=size)
    network = make_network("cycle", data.clients)
    links = with_interfaces(
        read_links(folder / "links.csv", network), folder / "hosts.csv", network
    )
    settings = {key: value for key, value in roaming(size, tokens).items() if key != "kind"}
    stop = mtcd.Stop(iterations=iterations)
    return mtcd.train(
        data,
        mtcd.Glm("ridge"),
        network,
        mtcd.MTCD(**settings),
        stop,
        engine=VirtualTime(links),
        metrics=(),
    ).final.seconds


@pytest.mark.parametrize("case", ONE_CABLE)
def test_links_that_share_the_cable_of_the_server(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    size, tokens = ONE_CABLE[case]
    hops = size // tokens
    few, many = hops, (1 + SYNCS) * hops
    real = real_seconds_at_one_cable(
        tmp_path / "many", size, tokens, many
    ) - real_seconds_at_one_cable(tmp_path / "few", size, tokens, few)
    simulated = simulated_seconds_at_one_cable(
        tmp_path, size, tokens, many
    ) - simulated_seconds_at_one_cable(tmp_path, size, tokens, few)
    off = simulated / real - 1
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{case}: {real:.2f} s in {SYNCS} syncs, simulated {simulated:.2f} s: {off:+.1%}"
        )
    assert abs(off) <= WITHIN


def real_seconds(folder: Path, method: dict[str, Any], rates: Rates, iterations: int) -> float:
    folder.mkdir()
    server = any("server" in link for link in rates)
    stop = {"iterations": iterations}
    with federation(folder, SAMPLES, PATH, server=server, method=method, stop=stop) as (
        hosts,
        processes,
        _,
        _,
    ):
        for link, rate in rates.items():
            hosts.slow(*link, f"{rate}mbit")
        processes.start(*processes.tables, *(["server"] if server else []))
        return max(summary.seconds or 0.0 for summary in ended(processes))


def simulated_seconds(folder: Path, method: dict[str, Any], rates: Rates, iterations: int) -> float:
    rows = [f"{CLIENTS[one]},{CLIENTS[other]},0,{rate}" for (one, other), rate in rates.items()]
    (folder / "links.csv").write_text(
        "\n".join(["from,to,latency_ms,bandwidth_mbps", *rows]) + "\n"
    )
    # times do not depend on the numbers
    data = mtcd.synthetic("ridge", samples=SAMPLES, features=6, clients=3)
    network = network_from_edges(
        [(CLIENTS[one], CLIENTS[other]) for one, other in PATH], data.clients
    )
    kinds = {"stcd": mtcd.STCD, "mtcd": mtcd.MTCD, "svfl": mtcd.SVFL}
    own = kinds[method["kind"]](**{key: value for key, value in method.items() if key != "kind"})
    engine = VirtualTime(read_links(folder / "links.csv", network))
    stop = mtcd.Stop(iterations=iterations)
    return mtcd.train(
        data, mtcd.Glm("ridge"), network, own, stop, engine=engine, metrics=()
    ).final.seconds


@pytest.mark.parametrize("case", CASES)
def test_simulated_time_is_that_of_real_processes(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    method, rates, (few, many) = CASES[case]
    real = real_seconds(tmp_path / "many", method, rates, many) - real_seconds(
        tmp_path / "few", method, rates, few
    )
    simulated = simulated_seconds(tmp_path, method, rates, many) - simulated_seconds(
        tmp_path, method, rates, few
    )
    off = simulated / real - 1
    with capsys.disabled():
        print(  # noqa: T201
            f"\n{case}: {real:.2f} s in {many - few} iterations, simulated {simulated:.2f} s: "
            f"{off:+.1%}"
        )
    assert abs(off) <= WITHIN
