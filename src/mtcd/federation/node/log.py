"""The log of a party: a line of JSON for every event, and a sentence on its screen for most.

It goes through the standard ``logging``, to handlers of its own and to those that a program adds to
the logger ``mtcd.federation``. It contains no private content: no data, parameters, ids or keys.
Repeated events of the same kind are throttled, so that invalid requests cannot fill a disk.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime
from io import TextIOWrapper
from logging import DEBUG, ERROR, INFO, WARNING
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from mtcd.core.errors import ConfigError
from mtcd.core.files import plain
from mtcd.training.divergence import DIVERGED

FILE_BYTES = 10 * 2**20  # of a log, after which it becomes log.jsonl.1, and that log.jsonl.2, ...
KEPT_FILES = 5  # besides the one that is written


def entry_of(record: logging.LogRecord) -> dict[str, Any]:
    """An event of a party as a dictionary: time, level, party, event, its sentence and its
    facts."""
    text = record.getMessage()
    entry: dict[str, Any] = {
        "time": _time(record),
        "level": record.levelname.lower(),
        "party": getattr(record, "party", ""),
        "event": getattr(record, "event", record.name),
    }
    if text:
        entry["text"] = text
    return entry | getattr(record, "facts", {})


class JsonLines(logging.Formatter):
    """An event as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(entry_of(record), default=plain)


class Tail(logging.Handler):
    """Keeps the last events, for the operator."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self.entries: deque[dict[str, Any]] = deque(maxlen=length)

    def emit(self, record: logging.LogRecord) -> None:
        self.entries.append(entry_of(record))


class Screen(logging.Handler):
    """Shows the sentences of events, but those for debugging."""

    def __init__(self, show: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._show = show

    def emit(self, record: logging.LogRecord) -> None:
        entry = entry_of(record)
        if "text" in entry:
            self._show(f"{entry['time'][11:19]} {entry['party']}: {entry['text']}")


class LogFile(RotatingFileHandler):
    """A file that only its owner can read, rotated. A full disk ends no run here: that is up to the
    journal."""

    def __init__(self, path: Path, tell: Callable[[str], None] | None) -> None:
        self._tell, self._failed = tell, False
        try:
            super().__init__(path, maxBytes=FILE_BYTES, backupCount=KEPT_FILES, encoding="utf-8")
        except OSError as error:
            raise ConfigError(
                f"The log {path} cannot be written ({error.strerror}): make it writable, or give "
                "another folder."
            ) from None
        self.setFormatter(JsonLines())

    def _open(self) -> TextIOWrapper:
        # Its mode from the start: a file that is made readable and changed later was readable.
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say once that events are lost; other errors are mistakes in the code."""
        error = sys.exception()
        # An error in the code must not pass for a full disk.
        if not isinstance(error, OSError):
            raise
        if self._tell is not None and not self._failed:
            self._tell(
                f"The log {self.baseFilename} cannot be written ({error.strerror}): make room on "
                "its disk."
            )
        self._failed = True

    def close(self) -> None:
        """Close the file. What a full disk leaves unwritten is lost."""
        try:
            super().close()
        except OSError:
            self.stream = None


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


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
    "hello": "the version",
    "counts": "the counts of messages",
    "fusion_module": "the final fusion module",
    "relay": "a message to relay",
    "evaluate": "a request to evaluate the objective",
    "result": "the result of the final check",
    "add": "a masked sum",
    "exit_status": "an exit status",
    "check": "a request to check the requirements of the run",
    "unable": "the news that a party cannot take part",
}


def in_words(kind: str) -> str:
    """A kind of requests as text, with its article.

    >>> in_words("align"), in_words("envelope"), in_words("message")
    ('a request to align samples', 'an envelope', 'a message')
    """
    article = "a"
    if kind[:1].lower() in "aeio":
        article = "an"
    return REQUESTS.get(kind, f"{article} {kind}")


LEVELS = {  # of events; all others are informative
    "failed": ERROR,
    DIVERGED: ERROR,
    **dict.fromkeys(("early", "incompatible", "interrupted", "left", "lost", "older"), WARNING),
    **dict.fromkeys(("refused", "refused_connection", "unreached", "unsent", "waiting"), WARNING),
    "link": DEBUG,
}
LOGGER = "mtcd.federation"
# without handlers of a program, nothing is printed
logging.getLogger(LOGGER).addHandler(logging.NullHandler())


class Log:
    """The log of one party."""

    def __init__(
        self, party: str, path: Path | None, show: Callable[[str], None] | None = None
    ) -> None:
        self.party = party
        self._tail = Tail(TAIL)
        self._counts: Counter[tuple[str, ...]] = Counter()
        # of this object, not of all of the process
        self._logger = logging.Logger(f"{LOGGER}.{party}", DEBUG)
        self._logger.parent = logging.getLogger(LOGGER)
        handlers: list[logging.Handler] = [self._tail]
        if show is not None:
            handlers.append(Screen(show))
        if path is not None:
            handlers.append(LogFile(path, show))
        for handler in handlers:
            self._logger.addHandler(handler)

    @property
    def tail(self) -> deque[dict[str, Any]]:
        """The last events, oldest first: what ``mtcd federation status`` shows without reading the
        file."""
        return self._tail.entries

    def say(self, event: str, sentence: str = "", **facts: Any) -> None:
        """Log an event; the sentence, if there is one, is also shown on the screen."""
        extra = {"party": self.party, "event": event, "facts": facts}
        self._logger.log(LEVELS.get(event, INFO), sentence, extra=extra)

    def refused(self, sender: str, what: str, why: str) -> None:
        """Log a refused request, throttled."""
        sentence = f"Refused {in_words(what)} from {sender}: {tidy(why)}"
        self.throttled(("refused", sender, what, why), sentence, often=1, sender=sender)

    def throttled(
        self, kind: tuple[str, ...], sentence: str, often: int = OFTEN, **facts: Any
    ) -> None:
        """Log the first ``often`` events of a kind, then at powers of two; ``times`` is their
        count."""
        # Bounded: others choose the texts of refusals, and could invent new ones for ever.
        if kind not in self._counts and len(self._counts) >= KINDS:
            kind = kind[:2]
        self._counts[kind] += 1
        times = self._counts[kind]
        # Powers of two: what goes on for days is still seen, in a handful of lines.
        if times <= often or times & (times - 1) == 0:
            self.say(kind[0], sentence, times=times, **facts)

    def close(self) -> None:
        """Close the file, if there is one; later events reach the screen and the tail only."""
        for handler in list(self._logger.handlers):
            if isinstance(handler, LogFile):
                self._logger.removeHandler(handler)
                handler.close()


def tidy(text: str) -> str:
    """Text from other parties, on one line and without control characters."""
    return "".join(c if c.isprintable() else " " for c in text)[:LONGEST_CHARACTERS]
