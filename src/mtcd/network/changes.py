"""Clients that leave and join the network during training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mtcd.core.checks import check_whole
from mtcd.core.errors import NetworkError, listing
from mtcd.network.edges import ClientNames
from mtcd.network.topology import Change, Network, connected_pieces

Absence = tuple[int, frozenset[int]]


def with_changes(network: Network, changes: Iterable[Change]) -> Network:
    """Add changes of the clients to a network.

    A client whose first change is to join is absent before.

    Parameters
    ----------
    network : Network
        All clients and links that there ever are.
    changes : iterable of Change
        Who leaves and joins, and when.

    Returns
    -------
    Network
        The network with these changes.

    Raises
    ------
    NetworkError
        If the changes contradict each other.

    Examples
    --------
    >>> from mtcd.network.topology import make_network
    >>> path = make_network("path", ["a", "b", "c"])
    >>> absences(with_changes(path, [Change(9, join=["a", "c"]), Change(5, leave=["c"])]))
    ((0, frozenset({0})), (5, frozenset({0, 2})), (9, frozenset()))
    """
    names = ClientNames(network.clients)
    moves: dict[int, tuple[list[int], list[int]]] = {}
    for change in changes:
        check_whole("iteration of a change of the network", change.iteration, least=0)
        here = moves.setdefault(int(change.iteration), ([], []))
        for list_, who, does in zip(
            here, (change.leave, change.join), ("leave", "join"), strict=True
        ):
            where = f"{does} at iteration {change.iteration}"
            if isinstance(who, str):
                raise NetworkError(f"{where}: expected a list of clients, got {who!r}")
            list_ += [names.number(one, where) for one in who]
    in_order = tuple(Change(when, *map(tuple, moves[when])) for when in sorted(moves))
    changing = replace(network, changes=in_order)
    _check(changing)
    return changing


def absences(network: Network) -> tuple[Absence, ...]:
    """Pairs of an iteration and the set of clients that are absent from it on, in order; the first
    starts at 0."""
    absent = set(_late(network))
    found: dict[int, frozenset[int]] = {0: frozenset(absent)}
    for change in network.changes:
        absent = absent.difference(change.join).union(change.leave)
        found[change.iteration] = frozenset(absent)
    return tuple(found.items())


def describe_changes(network: Network) -> list[str]:
    """A sentence for each change."""
    late = sorted(_late(network))
    sentences = [f"absent from the start: {_names(network, late)}"] if late else []
    for change in network.changes:
        moves = [(change.leave, "leave"), (change.join, "join")]
        said = [
            f"{_names(network, who)} {does}{'s' if len(who) == 1 else ''}"
            for who, does in moves
            if who
        ]
        sentences += [f"at iteration {change.iteration:,} {', '.join(said)}"] if said else []
    return sentences


def _names(network: Network, who: Sequence[int]) -> str:
    return listing([network.clients[k] for k in who])


def in_pieces(network: Network) -> list[str]:
    """A sentence for each view in which the present clients are not connected."""
    everyone = range(network.size)
    sentences = []
    for iteration, absent in absences(network):
        pieces = connected_pieces(network.neighbours, [k for k in everyone if k not in absent])
        if len(pieces) > 1:
            sentences.append(
                f"from iteration {iteration:,} on the clients present are in {len(pieces)} "
                f"components"
            )
    return sentences


def _late(network: Network) -> set[int]:
    """The clients whose first change is to join."""
    left: set[int] = set()
    late: set[int] = set()
    for change in network.changes:
        late.update(k for k in change.join if k not in left)
        left.update((*change.leave, *change.join))
    return late


def _check(network: Network) -> None:
    absent = _late(network)
    for change in network.changes:
        for k in (*change.leave, *change.join):
            if (*change.leave, *change.join).count(k) > 1:
                raise NetworkError(_wrong(network, change, k, "is named twice: name it once"))
        for k in change.leave:
            if k in absent:
                raise NetworkError(
                    _wrong(network, change, k, "leaves, but is absent: let it join before")
                )
        for k in change.join:
            if k not in absent:
                raise NetworkError(
                    _wrong(network, change, k, "joins, but is present already: let it leave before")
                )
        absent = absent.difference(change.join).union(change.leave)
    for iteration, away in absences(network):
        if len(away) == network.size:
            raise NetworkError(
                f"from iteration {iteration} on all clients are absent: let some client stay"
            )


def _wrong(network: Network, change: Change, client: int, what: str) -> str:
    return f"at iteration {change.iteration} client {network.clients[client]!r} {what}"
