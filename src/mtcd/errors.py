"""The exceptions of the library: one tree, so that a caller can catch all of them at once."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


class MtcdError(Exception):
    """The base of all errors of this library. The text says what was wrong and what to do next."""


class ConfigError(MtcdError):
    """A setting is unknown, missing, or has a value that cannot work."""


class DataError(MtcdError):
    """A table, a label or a feature cannot be used as it is."""


class NetworkError(MtcdError):
    """The graph does not fit the clients, or the method cannot work on it."""


class NotInstalledError(MtcdError):
    """An optional dependency that is needed here is not installed."""


class DivergedError(MtcdError):
    """A result was requested from a run that diverged: it has no model."""


class WireError(MtcdError):
    """A message between parties is invalid: its ``field`` has a ``problem``.

    The text never holds numbers of the payload, so that it may be logged anywhere.
    """

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"The message was refused: {field} {problem}.")
        self.field, self.problem = field, problem


class JournalError(MtcdError):
    """A party cannot write or read its journal: it must stop."""


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "known") -> str:
    """A hint to append to an error: the nearest known word, or all of them if none is near, after ``otherwise``.

    >>> did_you_mean("tokns", ["tokens", "hops"])
    "did you mean 'tokens'?"
    """
    words = [str(k) for k in known]
    near = difflib.get_close_matches(str(word), words, n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else f"{otherwise}: {listing(words)}"


def listing(items: Sequence[object], limit: int = 8) -> str:
    """The items joined by commas, cut after ``limit``.

    >>> listing(range(12), limit=3)
    '0, 1, 2 and 9 more'
    """
    shown = ", ".join(str(item) for item in items[:limit])
    rest = len(items) - limit
    return f"{shown} and {rest} more" if rest > 0 else shown
