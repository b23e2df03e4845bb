"""Placement of clients on hosts: neighbours share a host where possible, so that most hops stay
inside one process."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.core.optional import find
from mtcd.network.topology import Network

# weights of links inside a group of clients that exchange most messages, and of others
INSIDE, ACROSS = 1000, 1
MOST_LINKS = 2_000_000  # a denser network has no parts worth finding: any split cuts most links


def place(
    network: Network, hosts: int, weights: Sequence[int], together: Sequence[Sequence[int]] | None
) -> list[list[int]]:
    """The clients of each host, about equally much work each, such that few links are cut; no host
    is empty."""
    hosts = min(hosts, network.size)
    if hosts == 1:
        return [list(range(network.size))]

    part = _partition(network, hosts, weights, together)

    placed: list[list[int]] = [[] for _ in range(hosts)]
    for k, host in enumerate(part):
        placed[host].append(k)
    return _without_empty(placed)


def _partition(
    network: Network, hosts: int, weights: Sequence[int], together: Sequence[Sequence[int]] | None
) -> Sequence[int]:
    """The host of each client."""
    # nothing to be found: all links alike, or none
    if 2 * network.edges > MOST_LINKS or not network.edges:
        return _even(range(network.size), hosts)

    group: dict[int, int] = {}
    for number, members in enumerate(together or ()):
        group |= dict.fromkeys(members, number)

    # the links in the form of METIS: those of client k are targets[starts[k] : starts[k + 1]]
    starts: list[int] = [0]
    targets: list[int] = []
    costs: list[int] = []
    for k, near in enumerate(network.neighbours):
        for j in near:
            targets.append(j)
            if group and group[k] == group[j]:
                costs.append(INSIDE)
            else:
                costs.append(ACROSS)
        starts.append(len(targets))

    metis = find("pymetis")
    part: Sequence[int]
    _, part = metis.part_graph(
        hosts,
        metis.CSRAdjacency(starts, targets),
        vweights=list(weights),
        eweights=costs,
        recursive=hosts <= 8,
    )
    return part


def _even(clients: Sequence[int], hosts: int) -> list[int]:
    return [k * hosts // len(clients) for k in clients]


def _without_empty(placed: list[list[int]]) -> list[list[int]]:
    """Move a client to each host that got none, as METIS may leave some empty on small networks."""
    for host in placed:
        if not host:
            host.append(max(placed, key=len).pop())
    # sorted: the same network is placed in the same way, whatever METIS calls its parts
    return sorted(sorted(host) for host in placed)
