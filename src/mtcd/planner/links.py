"""Latency and bandwidth of links, from a CSV file, and the time of a message on them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtcd.core.errors import ConfigError, NetworkError
from mtcd.network.csv_files import csv_rows
from mtcd.network.edges import ClientNames
from mtcd.network.topology import Network

if TYPE_CHECKING:
    from mtcd.planner.interfaces import Interfaces

COLUMNS = ("from", "to", "latency_ms", "bandwidth_mbps")
SERVER, ANY = "server", "*"
BITS = 64  # of a float
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}  # in seconds


End = int | None
"""A party in a row of the file: a client, K for the server, None for any client."""
NO_LINK = (math.nan, math.nan)


@dataclass(frozen=True, eq=False)
class Links:
    """Seconds of latency and seconds per float from party to party: clients 0..K-1, then the
    server, which is -1 too.

    NaN where there is no link. Without ``interfaces``, messages on different links do not hinder
    each other. What is kept are the rows of the file, not the pairs of parties: the pairs of 10,000
    clients would take gigabytes.
    """

    clients: int
    rows: Mapping[tuple[End, End], tuple[float, float]]
    """Latency and seconds per float, by sender and receiver."""
    interfaces: Interfaces | None = None
    """What the hosts can send and receive over all their links together; None: without limit."""

    @property
    def server(self) -> int:
        """The number of the server."""
        return self.clients

    @property
    def has_server(self) -> bool:
        """Whether any row of the file spoke of a server."""
        return any(self.server in ends for ends in self.rows)

    def latency_of(self, sender: int, to: int) -> float:
        """The seconds that a message is under way, whatever its size."""
        return self._row(sender, to)[0]

    def seconds_per_float(self, sender: int, to: int) -> float:
        """The seconds that each number of a message takes to send."""
        return self._row(sender, to)[1]

    def seconds(self, sender: int, to: int, floats: int) -> float:
        """The seconds of a message with this many floats; 0 from a party to itself."""
        if sender == to:
            return 0.0
        latency, per_float = self._row(sender, to)
        return latency + floats * per_float

    def _row(self, sender: int, to: int) -> tuple[float, float]:
        """The row that names most; then the direction as written; then the one that names the
        sender."""
        k, any_k = self._ends(sender)
        j, any_j = self._ends(to)
        both_named = ((k, j), (j, k))
        one_named = ((k, any_j), (any_k, j), (any_j, k), (j, any_k))
        none_named = ((any_k, any_j), (any_j, any_k))
        for ends in (*both_named, *one_named, *none_named):
            if ends in self.rows:
                return self.rows[ends]
        return NO_LINK

    def _ends(self, party: int) -> tuple[End, End]:
        """How a row names a party, and the less specific way: '*' is any client, so that the server
        has none."""
        if party in (-1, self.server):
            return self.server, self.server
        return party, None


def read_links(path: Path, network: Network) -> Links:
    """The links of a network. Each must be covered, and those of the server too, unless the file
    has no server.

    The row that names most wins: both ends, then one, then none ('*' is any client). A row holds in
    both directions, unless another that names as much is written the other way round.
    """
    for name in (SERVER, ANY):
        if name in network.clients:
            raise NetworkError(
                f"{path}: a client is called '{name}', which means something else here: rename it."
            )
    links = Links(network.size, _rows(path, network))
    _check_covered(path, links, network)
    return links


def _rows(path: Path, network: Network) -> dict[tuple[End, End], tuple[float, float]]:
    names = ClientNames(network.clients)
    seen: dict[tuple[End, End], str] = {}
    rows: dict[tuple[End, End], tuple[float, float]] = {}
    for where, cells in csv_rows(path, COLUMNS, "links"):
        sender, to = (party_named(cells[end], names, where) for end in ("from", "to"))
        if (sender, to) in seen:
            raise NetworkError(
                f"{where}: this link was given before, at {seen[sender, to]}: keep one of them."
            )
        # '*,*' is every link, not one from a client to itself
        if sender is not None and sender == to:
            raise NetworkError(
                f"{where}: '{cells['from']}' needs no link to itself: remove the row."
            )
        seen[sender, to] = where

        latency = number_in(cells, "latency_ms", where)
        bandwidth = number_in(cells, "bandwidth_mbps", where)
        if latency < 0 or bandwidth <= 0:
            raise NetworkError(
                f"{where}: latency_ms must be 0 or more, and bandwidth_mbps above 0."
            )
        # in seconds, and seconds per float
        rows[sender, to] = latency / 1e3, BITS / (bandwidth * 1e6)
    return rows


def party_named(name: str, names: ClientNames, where: str) -> End:
    """The party that a cell names: a client, the server, or every client ('*')."""
    if name == ANY:
        return None
    if name == SERVER:
        return len(names.clients)
    return names.number(name, where)


def number_in(cells: dict[str, str], column: str, where: str) -> float:
    """The finite number in a cell; an error that names the place if there is none."""
    try:
        value = float(cells[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise NetworkError(f"{where}: {column} must be a number, but is '{cells[column]}'.")
    return value


def _check_covered(path: Path, links: Links, network: Network) -> None:
    """Refuse links without a row. Links are symmetric: one row covers both directions."""
    if (None, None) not in links.rows:  # which covers all links of clients, however many
        for k, near in enumerate(network.neighbours):
            for j in near:
                ends = f"{network.clients[k]},{network.clients[j]}"
                _check_link(path, links, (k, j), ends, instead="*,*")

    if links.has_server:
        for k, name in enumerate(network.clients):
            _check_link(path, links, (k, links.server), f"server,{name}", instead="server,*")


def _check_link(path: Path, links: Links, link: tuple[int, int], ends: str, instead: str) -> None:
    if math.isnan(links.latency_of(*link)):
        raise NetworkError(
            f"{path}: no row covers the link {ends}: add one, or one for '{instead}'."
        )


def parse_budget(text: str) -> float:
    """Seconds from what people write.

    >>> parse_budget("60s"), parse_budget("2m"), parse_budget("90"), parse_budget("1h")
    (60.0, 120.0, 90.0, 3600.0)
    """
    number, unit = text.strip().lower(), 1.0
    if number[-1:] in UNITS:
        number, unit = number[:-1], UNITS[number[-1:]]

    try:
        seconds = float(number) * unit
    except ValueError:
        seconds = math.nan  # refused below, as 'nan' and 'inf' are, which float() reads
    if not math.isfinite(seconds) or seconds <= 0:
        raise ConfigError(f"--budget is a time such as 60s, 2m or 1h, but is {text!r}.")
    return seconds
