"""The exceptions of the library: one tree, so that a caller can catch all of them at once."""

from __future__ import annotations

import difflib
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager


class MtcdError(Exception):
    """The base of all errors of this library. The text says what was wrong and what to do next.

    Examples
    --------
    >>> import mtcd
    >>> try:
    ...     mtcd.load_run("no-such-run")
    ... except mtcd.MtcdError as error:
    ...     print(error)
    no-such-run is not a complete run folder, as it has no run.json: give one that mtcd train...
    """


class ConfigError(MtcdError):
    """A setting is unknown, missing, or has a value that cannot work."""


class DataError(MtcdError):
    """A table, a label or a feature cannot be used as it is.

    Parameters
    ----------
    text
        What was wrong and what to do next.
    shared
        The text for other parties, where the whole text holds values of a party's table.
    """

    def __init__(self, text: str = "", shared: str | None = None) -> None:
        super().__init__(text)
        self.shared = shared


class DataWarning(UserWarning):
    """Values of a table were guessed, replaced or left out. The text says which, how many, and what
    to do.

    Examples
    --------
    >>> import mtcd, polars, warnings
    >>> table = polars.DataFrame({"price": ["1,50 €", "2,75 €", "9,00 €"], "age": [50, 60, 70]})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", mtcd.DataWarning)
    ...     _ = mtcd.split(table, [0, 1, 1], clients=2, prepare="auto")
    >>> [one.category.__name__ for one in caught]
    ['DataWarning']
    """


def warn_of_data(text: str) -> None:
    """Warn the user of values of a table, at the line that called this library."""
    warn_user(text, DataWarning)


def warn_user(text: str, category: type[Warning]) -> None:
    """Warn the user, at the line that called this library.

    A warning at a line of this library would be hidden: by default Python shows those of the main
    program alone.
    """
    # From the line that warns outwards, to the first frame that is not of this library.
    frame = sys._getframe(1)
    depth = 2
    while frame.f_back is not None and _is_ours(frame.f_globals):
        frame = frame.f_back
        depth += 1

    warnings.warn(text, category, stacklevel=depth)


def _is_ours(namespace: Mapping[str, object]) -> bool:
    return str(namespace.get("__name__")).partition(".")[0] == "mtcd"


class NetworkError(MtcdError):
    """The graph does not fit the clients, or the method cannot work on it."""


class NotInstalledError(MtcdError):
    """An optional dependency that is needed here is not installed."""


# An AttributeError too: Python asks for attributes that may not be there, as copies and notebooks do.
class NoSuchPartError(MtcdError, AttributeError):
    """A run was asked for a part that its model does not have; ``hasattr`` is then False."""


class DivergedError(NoSuchPartError):
    """A result was requested from a run that diverged: it has no model."""


class WireError(MtcdError):
    """A message between parties is invalid: its ``field`` has a ``problem``.

    The text never holds numbers of the payload, so that it may be logged anywhere.

    >>> str(WireError("aggregate", "is not finite"))
    'The message was refused: aggregate is not finite.'
    """

    def __init__(self, field: str, problem: str) -> None:
        # Apart as well: metrics count refusals by field, whatever the words are.
        super().__init__(f"The message was refused: {field} {problem}.")
        self.field = field
        self.problem = problem


class JournalError(MtcdError):
    """A party cannot write or read its journal: it must stop."""


def system_reason(error: OSError) -> str:
    """What the operating system says of an error, without its number and the path.

    >>> system_reason(FileNotFoundError(2, "No such file or directory", "runs/demo"))
    'No such file or directory'
    """
    return error.strerror or str(error)


@contextmanager
def raised_as(problem: str, error: type[MtcdError] = MtcdError) -> Iterator[None]:
    """Within this context, an error of the operating system is raised as one of this library.

    Parameters
    ----------
    problem
        What cannot be done, up to the reason.
    error
        The class of the error.

    Examples
    --------
    >>> with raised_as("no/such/file cannot be read"):
    ...     open("no/such/file").close()
    Traceback (most recent call last):
    mtcd.core.errors.MtcdError: no/such/file cannot be read: No such file or directory.
    """
    try:
        yield
    except OSError as failed:
        raise error(f"{problem}: {system_reason(failed)}.") from None


def check_known(
    word: object, known: Collection[str], problem: str, error: type[MtcdError] = ConfigError
) -> None:
    """Refuse a word that is not known, with a hint.

    Parameters
    ----------
    word
        What was given.
    known
        All that could have been given.
    problem
        The beginning of the error, up to the hint.
    error
        Its class.

    Examples
    --------
    >>> check_known("tokns", ["tokens", "hops"], "method has no key 'tokns';")
    Traceback (most recent call last):
    mtcd.core.errors.ConfigError: method has no key 'tokns'; did you mean 'tokens'?
    """
    if word not in known:
        raise error(f"{problem} {did_you_mean(str(word), known)}")


def did_you_mean(word: str, known: Iterable[str], otherwise: str = "known") -> str:
    """A hint to append to an error: the nearest known word, or all of them if none is near, after
    ``otherwise``.

    >>> did_you_mean("tokns", ["tokens", "hops"])
    "did you mean 'tokens'?"
    """
    words = [str(k) for k in known]
    near = difflib.get_close_matches(str(word), words, n=1, cutoff=0.6)
    if near:
        return f"did you mean '{near[0]}'?"
    return f"{otherwise}: {listing(words)}"


def listing(items: Sequence[object], limit: int = 8) -> str:
    """The items joined by commas, cut after ``limit``.

    >>> listing(range(12), limit=3)
    '0, 1, 2 and 9 more'
    """
    shown = ", ".join(str(item) for item in items[:limit])
    rest = len(items) - limit
    if rest > 0:
        return f"{shown} and {rest} more"
    return shown
