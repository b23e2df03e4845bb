"""Latency and bandwidth of links, from a CSV file, and the time of a message on them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mtcd.arrays import Array
from mtcd.errors import ConfigError, NetworkError
from mtcd.network.csv_files import csv_rows
from mtcd.network.edges import ClientNames
from mtcd.network.topology import Network

COLUMNS = ("from", "to", "latency_ms", "bandwidth_mbps")
SERVER, ANY = "server", "*"
BITS = 64  # of a float


@dataclass(frozen=True, eq=False)
class Links:
    """Seconds of latency and seconds per float from party to party: clients 0..K-1, then the server.

    NaN where there is no link. Messages on different links do not hinder each other.
    """

    latency: Array
    per_float: Array

    @property
    def server(self) -> int:
        """The row and column of the server."""
        return len(self.latency) - 1

    @property
    def has_server(self) -> bool:
        """Whether any row of the file spoke of a server."""
        return bool(np.isfinite(self.latency[self.server]).any())

    def latency_of(self, sender: int, to: int) -> float:
        """Seconds of latency; -1 is the server."""
        return float(self.latency[sender, to])

    def seconds_per_float(self, sender: int, to: int) -> float:
        """Seconds for each number; -1 is the server."""
        return float(self.per_float[sender, to])

    def seconds(self, sender: int, to: int, floats: int) -> float:
        """The seconds of a message with this many floats; 0 from a party to itself."""
        return 0.0 if sender == to else float(self.latency[sender, to] + floats * self.per_float[sender, to])


@dataclass(frozen=True)
class _Row:
    """A line of the file: None stands for any client, K for the server."""

    where: str
    sender: int | None
    to: int | None
    latency: float
    per_float: float

    def rank(self, forward: bool) -> tuple[int, bool, bool]:
        """The more names the better; then the direction as written; then the one that names the sender."""
        named = [self.sender is not None, self.to is not None]
        return sum(named), forward, named[0 if forward else 1]


def read_links(path: Path, network: Network) -> Links:
    """The links of a network. Each must be covered, and those of the server too, unless the file has no server.

    The row that names most wins: both ends, then one, then none ('*' is any client). A row holds in both directions,
    unless another that names as much is written the other way round.
    """
    for name in (SERVER, ANY):
        if name in network.clients:
            raise NetworkError(f"{path}: a client is called '{name}', which means something else here: rename it.")
    rows = list(_rows(path, network))
    links = _fill(rows, network.size)
    _check_covered(path, links, network)
    return links


def _rows(path: Path, network: Network) -> Iterable[_Row]:
    names = ClientNames(network.clients)
    seen: dict[tuple[int | None, int | None], str] = {}
    for where, cells in csv_rows(path, COLUMNS, "links"):
        sender, to = (_party(cells[end], names, where) for end in ("from", "to"))
        if (sender, to) in seen:
            raise NetworkError(f"{where}: this link was given before, at {seen[sender, to]}: keep one of them.")
        if sender is not None and sender == to:
            raise NetworkError(f"{where}: '{cells['from']}' needs no link to itself: remove the row.")
        seen[sender, to] = where
        latency = _number(cells, "latency_ms", where)
        bandwidth = _number(cells, "bandwidth_mbps", where)
        if latency < 0 or bandwidth <= 0:
            raise NetworkError(f"{where}: latency_ms must be 0 or more, and bandwidth_mbps above 0.")
        yield _Row(where, sender, to, latency / 1e3, BITS / (bandwidth * 1e6))


def _party(name: str, names: ClientNames, where: str) -> int | None:
    if name == ANY:
        return None
    return len(names.clients) if name == SERVER else names.number(name, where)


def _number(cells: dict[str, str], column: str, where: str) -> float:
    try:
        value = float(cells[column])
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise NetworkError(f"{where}: {column} must be a number, but is '{cells[column]}'.")
    return value


def _fill(rows: list[_Row], K: int) -> Links:
    """From the row that counts least to the one that counts most, each over the ones before."""
    links = Links(*(np.full((K + 1, K + 1), np.nan) for _ in range(2)))
    for row, forward in sorted(((row, forward) for row in rows for forward in (False, True)), key=_order):
        ends = (row.sender, row.to) if forward else (row.to, row.sender)
        sender, to = (slice(0, K) if end is None else end for end in ends)
        links.latency[sender, to], links.per_float[sender, to] = row.latency, row.per_float
    return links


def _order(entry: tuple[_Row, bool]) -> tuple[int, bool, bool]:
    row, forward = entry
    return row.rank(forward)


def _check_covered(path: Path, links: Links, network: Network) -> None:
    """A row that holds for a link holds for the way back too, so that one direction tells."""
    for k, near in enumerate(network.neighbours):
        for j in near:
            if math.isnan(links.latency[k, j]):
                ends = f"{network.clients[k]},{network.clients[j]}"
                raise NetworkError(f"{path}: no row covers the link {ends}: add one, or one for '*,*'.")
    if not links.has_server:
        return
    for k, name in enumerate(network.clients):
        if math.isnan(links.latency[k, links.server]):
            raise NetworkError(f"{path}: no row covers the link server,{name}: add one, or one for 'server,*'.")


def parse_budget(text: str) -> float:
    """Seconds from what people write.

    >>> parse_budget("60s"), parse_budget("2m"), parse_budget("90"), parse_budget("1h")
    (60.0, 120.0, 90.0, 3600.0)
    """
    units = {"s": 1.0, "m": 60.0, "h": 3600.0}
    number = text.strip().lower()
    unit = units.get(number[-1:], 0.0)
    try:
        seconds = float(number[:-1]) * unit if unit else float(number)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds <= 0:
        raise ConfigError(f"--budget is a time such as 60s, 2m or 1h, but is {text!r}.")
    return seconds
