"""Messages as cheats send them: each made of an honest one, with something wrong in it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np

HEAD = 72  # bytes of a frame before the run's id
BITS = np.array([np.nan, np.inf, -np.inf, 1e308]).view(np.int64).tolist()
WORDS = [0, 1, -1, -2, 3, 99, 2**31, 2**48, 2**62, 2**63 - 1, -(2**63), *BITS]
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    2,
    1.5,
    2**70,
    1e308,
    "",
    "x",
    "\u202e\x00",
    [],
    [[]],
    {},
    {"to": "c1"},
    "9" * 70,
]
NOT_JSON = [
    b"",
    b"\n",
    b"null\n",
    b"[]\n",
    b"{\n",
    b'{"a": NaN}\n',
    b"[" * 5000 + b"\n",
    b"\xff\xfe\n",
    b"1" * 5000,
]


def spoilt_envelopes(frame: bytes, some: random.Random, count: int) -> Iterator[bytes]:
    """Of all words of a frame replaced by all extremes, so many; then cut, longer, of other
    versions and runs."""
    for _ in range(count):
        at = 8 * some.randrange(len(frame) // 8)
        yield frame[:at] + some.choice(WORDS).to_bytes(8, "little", signed=True) + frame[at + 8 :]
        at = some.randrange(len(frame))
        yield frame[:at] + bytes([frame[at] ^ 1 << some.randrange(8)]) + frame[at + 1 :]
    for at in range(8, 16, 2):  # format, protocol, kind, length of the run's id
        yield frame[:at] + some.choice([0, 3, 255, 65535]).to_bytes(2, "little") + frame[at + 2 :]
    cut = some.randrange(len(frame))
    yield from (
        frame[:cut],
        frame[: cut // 8 * 8],
        frame + bytes(8),
        frame + frame,
        b"",
        frame + bytes(300_000),
    )
    yield frame[:HEAD] + bytes(byte ^ 1 for byte in frame[HEAD : HEAD + 16]) + frame[HEAD + 16 :]


def spoilt_values(value: Any) -> Iterator[Any]:
    """A value of JSON with one thing changed, anywhere in it."""
    yield from (other for other in VALUES if type(other) is not type(value) or other != value)
    if isinstance(value, dict):
        for key, inside in value.items():
            yield {name: one for name, one in value.items() if name != key}
            yield {f"{key} " if name == key else name: one for name, one in value.items()}
            yield from ({**value, key: other} for other in spoilt_values(inside))
        yield {**value, "more": 1}
    elif isinstance(value, list):
        yield [*value, *value, 7]
        for i, inside in enumerate(value):
            yield from ([*value[:i], other, *value[i + 1 :]] for other in spoilt_values(inside))


def spoilt_lines(body: bytes) -> Iterator[bytes]:
    """What starts with a line of JSON, with a wrong one."""
    line, _, rest = body.partition(b"\n")
    yield from (wrong + rest for wrong in NOT_JSON)
    for value in spoilt_values(json.loads(line)):
        yield json.dumps(value).encode() + b"\n" + rest
    yield from (body[:-1], body + b"\n", line, body.replace(b"\n", b"", 1), bytes(len(body)))


def spoilt_parts(body: bytes) -> Iterator[bytes]:
    """A parcel whose parts are not what they must be, though their sizes are right."""
    line, _, rest = body.partition(b"\n")
    head, at, parts = json.loads(line), 0, []
    for size in head["sizes"]:
        parts.append(rest[at : at + size])
        at += size
    for i, part in enumerate(parts):
        for wrong in (
            b"",
            b"\0",
            part[: len(part) // 2],
            part[:-1],
            part + b"\0",
            part + part,
            bytes(len(part)),
            b"[]",
        ):
            if wrong != part:
                changed = [*parts[:i], wrong, *parts[i + 1 :]]
                told = {**head, "sizes": [len(one) for one in changed]}
                yield json.dumps(told).encode() + b"\n" + b"".join(changed)
