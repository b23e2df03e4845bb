"""What remembers something and must not forget it when its process is killed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple


class Keeper:
    """Names what it remembers: with that, one made anew goes on where the old one was. Keepers may hold keepers."""

    kept: ClassVar[tuple[str, ...]] = ()
    """The attributes that make up its state."""

    def state(self) -> dict[str, Any]:
        """What it must not forget. Not a copy: to be written down before anything changes."""
        parts = {name: getattr(self, name) for name in self.kept}
        return {name: part.state() if isinstance(part, Keeper) else part for name, part in parts.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from this state, which must share nothing with that of another."""
        for name in self.kept:
            part = getattr(self, name)
            if isinstance(part, Keeper):
                part.restore(state[name])
            else:
                setattr(self, name, state[name])


class Snapshot(NamedTuple):
    """The state of all parties of a training when they hold one model: plain values for JSON, and tensors by name."""

    facts: Mapping[str, Any]
    tensors: Mapping[str, Any]
