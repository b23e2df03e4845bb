"""Links files, budgets, and the time that messages take: against examples worked out by hand."""

import math
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd import DCPA, MTCD, STCD, SVFL, Stop, TreeCG, make_network
from mtcd.config.build import build
from mtcd.config.read import check_config
from mtcd.core.errors import ConfigError, NetworkError
from mtcd.planner.links import Links, parse_budget, read_links
from mtcd.planner.pilots import Pilot, PlanTask
from mtcd.planner.simulate import simulate
from mtcd.planner.timing import travel

HEADER = "from,to,latency_ms,bandwidth_mbps\n"
PATH = make_network("path", ["a", "b", "c"])
SERVER = 3


def links_of(tmp_path: Path, text: str, network=PATH) -> Links:
    file = tmp_path / "links.csv"
    file.write_text(HEADER + text)
    return read_links(file, network)


def milliseconds(links: Links) -> np.ndarray:
    """The latency from party to party."""
    parties = range(links.server + 1)
    return np.round([[links.latency_of(k, j) * 1e3 for j in parties] for k in parties])


def everywhere(clients: int, latency: float, per_float: float) -> Links:
    """The same link between all parties."""
    return Links(clients, dict.fromkeys([(None, None), (None, clients)], (latency, per_float)))


def test_the_most_specific_row_wins_and_holds_both_ways(tmp_path) -> None:
    links = links_of(tmp_path, "*,*,10,8\na,b,1,64\nc,*,5,8\nserver,*,100,8\nb,server,7,8\n")
    ms = milliseconds(links)
    assert (ms[0, 1], ms[1, 0]) == (1, 1)
    assert (ms[1, 2], ms[2, 1]) == (5, 5)  # c,* says more than *,*
    assert (ms[SERVER, 0], ms[0, SERVER], ms[SERVER, 2]) == (100, 100, 100)
    assert (ms[1, SERVER], ms[SERVER, 1]) == (7, 7)  # both ends named, written the other way round
    assert links.seconds(0, 1, 1000) == pytest.approx(1e-3 + 1000 * 64 / 64e6)
    assert links.seconds(0, 0, 1000) == 0.0
    assert links.has_server


def test_each_direction_can_have_its_own_row(tmp_path) -> None:
    links = links_of(tmp_path, "*,*,10,8\nb,a,3,8\na,b,1,8\nserver,*,9,8\n*,server,4,8\n")
    ms = milliseconds(links)
    assert (ms[0, 1], ms[1, 0]) == (1, 3)
    assert (ms[SERVER, 1], ms[1, SERVER]) == (9, 4)


@given(
    st.permutations(["*,*,10,8", "a,*,1,8", "*,b,2,8", "b,a,3,8", "server,*,4,8", "server,c,5,8"])
)
def test_the_order_of_rows_does_not_matter(tmp_path_factory, rows) -> None:
    links = links_of(tmp_path_factory.mktemp("links"), "\n".join(rows))
    ms = milliseconds(links)
    # b,a names both ends; b,c: only *,b (turned round) names one
    assert [ms[0, 1], ms[1, 0], ms[1, 2], ms[2, 1], ms[SERVER, 2], ms[0, SERVER]] == [
        3,
        3,
        2,
        2,
        5,
        4,
    ]


ENDS = st.sampled_from([None, 0, 1, 2, SERVER])
PAIRS = st.tuples(ENDS, ENDS).filter(lambda ends: ends[0] is None or ends[0] != ends[1])


@given(st.lists(PAIRS, unique=True, max_size=12))
def test_rows_are_looked_up_as_a_matrix_would_be_filled(pairs) -> None:
    """The twin writes each row, in both directions, over those that count less."""
    rows = {ends: (float(number), 2.0 * number) for number, ends in enumerate(pairs, start=1)}
    matrix = np.full((SERVER + 1, SERVER + 1), np.nan)

    def rank(entry):
        (sender, to), forward = entry
        named = [sender is not None, to is not None]
        return sum(named), forward, named[0 if forward else 1]

    for ends, forward in sorted(
        ((ends, forward) for ends in rows for forward in (False, True)), key=rank
    ):
        k, j = (
            slice(0, SERVER) if end is None else end for end in (ends if forward else ends[::-1])
        )
        matrix[k, j] = rows[ends][0]
    links, parties = Links(SERVER, rows), range(SERVER + 1)
    found = [[links.latency_of(k, j) for j in parties] for k in parties]
    assert np.array_equal(found, matrix, equal_nan=True)
    assert links.latency_of(-1, 0) == pytest.approx(matrix[SERVER, 0], nan_ok=True)


