"""What inspect says of a setting: numbers, each with what it means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mtcd.theory.known import DECLARE, NOT_KNOWN

LEFT_OUT = "left out: it would take long here"


class Finding(NamedTuple):
    """A number (None: there is none, and ``shown`` says why), how people see it, and what it means."""

    key: str
    title: str
    value: float | None
    shown: str
    meaning: str


def finding(key: str, title: str, value: float | None, meaning: str, unit: str = "") -> Finding:
    """A number as people see it; None is one that was left out."""
    if value is None:
        return Finding(key, title, None, LEFT_OUT, meaning)
    if math.isinf(value):
        return Finding(key, title, None, "infinite", meaning)
    return Finding(key, title, value, (f"{value:,}" if isinstance(value, int) else f"{value:.4g}") + unit, meaning)


def not_known(key: str, title: str) -> Finding:
    """A number that the theory cannot say, as it does not know the walk."""
    return Finding(key, title, None, NOT_KNOWN, DECLARE)


def as_plain(found: Sequence[Finding]) -> dict[str, Any]:
    """For JSON: value and meaning by key; a value that is infinite or left out is null."""
    return {f.key: {"title": f.title, "value": f.value, "shown": f.shown, "meaning": f.meaning} for f in found}
