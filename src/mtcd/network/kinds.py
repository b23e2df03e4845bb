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
    K = network.size
    if network.edges == 0:
        return "empty"
    if network.complete and K != 2:  # two clients are a path rather
        return "complete"

    # Making a network of another size would be a waste: each kind has its number of links.
    links = {"path": K - 1, "star": K - 1, "cycle": K}
    for kind, count in links.items():
        if network.edges == count and _same(network, kind):
            return kind

    # The first client of a grid is linked to the next in its row, and to the one below it.
    first = network.neighbours[0]
    if len(first) == 2 and first[0] == 1 and K % first[1] == 0:
        if _same(network, "grid", rows=K // first[1]):
            return "grid"
    return OTHER


def _same(network: Network, kind: str, rows: int | None = None) -> bool:
    return make_network(kind, network.clients, rows=rows).neighbours == network.neighbours
