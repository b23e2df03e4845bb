"""Objects whose state survives a crash of their process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple


class Stateful:
    """Declares its state, from which a new object of the same class continues. Fields may be
    Stateful themselves."""

    state_fields: ClassVar[tuple[str, ...]] = ()
    """The names of the attributes that make up the state."""

    def state(self) -> dict[str, Any]:
        """The state by attribute. Not a copy: write it before anything changes."""
        state = {}
        for name in self.state_fields:
            part = getattr(self, name)
            # A part that is Stateful says itself what it keeps.
            state[name] = part.state() if isinstance(part, Stateful) else part
        return state

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from this state, which must not share arrays with another object."""
        for name in self.state_fields:
            part = getattr(self, name)
            if isinstance(part, Stateful):
                # In place: other objects hold references to this part.
                part.restore(state[name])
            else:
                setattr(self, name, state[name])


class Snapshot(NamedTuple):
    """The state of all parties of a training when they hold one model: plain values for JSON, and
    tensors by name."""

    facts: Mapping[str, Any]
    tensors: Mapping[str, Any]
