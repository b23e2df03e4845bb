"""The log of a party: a line of JSON for every event, and a sentence on its screen for most.

It contains no private content: no data, parameters, ids or keys. Repeated events of the same kind are throttled, so
that invalid requests cannot fill a disk.
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

TAIL = 1000  # events that the operator can request
KINDS = 1000  # kinds of events that are counted separately; further ones are counted per party
OFTEN = 10  # after so many events of a kind, only the 16th, 32nd, 64th, ... is written
LONGEST_CHARACTERS = 500  # of text from other parties

REQUESTS = {  # kinds of requests, as text
    "align": "a request to align samples",
    "prepare": "a request to prepare the run",
    "start": "a request to start the run",
    "which": "a request for the id of the run",
    "ready": "a request for the state of the run",
    "words": "the final fusion module",
    "relay": "a message to relay",
    "judge": "a request to evaluate the objective",
    "verdict": "the verdict on divergence",
    "add": "a masked sum",
}


class Log:
    """The log of one party."""

    def __init__(self, party: str, path: Path | None, show: Callable[[str], None] | None = None) -> None:
        self.party, self.show = party, show
        self.tail: deque[dict[str, Any]] = deque(maxlen=TAIL)
        self._counts: Counter[tuple[str, ...]] = Counter()
        self._file = None
        if path is not None:
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            except OSError as error:
                raise ConfigError(
                    f"The log {path} cannot be written ({error.strerror}): make it writable, or give another folder."
                ) from None
            self._file = os.fdopen(descriptor, "a", buffering=1, encoding="utf-8")

    def say(self, event: str, sentence: str = "", **facts: Any) -> None:
        """Log an event; the sentence, if there is one, is also shown on the screen."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        entry = {"time": now, "party": self.party, "event": event, **({"text": sentence} if sentence else {}), **facts}
        self.tail.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry, default=plain) + "\n")
        if sentence and self.show is not None:
            self.show(f"{now[11:19]} {self.party}: {sentence}")

    def refused(self, sender: str, what: str, why: str) -> None:
        """Log a refused request, throttled."""
        sentence = f"Refused {REQUESTS.get(what, f'a {what}')} from {sender}: {tidy(why)}"
        self.throttled(("refused", sender, what, why), sentence, often=1, sender=sender)

    def throttled(self, kind: tuple[str, ...], sentence: str, often: int = OFTEN, **facts: Any) -> None:
        """Log the first ``often`` events of a kind, then at powers of two; ``times`` is their count."""
        if kind not in self._counts and len(self._counts) >= KINDS:
            kind = kind[:2]
        self._counts[kind] += 1
        times = self._counts[kind]
        if times <= often or times & (times - 1) == 0:
            self.say(kind[0], sentence, times=times, **facts)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def tidy(text: str) -> str:
    """Text from other parties, on one line and without control characters."""
    return "".join(c if c.isprintable() else " " for c in text)[:LONGEST_CHARACTERS]
