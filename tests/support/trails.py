"""Where a token went."""

from __future__ import annotations

from mtcd.methods.mtcd.roaming import Roaming


def trail_of(roaming: Roaming, token: int, t: int, visits: int) -> list[int]:
    """The clients that a token visits in iteration t."""
    trail, previous = [roaming.first(token, t)], -1
    for hop in range(1, visits):
        trail.append(roaming.next(token, t, hop, trail[-1], previous))
        previous = trail[-2]
    return trail
