"""Recognises the standard kinds of networks by their links."""

from __future__ import annotations

from mtcd.network.topology import Network, make_network

OTHER = "network"


def kind_of(network: Network) -> str:
    """The standard kind that this network is, as ``make_network`` numbers its clients; 'network' if
    it is none.

    >>> kind_of(make_network("path", "abcd")), kind_of(make_network("erdos-renyi", "abcd", p=0.0))
    ('path', 'empty')
    """
    K, links = network.size, network.edges
    if links == 0:
        return "empty"
    if network.complete and K != 2:  # two clients are a path rather
        return "complete"
    kinds = ["path", "star"] if links == K - 1 else ["cycle"] if links == K else []
    for kind in kinds:
        if make_network(kind, network.clients).neighbours == network.neighbours:
            return kind
    first = network.neighbours[0]
    # the next in its row, and the one below it
    if len(first) == 2 and first[0] == 1 and K % first[1] == 0:
        grid = make_network("grid", network.clients, rows=K // first[1])
        return "grid" if grid.neighbours == network.neighbours else OTHER
    return OTHER
