"""A party behind a firewall that lets no connection in takes part by connections that it opens
itself."""

import subprocess
import sys
from pathlib import Path

from hosted import CYCLE, FOREVER, check_optimum, ended, federation, stop, wait_for
from namespaces import Hosts, skip_where_not_allowed

skip_where_not_allowed()
BEHIND = "b"
STCD = {"kind": "stcd", "local_updates": 5, "stepsize": "auto", "walk": "metropolis"}
LISTEN = "import socket, sys; s = socket.create_server((sys.argv[1], 7447)); print('up', flush=True); s.accept()"
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], 7447), 1).close()"


def can_connect(hosts: Hosts, near: str, far: str) -> bool:
    """Whether a connection from one host to a listening socket of another comes about."""
    python, address = [sys.executable, "-c"], hosts.addresses[far]
    listening = subprocess.Popen(
        [*hosts.within()[far], *python, LISTEN, address], stdout=subprocess.PIPE
    )
    try:
        assert listening.stdout.readline() == b"up\n"
        command = [*hosts.within()[near], *python, CONNECT, address]
        return subprocess.run(command, capture_output=True).returncode == 0
    finally:
        listening.kill()
        listening.communicate()


def test_a_party_that_accepts_no_connection_takes_part_through_crashes(tmp_path: Path) -> None:
    changes = {"method": STCD, "stop": FOREVER}
    with federation(tmp_path, 200, CYCLE, dial_out=BEHIND, **changes) as (hosts, processes, X, y):
        assert can_connect(hosts, "c", BEHIND)
        hosts.refuse_inbound(BEHIND)
        assert not can_connect(hosts, "c", BEHIND)
        assert can_connect(hosts, BEHIND, "c")
        processes.start(*processes.tables)
        # c comes later in the file, and would connect to b otherwise
        for crashed in (BEHIND, "c", None):
            for neighbour in ("a", "c"):
                wait_for(hosts, BEHIND, neighbour, 50_000)
            if crashed is not None:
                processes.kill(crashed)
                processes.start(crashed)
        stop(hosts, processes, "a")
        assert {summary.status for summary in ended(processes)} == {"stopped"}
        check_optimum(processes, X, y)
