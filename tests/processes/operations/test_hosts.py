"""Federations whose parties have hosts and cables of their own: what goes where, as the kernel
counts it."""

from pathlib import Path
from time import monotonic, sleep

import numpy as np

from hosted import CYCLE, FOREVER, PATH, check_optimum, ended, federation, stop, wait_for
from mtcd.protocol.ledger.ledger import Ledger
from namespaces import Hosts, skip_where_not_allowed

skip_where_not_allowed()
STCD = {"kind": "stcd", "local_updates": 1, "stepsize": 1e-4, "walk": "metropolis"}
OPENING = 1_500_000  # bytes: labels and which rows they are of go from a to c, over b or the server


def test_tokens_go_straight_and_the_server_sees_syncs_only(tmp_path: Path) -> None:
    method = {"kind": "mtcd", "tokens": 1, "hops": 24, "stepsize": 1e-5}
    samples, stop = 20_000, {"iterations": 480}
    with federation(tmp_path, samples, PATH, server=True, method=method, stop=stop) as (
        hosts,
        processes,
        _,
        _,
    ):
        processes.start(*processes.tables, "server")
        ledger = Ledger.total([summary.ledger for summary in ended(processes)])
        between = sum(hosts.carried(*cable) for cable in PATH)
        up_and_down = sum(hosts.carried(name, "server") for name in processes.tables)
    hops, ups, downs = (8 * floats for floats in ledger.float_counts)
    assert hops <= between <= 1.1 * hops + OPENING
    assert ups + downs <= up_and_down <= 1.1 * (ups + downs) + OPENING
    assert hops > 4 * (ups + downs)


def test_a_slow_link_slows_itself_only(tmp_path: Path) -> None:
    rate, samples = 1e6 / 8, 12_500  # bytes a second; a token of 100 KB takes 0.8 s
    with federation(tmp_path, samples, PATH, method=STCD, stop=FOREVER) as (hosts, processes, _, _):
        hosts.slow("a", "b", "1mbit")
        processes.start(*processes.tables)
        for cable in PATH:
            wait_for(hosts, *cable, 2 * 8 * samples)
        slow, fast = watched(hosts, 3 * 8 * samples)
        stop(hosts, processes, "b")
        ended(processes)
    assert slow < 2 * rate  # some of each token goes through at once
    assert fast > 3 * rate, (slow, fast)


def watched(hosts: Hosts, volume: int) -> list[float]:
    """Bytes per second of each cable, over the moments in which it carried much; until each has
    carried so much."""
    step, much = 0.05, 1000
    moved, busy = np.zeros(len(PATH)), np.zeros(len(PATH))
    then, before = monotonic(), [hosts.carried(*cable) for cable in PATH]
    while moved.min() < volume:
        sleep(step)
        now, after = monotonic(), [hosts.carried(*cable) for cable in PATH]
        grown = np.subtract(after, before)
        moved += np.where(grown > much, grown, 0)
        busy += np.where(grown > much, now - then, 0)
        then, before = now, after
    return list(moved / busy)


def test_a_cut_is_survived(tmp_path: Path) -> None:
    method = {**STCD, "stepsize": "auto", "local_updates": 5}
    with federation(tmp_path, 200, CYCLE, method=method, stop=FOREVER) as (hosts, processes, X, y):
        processes.start(*processes.tables)
        wait_for(hosts, "b", "c", 100_000)
        hosts.unplug("b", "c")
        sleep(3.0)  # longer than it takes to notice
        wait_for(hosts, "a", "b", 50_000)
        wait_for(hosts, "c", "d", 50_000)
        hosts.plug("b", "c")
        wait_for(hosts, "b", "c", 300_000)
        stop(hosts, processes, "b")
        assert {summary.status for summary in ended(processes)} == {"stopped"}
        check_optimum(processes, X, y)
