"""A scripted scenario of the simulator: a round without a client.

The simulator (``mtcd.testing.simulator``) finds it by its registration, and this file needs nothing
of it: a script calls the transcript that it is given.
"""

from __future__ import annotations

from typing import Any

from mtcd.methods.svfl.svfl import SVFL
from mtcd.protocol.party import SERVER


def round_without_client(story: Any) -> None:
    """The last upload of a client that is down stays in the sum."""
    story.until(lambda: _round(story) >= 1)
    story.crash(1)
    story.notice(1, True, [SERVER])
    story.say("The server does not wait for c1: its last upload stays in the sum.")
    story.until(lambda: _round(story) >= 2)
    story.say(
        "The request that waits for c1 was kept up to date, so c1 takes part as soon as it is up."
    )
    story.restart(1)
    story.notice(1, False, [SERVER])
    story.until(lambda: _round(story) >= 3)


def _round(story: Any) -> int:
    """The round of the server."""
    now: int = story.world.journals[SERVER].last()["party"]["round"]
    return now


STORY = {
    "title": "A round without a client",
    "method": SVFL(stepsize=0.05),
    "network": "cycle",
    "script": round_without_client,
    "clients": 3,
}
"""The fields of a story."""