def test_links_of_many_clients_take_little_memory(tmp_path) -> None:
    network = make_network("complete", [f"client_{k}" for k in range(10_000)])
    tracemalloc.start()
    links = links_of(tmp_path, "*,*,1,8\nclient_3,client_9,5,8\nserver,*,2,8\n", network)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20e6
    assert (links.latency_of(9, 3), links.latency_of(3, 8)) == (5e-3, 1e-3)


def test_numbers_of_clients_blank_lines_and_semicolons_are_read(tmp_path) -> None:
    file = tmp_path / "links.csv"
    file.write_bytes(
        b"\xef\xbb\xbffrom;to;latency_ms;bandwidth_mbps;comment\n0;1;1;8;x\n\n;;;;\n1;2;2;8;y\n"
    )
    links = read_links(file, PATH)
    assert links.latency_of(2, 1) == pytest.approx(2e-3)
    assert not links.has_server


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b,1,8\n", r"no row covers the link b,c"),
        ("*,*,1,8\na,server,1,8\n", r"no row covers the link server,b"),
        ("*,*,1,8\nz,b,1,8\n", r"line 3: no client is called 'z'"),
        ("*,*,fast,8\n", r"line 2: latency_ms must be a number, but is 'fast'"),
        ("*,*,nan,8\n", r"line 2: latency_ms must be a number"),
        ("*,*,-1,8\n", r"line 2: latency_ms must be 0 or more"),
        ("*,*,1,0\n", r"line 2: .*bandwidth_mbps above 0"),
        ("*,*,1\n", r"line 2: the cell 'bandwidth_mbps' is empty"),
        ("*,*,1,8\na,b,1,8\n\na,b,2,8\n", r"line 5: this link was given before, at .*line 3"),
        ("*,*,1,8\na,a,1,8\n", r"line 3: 'a' needs no link to itself"),
        ("", r"no row covers the link a,b"),
    ],
)
def test_bad_rows_are_told_with_file_and_line(tmp_path, text, said) -> None:
    with pytest.raises(NetworkError, match=said) as error:
        links_of(tmp_path, text)
    assert "links.csv" in str(error.value)


def test_bad_files_are_told(tmp_path) -> None:
    with pytest.raises(NetworkError, match="cannot read the links .*nowhere"):
        read_links(tmp_path / "nowhere.csv", PATH)
    (tmp_path / "x.csv").write_text("source,target\na,b\n")
    with pytest.raises(NetworkError, match="has no column 'from'"):
        read_links(tmp_path / "x.csv", PATH)
    (tmp_path / "x.csv").write_bytes(HEADER.encode() + b"\xff\xfe,b,1,1\n")
    with pytest.raises(NetworkError, match="not a CSV file in UTF-8"):
        read_links(tmp_path / "x.csv", PATH)


@pytest.mark.parametrize("name", ["server", "*"])
def test_a_client_that_is_called_like_a_sign_is_refused(tmp_path, name) -> None:
    with pytest.raises(NetworkError, match="rename it"):
        links_of(tmp_path, "*,*,1,8\n", make_network("path", ["a", name]))


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("2m", 120), (" 90 ", 90), ("1h", 3600), ("1.5M", 90)]
)
def test_budgets(text, seconds) -> None:
    assert parse_budget(text) == seconds


@pytest.mark.parametrize("text", ["", "s", "soon", "0", "-5s", "inf", "nan", "1d", "5 minutes"])
def test_bad_budgets(text) -> None:
    with pytest.raises(ConfigError, match="60s, 2m or 1h"):
        parse_budget(text)


@pytest.fixture
def slow_b_c(tmp_path) -> Links:
    """A hop a-b takes 1 s, b-c 10 s, the server is 100 s away from a and b, 200 s from c; bandwidth
    is no matter."""
    rows = "a,b,1000,1e9\nb,c,10000,1e9\nserver,*,100000,1e9\nserver,c,200000,1e9\n"
    return links_of(tmp_path, rows)


