"""Where the events of a party go: handlers of the standard ``logging``, and the form of an event as
a line of JSON."""

from __future__ import annotations

import json
import logging
import os
import sys
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from io import TextIOWrapper
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from mtcd.core.errors import ConfigError
from mtcd.core.files import plain

FILE_BYTES = 10 * 2**20  # of a log, after which it becomes log.jsonl.1, and that log.jsonl.2, ...
KEPT_FILES = 5  # besides the one that is written


def entry_of(record: logging.LogRecord) -> dict[str, Any]:
    """An event of a party as a dictionary: time, level, party, event, its sentence and its
    facts."""
    text = record.getMessage()
    return {
        "time": _time(record),
        "level": record.levelname.lower(),
        "party": getattr(record, "party", ""),
        "event": getattr(record, "event", record.name),
        **({"text": text} if text else {}),
        **getattr(record, "facts", {}),
    }


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
        descriptor = os.open(self.baseFilename, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return os.fdopen(descriptor, "a", encoding="utf-8")

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say once that events are lost; other errors are mistakes in the code."""
        error = sys.exception()
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
