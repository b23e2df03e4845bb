"""Networks from lists of edges: pairs, networkx graphs, CSV files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import networkx as nx
import numpy as np

from mtcd.core.errors import NetworkError, did_you_mean
from mtcd.core.mappings import positions
from mtcd.network.csv_files import csv_rows
from mtcd.network.topology import Network, checked_names, neighbour_lists


def network_from_edges(
    edges: Iterable[tuple[str | int, str | int]] | nx.Graph, clients: Sequence[str]
) -> Network:
    """Make a network from pairs of clients, or from a networkx graph.

    Loops are dropped, repeated edges are one, directions and weights are ignored; notes say so, as
    links carry messages both ways and walks choose among neighbours by rules of their own.

    Parameters
    ----------
    edges : pairs of clients or networkx.Graph
        The links. A client is given by name or by number, from 0.
    clients : sequence of str
        The names of all clients.

    Returns
    -------
    Network
        The clients and their links.

    Raises
    ------
    NetworkError
        If an edge names a client that does not exist.

    Examples
    --------
    >>> network_from_edges([("a", "c"), (2, 0), ("b", "b")], ["a", "b", "c"]).neighbours
    ((2,), (), (0,))
    """
    names = ClientNames(clients)

    # Going through these gives keys, or rows: pairs of clients only by chance.
    mapping = isinstance(edges, Mapping)
    if mapping or hasattr(edges, "shape"):
        give = "networkx.Graph(mapping)" if mapping else "networkx.from_numpy_array(matrix)"
        raise NetworkError(
            f"a {type(edges).__name__} is no list of edges: give {give}, or pairs of clients"
        )

    notes: tuple[str, ...] = ()
    if isinstance(edges, nx.Graph):
        for node in edges:  # an isolated node that is no client is a mistake too
            names.number(node, "the graph")
        notes = _unused(edges)
        edges = edges.edges()

    # Counted from 1, as people count; errors of files name lines in the same place.
    rows = ((f"edge {row}", edge) for row, edge in enumerate(edges, start=1))
    return replace(_from_rows(names, rows), notes=notes)


def _unused(graph: nx.Graph) -> tuple[str, ...]:
    """Notes on what a graph says that a network does not."""
    notes = []
    if graph.is_directed() and any(not graph.has_edge(b, a) for a, b in graph.edges()):
        notes.append(
            "The graph is directed, but links carry messages both ways: directions are ignored."
        )
    weights = {repr(weight) for _, _, weight in graph.edges(data="weight") if weight is not None}
    if len(weights) > 1:
        notes.append(
            "The edges of the graph have weights, which walks do not use: they are ignored. "
            "(Prices and speeds of links are for mtcd plan --links.)"
        )
    return tuple(notes)


def read_network(path: Path, clients: Sequence[str]) -> Network:
    r"""Read a network from a CSV file with the columns ``source`` and ``target``.

    Parameters
    ----------
    path : Path
        The file, with one edge to a line.
    clients : sequence of str
        The names of all clients.

    Returns
    -------
    Network
        The clients and their links.

    Raises
    ------
    NetworkError
        If the file cannot be read, or names a client that does not exist.

    Examples
    --------
    >>> import mtcd, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "links.csv"
    >>> _ = file.write_text("source,target\nclinic,lab\nlab,ward\n")
    >>> network = mtcd.read_network(file, ["clinic", "lab", "ward"])
    >>> network.neighbours[1]
    (0, 2)
    """
    names = ClientNames(clients)
    rows = csv_rows(path, ("source", "target"), "network")
    return _from_rows(names, ((where, (cells["source"], cells["target"])) for where, cells in rows))


class ClientNames:
    """Finds the number of a client from its name or number.

    >>> ClientNames(["bank", "shop"]).number("shop", "edge 1")
    1
    """

    def __init__(self, clients: Sequence[str]):
        self.clients = checked_names(clients)
        self._numbers = positions(self.clients)

        # With clients called '1'..'K' the text '1' is a name; reading '0' as a number beside it
        # would join the wrong clients in silence, so there texts are names and nothing else.
        self._text_may_be_number = not any(name.isdecimal() for name in self.clients)

    def number(self, who: object, where: str) -> int:
        """The number of the client ``who``, a name or a number; ``where`` opens the error if it is
        unknown."""
        if isinstance(who, str):
            if who in self._numbers:
                return self._numbers[who]
            if not (self._text_may_be_number and who.isdecimal()):
                raise NetworkError(
                    f"{where}: no client is called '{who}'; {did_you_mean(who, self.clients)}"
                )
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
        # A text is a sequence too, but of letters.
        given = None
        if isinstance(edge, Sequence) and not isinstance(edge, str):
            given = edge

        if given is None or len(given) != 2:
            more = ""
            if given is not None:
                more = "; leave weights out"
            raise NetworkError(f"{where}: expected a pair of clients, got {edge!r}{more}")
        edges.append((names.number(given[0], where), names.number(given[1], where)))

    array = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Network(names.clients, neighbour_lists(array, len(names.clients)))
