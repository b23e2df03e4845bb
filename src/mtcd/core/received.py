"""Values that other parties send as JSON: read without an error, checked by their exact types.

True is an int in Python, and is no number here.
"""

from __future__ import annotations

import json
from typing import Any, TypeGuard

LONGEST_ID = 64


def read_json(data: bytes | bytearray, most: int | None = None) -> Any:
    """The value; None for what cannot be read.

    Parameters
    ----------
    data
        What a party has sent.
    most
        The most bytes that are read: more are no value.

    Examples
    --------
    >>> read_json(b'{"left": 3}'), read_json(b"{"), read_json(b"[1, 2]", most=5)
    ({'left': 3}, None, None)
    """
    if most is not None and len(data) > most:
        return None

    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def is_whole(value: Any, least: int, most: int) -> TypeGuard[int]:
    """Whether this is a whole number within these limits.

    >>> is_whole(3, 0, 3), is_whole(True, 0, 3), is_whole(4, 0, 3)
    (True, False, False)
    """
    return type(value) is int and least <= value <= most


def are_whole(values: Any, least: int, most: int) -> TypeGuard[list[int]]:
    """Whether this is a list of whole numbers within these limits.

    >>> are_whole([1, 2], 0, 3), are_whole([1, True], 0, 3), are_whole(None, 0, 3)
    (True, False, False)
    """
    return isinstance(values, list) and all(is_whole(value, least, most) for value in values)


def are_texts(values: Any) -> TypeGuard[list[str]]:
    """Whether this is a list of texts.

    >>> are_texts(["a", "b"]), are_texts(["a", 1]), are_texts("ab")
    (True, False, False)
    """
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def is_id(value: Any) -> TypeGuard[str]:
    """Whether this may be the id of a run or of a pass: 1 to 64 letters and digits of ASCII.

    >>> is_id("7f3a"), is_id("7f/3a"), is_id("")
    (True, False, False)
    """
    return (
        isinstance(value, str) and len(value) <= LONGEST_ID and value.isascii() and value.isalnum()
    )
