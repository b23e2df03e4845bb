"""Networks from lists of edges: pairs, networkx graphs, CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import networkx as nx
import numpy as np

from mtcd.errors import NetworkError, did_you_mean, listing
from mtcd.network.topology import Network, checked_names, neighbour_lists


def network_from_edges(edges: Iterable[tuple[str | int, str | int]] | nx.Graph, clients: Sequence[str]) -> Network:
    """A network from pairs of clients, or from a networkx graph.

    A client is given by name or by number, from 0. Loops are dropped, repeated edges are one, directions are
    ignored.

    >>> network_from_edges([("a", "c"), (2, 0), ("b", "b")], ["a", "b", "c"]).neighbours
    ((2,), (), (0,))
    """
    names = ClientNames(clients)
    if isinstance(edges, nx.Graph):
        for node in edges:  # an isolated node that is no client is a mistake too
            names.number(node, "the graph")
        edges = edges.edges()
    rows = ((f"edge {row}", edge) for row, edge in enumerate(edges, start=1))
    return _from_rows(names, rows)


def read_network(path: Path, clients: Sequence[str]) -> Network:
    """A network from a CSV file with the columns ``source`` and ``target``, one edge to a line."""
    names = ClientNames(clients)
    try:
        # utf-8-sig: spreadsheets put a byte order mark before the header
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            return _from_rows(names, _csv_rows(file, path))
    except OSError as error:
        raise NetworkError(f"cannot read the network {path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise NetworkError(f"{path} is not a CSV file in UTF-8 ({error}): save it as one") from error


class ClientNames:
    """Finds the number of a client from whatever a person calls it."""

    def __init__(self, clients: Sequence[str]):
        self.clients = checked_names(clients)
        self._numbers = {name: k for k, name in enumerate(self.clients)}
        # With clients called '1'..'K' the text '1' is a name; reading '0' as a number beside it would
        # join the wrong clients in silence, so there texts are names and nothing else.
        self._text_may_be_number = not any(name.isdecimal() for name in self.clients)

    def number(self, who: object, where: str) -> int:
        """The number of the client ``who``, a name or a number; ``where`` opens the error if it is unknown."""
        if isinstance(who, str):
            if who in self._numbers:
                return self._numbers[who]
            if not (self._text_may_be_number and who.isdecimal()):
                raise NetworkError(f"{where}: no client is called '{who}'; {did_you_mean(who, self.clients)}")
            who = int(who)
        if not isinstance(who, (int, np.integer)) or isinstance(who, bool):
            raise NetworkError(f"{where}: {who!r} is neither the name of a client nor its number")
        if not 0 <= who < len(self.clients):
            last = len(self.clients) - 1
            raise NetworkError(f"{where}: there is no client {who}; numbers run from 0 to {last}")
        return int(who)


def _from_rows(names: ClientNames, rows: Iterable[tuple[str, object]]) -> Network:
    edges = []
    for where, edge in rows:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise NetworkError(f"{where}: expected a pair of clients, got {edge!r}")
        edges.append((names.number(edge[0], where), names.number(edge[1], where)))
    array = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Network(names.clients, neighbour_lists(array, len(names.clients)))


def _csv_rows(file: TextIO, path: Path) -> Iterator[tuple[str, tuple[str, str]]]:
    first = file.readline()
    file.seek(0)
    reader = csv.reader(file, delimiter=max(",;\t", key=first.count))
    header = [cell.strip().lower() for cell in next(reader, [])]
    for column in ("source", "target"):
        if column not in header:
            raise NetworkError(
                f"{path} has no column '{column}': its first line must be a header with the columns "
                f"source,target; it has: {listing(header) or 'nothing'}"
            )
    places = {column: header.index(column) for column in ("source", "target")}
    for row in reader:
        if not row:  # a blank line
            continue
        cells = {column: row[at].strip() if at < len(row) else "" for column, at in places.items()}
        where = f"{path}, line {reader.line_num}"
        for column, cell in cells.items():
            if not cell:
                raise NetworkError(f"{where}: the cell '{column}' is empty; fill it in or remove the row")
        yield where, (cells["source"], cells["target"])
