"""The state of a training at an observation, as every engine in one process or on Ray keeps it.

One description for all of them: what one engine has written, another resumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mtcd.core.errors import MtcdError
from mtcd.protocol.party import Message
from mtcd.protocol.snapshots import restored, take
from mtcd.protocol.state import Snapshot


@dataclass
class EngineState:
    """The parties, and the messages under way.

    Parameters
    ----------
    parties
        The state of each party: the clients by their numbers, then the server.
    monitor
        The state of the monitor.
    waiting
        Messages that are sent and recorded, but not delivered.
    outgoing
        Messages to send: a party returned them after its report.
    ahead
        By iteration, messages that are recorded after the observation of it.
    observed
        The parameters of this observation, where clients may be ahead of it.
    reached
        Its iteration.
    """

    parties: list[dict[str, Any]]
    monitor: dict[str, Any]
    waiting: list[Message]
    outgoing: list[Message]
    ahead: dict[int, list[Message]] = field(default_factory=dict)
    observed: Sequence[Any] | None = None
    reached: int = 0

    def snapshot(self) -> Snapshot:
        """The snapshot of this state. Write it before anything changes."""
        return take(vars(self))

    @staticmethod
    def of(snapshot: Snapshot) -> EngineState:
        """The state of a snapshot; it shares no memory with it."""
        kept = restored(snapshot)
        try:
            return EngineState(**kept)
        except TypeError as error:
            raise MtcdError(f"The checkpoint is not of this training: {error}") from None
