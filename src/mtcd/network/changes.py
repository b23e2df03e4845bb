"""Clients that leave and join the network during training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mtcd.core.checks import check_whole
from mtcd.core.errors import NetworkError, listing
from mtcd.network.edges import ClientNames
from mtcd.network.topology import Change, Network, connected_pieces

Absence = tuple[int, frozenset[int]]
"""An iteration, and the clients that are absent from it on."""


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
        leave, join = moves.setdefault(int(change.iteration), ([], []))
        leave += _numbers(names, change.leave, f"leave at iteration {change.iteration}")
        join += _numbers(names, change.join, f"join at iteration {change.iteration}")

    # Sorted here, so that whoever replays them needs no order of its own; clients by number,
    # because names are the user's and numbers are what the walks see.
    in_order = tuple(Change(when, *map(tuple, moves[when])) for when in sorted(moves))
    changing = replace(network, changes=in_order)
    _check(changing)
    return changing


def _numbers(names: ClientNames, who: Sequence[Any], where: str) -> list[int]:
    if isinstance(who, str):  # of which each letter could be the name of a client
        raise NetworkError(f"{where}: expected a list of clients, got {who!r}")
    return [names.number(one, where) for one in who]


def absences(network: Network) -> tuple[Absence, ...]:
    """Pairs of an iteration and the set of clients that are absent from it on, in order; the first
    starts at 0."""
    absent = frozenset(_late(network))
    found = {0: absent}  # a change at iteration 0 replaces it
    # Two views from the same iteration cannot both hold: the later one is the network then.
    for change in network.changes:
        absent = absent.difference(change.join).union(change.leave)
        found[change.iteration] = absent

    return tuple(found.items())


def describe_changes(network: Network) -> list[str]:
    """A sentence for each change."""
    late = sorted(_late(network))
    sentences = []
    if late:
        sentences.append(f"absent from the start: {_names(network, late)}")

    for change in network.changes:
        moves = []
        for who, does in ((change.leave, "leave"), (change.join, "join")):
            if who:
                ending = "s" if len(who) == 1 else ""
                moves.append(f"{_names(network, who)} {does}{ending}")
        if moves:
            sentences.append(f"at iteration {change.iteration:,} {', '.join(moves)}")
    return sentences


def _names(network: Network, who: Sequence[int]) -> str:
    return listing([network.clients[k] for k in who])


def in_pieces(network: Network) -> list[str]:
    """A sentence for each view in which the present clients are not connected."""
    everyone = set(range(network.size))
    sentences = []
    for iteration, absent in absences(network):
        pieces = connected_pieces(network.neighbours, everyone - absent)
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
    # Only a first change tells: a client that left once and joins again was there at the start.
    for change in network.changes:
        late.update(k for k in change.join if k not in left)
        left.update((*change.leave, *change.join))
    return late


def _check(network: Network) -> None:
    """Reject changes that contradict each other."""
    absent = _late(network)
    for change in network.changes:
        named = (*change.leave, *change.join)
        for k in named:
            if named.count(k) > 1:
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

    # Looked at after the single changes, whose errors say more.
    for iteration, away in absences(network):
        if len(away) == network.size:
            raise NetworkError(
                f"from iteration {iteration} on all clients are absent: let some client stay"
            )


def _wrong(network: Network, change: Change, client: int, what: str) -> str:
    return f"at iteration {change.iteration} client {network.clients[client]!r} {what}"
