"""How far a set of jobs is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """How far everything is; ``left`` in seconds, None while nothing is known."""

    done: int
    total: int
    running: tuple[str, ...]
    left: float | None
