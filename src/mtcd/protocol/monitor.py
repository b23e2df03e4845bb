"""The monitor's side of progress: what an engine yields to those who watch."""

from __future__ import annotations

from typing import Any

from mtcd.protocol.party import Message, Part, Progress


class Monitor:
    """Passes progress on; where clients tell their parts of it, waits until all K have told theirs."""

    def __init__(self, clients: int) -> None:
        self.clients = clients
        self.reports: dict[int, dict[int, Part]] = {}
        """Of iterations of which some clients have told their parts, and others have not."""
        self._latest: dict[int, int] = {}

    def hear(self, message: Message) -> Any:
        """The progress that this message completes, or None."""
        part = message.payload
        if not isinstance(part, Part):
            return part
        self._latest[message.sender] = part.iteration
        parts = self.reports.setdefault(part.iteration, {})
        parts[message.sender] = part
        if len(parts) < self.clients:
            return None
        del self.reports[part.iteration]
        return Progress(part.iteration, 0, None, 0.0, [parts[k].parameters for k in range(self.clients)])

    def ahead(self, sender: int) -> int | None:
        """The iteration of which this client has told its part, as long as others have yet to tell theirs."""
        latest = self._latest.get(sender)
        return latest if latest in self.reports else None
