"""The theory section of mtcd inspect: numbers, each with an explanation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from mtcd.core.terminal.known import DECLARE, NOT_KNOWN

LEFT_OUT = "left out: too slow to compute here"


class Finding(NamedTuple):
    """A number (None where there is none, and ``shown`` gives the reason), its text, and its
    explanation."""

    key: str
    title: str
    value: float | None
    shown: str
    meaning: str


def finding(key: str, title: str, value: float | None, meaning: str, unit: str = "") -> Finding:
    """A number with its text; None is one that was left out."""
    if value is None:
        return Finding(key, title, None, LEFT_OUT, meaning)
    if math.isinf(value):
        return Finding(key, title, None, "infinite", meaning)
    return Finding(
        key,
        title,
        value,
        (f"{value:,}" if isinstance(value, int) else f"{value:.4g}") + unit,
        meaning,
    )


def not_known(key: str, title: str) -> Finding:
    """A number that the theory cannot compute, as the walk does not declare its theory."""
    return Finding(key, title, None, NOT_KNOWN, DECLARE)


def as_plain(found: Sequence[Finding]) -> dict[str, Any]:
    """For JSON: value and meaning by key; a value that is infinite or left out is null."""
    return {
        f.key: {"title": f.title, "value": f.value, "shown": f.shown, "meaning": f.meaning}
        for f in found
    }
