"""Print a transcript, or the names of all."""

from __future__ import annotations

import sys

from mtcd.core.errors import did_you_mean
from mtcd.testing.simulator.stories import STORIES


def main(arguments: list[str]) -> int:
    """``python -m mtcd.testing.simulator [NAME]``."""
    if not arguments:
        for name, story in STORIES.items():
            sys.stdout.write(f"{name:28} {story.title}\n")
        return 0
    (name, *_) = arguments
    if name not in STORIES:
        sys.stderr.write(f"There is no story {name!r}: {did_you_mean(name, list(STORIES))}\n")
        return 2
    sys.stdout.write(STORIES[name].transcript())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
