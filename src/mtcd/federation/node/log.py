"""What a party says: a line of JSON in its log for every event, and a sentence on its screen for most.

Nothing private goes in: no data, no parameters, no ids, no keys. Events of the same kind are thinned out, so that
nobody can fill a disk by asking nonsense.
"""

from __future__ import annotations

import json
import os
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mtcd.errors import ConfigError
from mtcd.files import plain

TAIL = 1000  # events that an operator can ask for
KINDS = 1000  # different events that are counted one by one; after so many, those of the same party together
OFTEN = 10  # from then on only the 16th, 32nd, 64th, ... of the same kind is written
LONGEST = 500  # characters of what others say

REQUESTS = {  # what a party is asked for, in words
    "align": "a request to align samples",
    "prepare": "a request to prepare the run",
    "start": "a request to start the run",
    "which": "a question for the run",
    "ready": "a question whether this party is in the run",
    "words": "the last fusion module",
    "relay": "a message to pass on",
    "judge": "a question for the part of the objective",
    "verdict": "the word on whether training has diverged",
    "add": "a sum to add to",
}


class Log:
    """One party's."""

    def __init__(self, party: str, path: Path | None, show: Callable[[str], None] | None = None) -> None:
        self.party, self.show = party, show
        self.tail: deque[dict[str, Any]] = deque(maxlen=TAIL)
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._file = None
        if path is not None:
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise ConfigError(f"{path} cannot be written ({error.strerror}): the log goes there.") from None
            self._file = os.fdopen(descriptor, "a", buffering=1, encoding="utf-8")

    def say(self, event: str, sentence: str = "", **facts: Any) -> None:
        """Write an event down; the sentence, if there is one, is for people."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        told = {"time": now, "party": self.party, "event": event, **({"text": sentence} if sentence else {}), **facts}
        self.tail.append(told)
        if self._file is not None:
            self._file.write(json.dumps(told, default=plain) + "\n")
        if sentence and self.show is not None:
            self.show(f"{now[11:19]} {self.party}: {sentence}")

    def refused(self, sender: str, what: str, why: str) -> None:
        """Something was not accepted; nothing has changed."""
        sentence = f"Refused {REQUESTS.get(what, f'a {what}')} from {sender}: {tidy(why)}"
        self.now_and_then(("refused", sender, what, why), sentence, often=1, sender=sender)

    def now_and_then(self, kind: tuple[str, ...], sentence: str, often: int = OFTEN, **facts: Any) -> None:
        """Say it the first times, then less and less often; ``times`` tells how often it was so."""
        if kind not in self._counts and len(self._counts) >= KINDS:
            kind = kind[:2]
        self._counts[kind] += 1
        times = self._counts[kind]
        if times <= often or times & (times - 1) == 0:
            self.say(kind[0], sentence, times=times, **facts)

    def close(self) -> None:
        """Nothing more comes."""
        if self._file is not None:
            self._file.close()


def tidy(text: str) -> str:
    """What others say, on one line and without control characters."""
    return "".join(c if c.isprintable() else " " for c in text)[:LONGEST]
