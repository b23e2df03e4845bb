"""The monitor: turns the reports of parties into progress, which the engine yields."""

from __future__ import annotations

from typing import Any

from mtcd.protocol.party import Message, Part, Progress
from mtcd.protocol.state import Stateful


class Monitor(Stateful):
    """Passes progress on. Of methods in which each client reports a part, it waits for the parts of
    all K clients."""

    state_fields = ("reports", "_latest")

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.reports: dict[int, dict[int, Part]] = {}
        """The parts received, by iteration and client, of iterations with missing parts."""
        self._latest: dict[int, int] = {}

    def collect(self, message: Message) -> Any:
        """Add a report; returns the progress that it completes, or None."""
        part = message.payload
        # A lone token, or the progress of a server, tells all by itself.
        if not isinstance(part, Part):
            return part
        self._latest[message.sender] = part.iteration
        parts = self.reports.setdefault(part.iteration, {})
        parts[message.sender] = part
        # Clients may be an iteration apart: each waits for those of the same one.
        if len(parts) < self.clients:
            return None
        del self.reports[part.iteration]
        return Progress(
            part.iteration, 0, None, 0.0, [parts[k].parameters for k in range(self.clients)]
        )

    def ahead(self, sender: int) -> int | None:
        """The latest iteration that this client has reported, while reports of other clients are
        missing; else None."""
        # Its reports are complete otherwise, and the client is not ahead of anybody.
        latest = self._latest.get(sender)
        if latest not in self.reports:
            return None
        return latest
