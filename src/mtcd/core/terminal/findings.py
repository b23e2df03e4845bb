"""The theory section of mtcd inspect: numbers, each with an explanation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

NOT_KNOWN = "not known for this walk"
DECLARE = (
    "override Walk.transitions to declare the probability of each next client, "
    "where it depends on the client alone"
)
"""What a walk without theory needs, for errors and in place of an explanation."""
LEFT_OUT = "left out: too slow to compute here"


class TheoryFinding(NamedTuple):
    """A number of the theory, with its text and its explanation.

    Parameters
    ----------
    key
        Its name in JSON.
    title
        Its name on the screen.
    value
        The number; None where there is none, and ``shown`` gives the reason.
    shown
        The number as text.
    meaning
        The explanation.
    """

    key: str
    title: str
    value: float | None
    shown: str
    meaning: str


def finding(
    key: str, title: str, value: float | None, meaning: str, unit: str = ""
) -> TheoryFinding:
    """A number with its text; None is one that was left out.

    >>> finding("cover", "cover time", 1234, "hops until all were visited", unit=" hops").shown
    '1,234 hops'
    """
    if value is None:
        return TheoryFinding(key, title, None, LEFT_OUT, meaning)
    if math.isinf(value):
        return TheoryFinding(key, title, None, "infinite", meaning)

    form = ".4g"
    if isinstance(value, int):
        form = ","
    return TheoryFinding(key, title, value, format(value, form) + unit, meaning)


def not_known(key: str, title: str) -> TheoryFinding:
    """A number that the theory cannot compute, as the walk does not declare its theory."""
    return TheoryFinding(key, title, None, NOT_KNOWN, DECLARE)


def as_plain(found: Sequence[TheoryFinding]) -> dict[str, Any]:
    """For JSON: value and meaning by key; a value that is infinite or left out is null."""
    plain = {}
    for one in found:
        plain[one.key] = {
            "title": one.title,
            "value": one.value,
            "shown": one.shown,
            "meaning": one.meaning,
        }
    return plain
