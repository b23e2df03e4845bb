"""A few plain values and some blocks of bytes, as one block of bytes: what parties tell each other before training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mtcd.errors import WireError

LONGEST_HEAD = 1_000_000


def wrap(head: dict[str, Any], *parts: bytes) -> bytes:
    """A line of JSON, then the parts."""
    line = json.dumps({**head, "sizes": [len(part) for part in parts]}, allow_nan=False)
    return b"".join([line.encode(), b"\n", *parts])


def unwrap(data: bytes, keys: Sequence[str], parts: int) -> tuple[dict[str, Any], list[bytes]]:
    """What was wrapped, if it has exactly these keys and so many parts."""
    end = data.find(b"\n", 0, LONGEST_HEAD)
    try:
        head = json.loads(data[:end]) if end >= 0 else None
    except (ValueError, RecursionError):
        head = None
    if not isinstance(head, dict):
        raise WireError("head", "is not readable")
    sizes = head.pop("sizes", None)
    if set(head) != set(keys):
        raise WireError("head", "does not have the keys that it must have")
    if not isinstance(sizes, list) or len(sizes) != parts or not all(type(size) is int and size >= 0 for size in sizes):
        raise WireError("sizes", "are not those of its parts")
    if end + 1 + sum(sizes) != len(data):
        raise WireError("sizes", "are not those of its parts")
    found, at = [], end + 1
    for size in sizes:
        found.append(data[at : at + size])
        at += size
    return head, found
