"""Checks of settings: errors name the setting, wherever it was given."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

from mtcd.core.errors import ConfigError


def check_whole(name: str, value: Any, least: int = 1) -> None:
    """Reject anything but a whole number of at least ``least``.

    Parameters
    ----------
    name
        What the setting is called where it was given.
    value
        What was given.
    least
        The least that is allowed.

    Raises
    ------
    ConfigError
        With the name and the value.

    Examples
    --------
    >>> check_whole("tokens", 0)
    Traceback (most recent call last):
    mtcd.core.errors.ConfigError: tokens must be 1 or more, but is 0.
    """
    # True is an Integral, but nobody means 1 by it.
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise ConfigError(f"{name} must be a whole number, but is {value!r}.")
    if value < least:
        raise ConfigError(f"{name} must be {least} or more, but is {value}.")


def check_number(name: str, value: Any, above: float | None = None) -> None:
    """Reject anything but a finite number of 0 or more, or above ``above``.

    >>> check_number("stepsize", float("inf"))
    Traceback (most recent call last):
    mtcd.core.errors.ConfigError: stepsize must be a finite number, but is inf.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ConfigError(f"{name} must be a number, but is {value!r}.")
    # Before the comparisons: NaN would pass all of them.
    if not math.isfinite(value):
        raise ConfigError(f"{name} must be a finite number, but is {value}.")
    if above is not None and value <= above:
        raise ConfigError(f"{name} must be above {above:g}, but is {value}.")
    if above is None and value < 0:
        raise ConfigError(f"{name} must be 0 or more, but is {value}.")
