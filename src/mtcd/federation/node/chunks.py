"""Encoding of the messages before training: a JSON head, followed by blocks of bytes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from mtcd.core.errors import WireError
from mtcd.core.received import are_whole, read_json

LONGEST_HEAD_BYTES = 1_000_000


def wrap(head: dict[str, Any], *parts: bytes) -> bytes:
    """Encode a line of JSON and the parts."""
    line = json.dumps({**head, "sizes": [len(part) for part in parts]}, allow_nan=False)
    return b"".join([line.encode(), b"\n", *parts])


def unwrap(
    data: bytes, keys: Sequence[str], parts: int, more: int = 0
) -> tuple[dict[str, Any], list[bytes]]:
    """Decode a message that must have exactly these keys, this number of parts, and at most so many
    ``more``."""
    # Found within a limit: a message without an end of line is not searched to its end.
    end = data.find(b"\n", 0, LONGEST_HEAD_BYTES)
    head = read_json(data[: max(end, 0)])
    if not isinstance(head, dict):
        raise WireError("head", "is not readable")
    sizes = head.pop("sizes", None)
    if set(head) != set(keys):
        raise WireError("head", "has missing or unknown keys")
    if not are_whole(sizes, 0, len(data)):
        raise WireError("sizes", "are not those of its parts")
    # Exactly as many bytes as the head says: nothing may hide behind the last part.
    if not parts <= len(sizes) <= parts + more or end + 1 + sum(sizes) != len(data):
        raise WireError("sizes", "are not those of its parts")
    found, at = [], end + 1
    for size in sizes:
        found.append(data[at : at + size])
        at += size
    return head, found