def seconds(method, links: Links) -> float:
    found = travel(method.with_stepsize(1.0), PATH, 10, 1, 0, links).wire
    assert found is not None
    return found


def test_time_on_the_wire_by_hand(slow_b_c) -> None:
    assert seconds(STCD(walk="tour"), slow_b_c) == pytest.approx((1 + 10 + 10 + 1) / 4, rel=1e-6)
    assert seconds(SVFL(), slow_b_c) == pytest.approx(2 * 200, rel=1e-6)
    assert seconds(DCPA(), slow_b_c) == pytest.approx(10, rel=1e-6)
    # the root is b: a and c send at the same time, and so does b
    assert seconds(TreeCG(), slow_b_c) == pytest.approx(10 + 10, rel=1e-6)
    clusters = MTCD(hops=2, clusters=[["a", "b"], ["c"]], start=["a", "c"], walk="tour")
    # a-b: down 100, hop 1, up 100; c: down 200, stays, up 200. Two hops to a sync.
    assert seconds(clusters, slow_b_c) == pytest.approx(400 / 2, rel=1e-6)
    one = MTCD(hops=4, start="a", walk="tour")  # a b c b, then up from b
    assert seconds(one, slow_b_c) == pytest.approx((100 + 1 + 10 + 10 + 100) / 4, rel=1e-6)
    # mini-batches: after the roam (the last signal travels too), asked and answered by everybody
    batches = replace(one, batch=5)
    assert seconds(batches, slow_b_c) == pytest.approx((100 + 21 + 100 + 400) / 4, rel=1e-6)


def test_bandwidth_counts_floats(tmp_path) -> None:
    links = links_of(
        tmp_path, "*,*,0,0.064\nserver,*,0,0.128\n"
    )  # 1 ms per float between clients, half with the server
    assert seconds(STCD(walk="tour"), links) == pytest.approx(10e-3)
    assert seconds(SVFL(batch=4), links) == pytest.approx(2 * 4 * 0.5e-3)


def test_lazy_walks_wait_for_free_and_visit_few() -> None:
    links = everywhere(3, 1.0, 0.0)
    lazy = travel(STCD().with_stepsize(1.0), PATH, 10, 1, 0, links)
    # stays with probability 1/2, 1/3, 1/2; shares 2, 3, 2 of 7
    assert lazy.wire == pytest.approx(4 / 7, abs=0.05)
    tour = travel(STCD(walk="tour").with_stepsize(1.0), PATH, 10, 1, 0, links)
    assert tour.distinct >= lazy.distinct
    assert (lazy.parallel, tour.wire) == (1, 1.0)
    assert travel(MTCD(2, 8).with_stepsize(1.0), PATH, 10, 1, 0, None).wire is None


def test_very_long_roams_are_followed_in_part() -> None:
    links = everywhere(3, 1.0, 0.0)
    long = travel(MTCD(3, 1_000_000, walk="tour").with_stepsize(1.0), PATH, 10, 1, 0, links)
    assert long.wire == pytest.approx(1.0, rel=1e-4)


def test_what_a_method_adds_to_its_tokens_takes_time() -> None:
    """Optimal sync with many tokens and few samples: messages are far longer than the aggregate."""
    setup = build(
        check_config(
            {
                "data": {"synthetic": "ridge", "samples": 20, "features": 30, "clients": 10},
                "network": {"kind": "cycle"},
                "method": {
                    "kind": "mtcd",
                    "tokens": 8,
                    "hops": 4,
                    "combine": "optimal",
                    "local_updates": 5,
                },
            }
        )
    )
    links = everywhere(10, 0.0, 1.0)
    task = PlanTask.of(setup, 1e-3, setup.costs, links)
    pilot = Pilot(task, setup.method.with_stepsize(1e-3))
    alone = pilot.wall_rate
    pilot.advance(math.inf, 300 * alone)
    floats, messages = (
        getattr(pilot.rows[-1], what)["client_client"] for what in ("floats", "messages")
    )
    assert floats > 1.5 * 20 * messages
    assert pilot.wall_rate > 1.5 * alone
    # a pilot has the time of a simulation: what is foretold is what that says
    stop = Stop(iterations=pilot.iterations)
    simulated = simulate(replace(setup, method=pilot.method, stop=stop), links)
    assert pilot.spent == pytest.approx(simulated.seconds, rel=1e-3)
