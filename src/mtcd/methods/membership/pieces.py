"""The walk of a cluster that absent clients have disconnected."""

from __future__ import annotations

from collections.abc import Mapping

from mtcd.network.walks.walk import Walk


class Pieces(Walk):
    """A tour for each component of a disconnected cluster."""

    needs_start = True

    def __init__(self, tours: Mapping[tuple[int, ...], Walk]) -> None:
        self._around = {client: walk for piece, walk in tours.items() for client in piece}
        # The longest tour decides how many hops a round takes for all pieces.
        self.length = max(walk.length or 0 for walk in tours.values())

    def next(self, client: int, previous: int, start: int, t: int, hop: int, draw: float) -> int:
        return self._around[client].next(client, previous, start, t, hop, draw)

    def around(self, client: int) -> Walk:
        return self._around[client]

    def last_visits(self, start: int, hops: int) -> Mapping[int, int]:
        return self._around[start].last_visits(start, hops)

    def covers(self, client: int) -> bool:
        return client in self._around
