"""The settings of the automatic choice, for what the values of a column leave open."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from mtcd.core.errors import ConfigError, check_known

_CHOICES: dict[str, tuple[str, ...]] = {
    "decimal": (".", ","),
    "dates": ("day-first", "month-first", "year-first"),
    "limits": ("missing", "value"),
}


@dataclass(frozen=True)
class Auto:
    """How the automatic choice reads a column of texts, where the texts alone do not say it.

    ``decimal`` is the decimal mark of numbers; ``dates`` the order of day, month and year;
    ``limits`` what a bound such as <0.5 counts as: missing, or the number itself.
    """

    decimal: str | None = None
    dates: str | None = None
    limits: str | None = None

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            given = getattr(self, name)
            if given is not None and given not in choices:
                known = " or ".join(map(repr, choices))
                raise ConfigError(f"prepare: auto: {name} must be {known}, but is {given!r}.")


def read_auto(given: Any) -> Auto:
    """The settings from a mapping, or None. Raises ConfigError."""
    if given is None:
        return Auto()
    if not isinstance(given, Mapping):
        raise ConfigError(
            f"prepare: the settings of auto are a mapping such as {{decimal: ','}}, but are "
            f"{given!r}."
        )
    known = [field.name for field in fields(Auto)]
    for key in given:
        check_known(key, known, f"prepare: auto has no setting {key!r};")
    return Auto(**given)
