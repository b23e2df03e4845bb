"""Bandwidth of hosts' network interfaces, and how the messages under way at a moment share it.

A message takes part of its sender's interface (up), of its receiver's (down), and of its link. The
rates are max-min fair, as those of TCP connections over shared bottlenecks are in the mean: no rate
can be raised without lowering one that is not higher. With all K links of a server in use, each has
1/K of its bandwidth, which is the paper's model ('Reduced time and communication complexity').
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from mtcd.core.errors import NetworkError
from mtcd.network.csv_files import csv_rows
from mtcd.network.edges import ClientNames
from mtcd.network.topology import Network
from mtcd.planner.links import BITS, End, Links, number_in, party_named

COLUMNS = ("host", "mbps_up", "mbps_down")
Link = tuple[int, int]
"""Sender and receiver; the server is -1 or K."""
Interface = tuple[int, Literal["up", "down"]]
"""A host and a direction, as that host sees it."""


@dataclass(frozen=True, eq=False)
class Interfaces:
    """Floats per second that each host can send and receive, over all its links together.

    Parameters
    ----------
    clients
        The number of clients K; the server is K, and -1 too.
    rows
        Floats per second up and down by host; ``None`` stands for every client that has no row of
        its own. A host without a row has no limit.
    """

    clients: int
    rows: Mapping[End, tuple[float, float]]

    def of_link(self, sender: int, to: int) -> tuple[Interface, Interface]:
        """The interfaces that a message from ``sender`` to ``to`` takes part of."""
        return (self._number(sender), "up"), (self._number(to), "down")

    def capacity(self, interface: Interface) -> float:
        """Floats per second; infinite without a limit."""
        host, direction = interface
        row = self.rows.get(host)
        # '*' is any client, and never the server
        if row is None and host != self.clients:
            row = self.rows.get(None)
        if row is None:
            return math.inf

        up, down = row
        return {"up": up, "down": down}[direction]

    @property
    def limits_server(self) -> bool:
        """Whether a row is about the server."""
        return self.clients in self.rows

    def _number(self, party: int) -> int:
        if party < 0:  # the server, as parties number it
            return self.clients
        return party


def read_interfaces(path: Path, network: Network) -> Interfaces:
    """Read the bandwidths of hosts from a CSV file.

    Parameters
    ----------
    path
        A CSV file with the columns host, mbps_up and mbps_down. A host is a client by name,
        ``server``, or ``*``: every client that has no row of its own.
    network
        The network whose clients the file names.

    Returns
    -------
    Interfaces
        What each host can send and receive.

    Raises
    ------
    NetworkError
        If the file cannot be read, names an unknown host or one twice, or has a bandwidth that is
        no positive number. The text says where and what to do.
    """
    names = ClientNames(network.clients)
    rows: dict[End, tuple[float, float]] = {}
    given_at: dict[End, str] = {}

    for where, cells in csv_rows(path, COLUMNS, "hosts"):
        host = party_named(cells["host"], names, where)
        if host in given_at:
            raise NetworkError(
                f"{where}: this host was given before, at {given_at[host]}: keep one of the rows."
            )

        up = number_in(cells, "mbps_up", where)
        down = number_in(cells, "mbps_down", where)
        # a rate of 0 would be a message that never ends
        if up <= 0 or down <= 0:
            raise NetworkError(f"{where}: mbps_up and mbps_down must be above 0.")

        given_at[host] = where
        rows[host] = up * 1e6 / BITS, down * 1e6 / BITS

    if not rows:
        raise NetworkError(
            f"{path} has no hosts: add a row such as server,100,100, or leave it out."
        )
    return Interfaces(network.size, rows)


def fair_rates(
    links: Iterable[Link], link_rates: Mapping[Link, float], interfaces: Interfaces
) -> dict[Link, float]:
    """The max-min fair rates of messages that are under way at the same time, one on each link.

    Parameters
    ----------
    links
        The links in use.
    link_rates
        The floats per second that each link carries by itself.
    interfaces
        What the hosts can send and receive.

    Returns
    -------
    dict
        Floats per second by link.

    Examples
    --------
    >>> server = Interfaces(2, {2: (10.0, 10.0)})
    >>> fair_rates([(0, 2), (1, 2)], {(0, 2): 100.0, (1, 2): 3.0}, server)
    {(1, 2): 3.0, (0, 2): 7.0}
    """
    rates: dict[Link, float] = {}
    rising = list(links)
    spare: dict[Interface, float] = {}
    for link in rising:
        for interface in interfaces.of_link(*link):
            spare[interface] = interfaces.capacity(interface)

    # progressive filling: all rates rise together, until a link or an interface is full; what it
    # limits stays at that rate
    while rising:
        users = Counter(interface for link in rising for interface in interfaces.of_link(*link))
        share = {interface: spare[interface] / count for interface, count in users.items()}
        most = {}
        for link in rising:
            up, down = interfaces.of_link(*link)
            most[link] = min(link_rates[link], share[up], share[down])

        level = min(most.values())
        limited = [link for link in rising if most[link] <= level]
        for link in limited:
            rates[link] = level
            for interface in interfaces.of_link(*link):
                # rounding may take it below 0
                spare[interface] = max(0.0, spare[interface] - level)
        rising = [link for link in rising if link not in rates]

    return rates


def with_interfaces(links: Links, hosts: Path | None, network: Network) -> Links:
    """The same links with the interfaces of a file, if one is given."""
    if hosts is None:
        return links
    return replace(links, interfaces=read_interfaces(hosts, network))


def sharing_notes(links: Links, has_server: bool) -> tuple[str, ...]:
    """A note where the server's links are taken as if each had its bandwidth to itself: with many
    clients that is seldom so, and decides which method is the fastest."""
    if not has_server or (links.interfaces is not None and links.interfaces.limits_server):
        return ()
    return (
        "Every link of the server is taken to have its bandwidth to itself. If they share the "
        "server's interface, say how much it carries: --hosts CSV with a row such as "
        "server,100,100 (columns host,mbps_up,mbps_down).",
    )
