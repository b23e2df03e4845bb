"""A party whose only way out is an HTTP proxy takes part through a forwarder beside it, as
docs/operations.md says."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hosted import FOREVER, check_optimum, ended, federation, stop, wait_for
from namespaces import Hosts, skip_where_not_allowed

skip_where_not_allowed()
HERE = Path(__file__).parent
STCD = {"kind": "stcd", "local_updates": 5, "stepsize": "auto", "walk": "metropolis"}
NAMES = {"a": "a.hospital.test", "c": "c.hospital.test"}
LOCAL = {"a": "127.0.1.1", "c": "127.0.1.2"}


@contextmanager
def named(hosts: Hosts, **tables: dict[str, str]) -> Iterator[None]:
    """Each host with an /etc/hosts of its own, from names to addresses."""
    folders = {Path("/etc/netns") / hosts.spaces[host]: table for host, table in tables.items()}
    try:
        for folder, table in folders.items():
            folder.mkdir(parents=True)
            (folder / "hosts").write_text(
                "".join(f"{table[k]} {name}\n" for k, name in NAMES.items())
            )
        yield
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)


def test_a_party_behind_an_http_proxy_takes_part(tmp_path: Path) -> None:
    """b has a cable to the proxy only; the proxy's host forwards nothing by itself."""
    links, cables = (
        [("a", "b"), ("b", "c"), ("c", "a")],
        [("b", "p"), ("p", "a"), ("p", "c"), ("c", "a")],
    )
    changes = {"method": STCD, "stop": FOREVER, "dial_out": "b", "cables": cables, "names": NAMES}
    with federation(tmp_path, 200, links, **changes) as (hosts, processes, X, y):
        real = {name: hosts.addresses[name] for name in NAMES}
        script, python = str(HERE / "through_proxy.py"), sys.executable
        with named(hosts, a=real, b=LOCAL, c=real, p=real):
            proxy = [*hosts.within()["p"], python, script, "proxy", hosts.addresses["p"], "3128"]
            peers = [f"{NAMES[name]}={LOCAL[name]}" for name in NAMES]
            beside = [*hosts.within()["b"], python, script, "forward", hosts.addresses["p"], *peers]
            helpers = [subprocess.Popen(proxy), subprocess.Popen(beside)]
            try:
                processes.start(*processes.tables)
                wait_for(hosts, "b", "p", 100_000)
                for crashed in ("b", "a"):
                    processes.kill(crashed)
                    processes.start(crashed)
                    wait_for(hosts, "b", "p", 100_000)
                stop(hosts, processes, "a")
                assert {summary.status for summary in ended(processes)} == {"stopped"}
            finally:
                for helper in helpers:
                    helper.kill()
                    helper.wait()
        check_optimum(processes, X, y)
