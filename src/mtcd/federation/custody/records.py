"""What a party keeps, as bytes and back: numbers, texts, arrays, lists, dicts and the protocol's own payloads.

No pickle: only the classes listed here come back, and each from its fields.
"""

from __future__ import annotations

import json
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from mtcd.errors import MtcdError
from mtcd.federation.custody.letters import End, Freeze, Frozen, Letter, Receipt, Stuck, Thaw, Void
from mtcd.ledger.ledger import Ledger
from mtcd.methods.dcpa import Offer
from mtcd.methods.hosting import Done, Share
from mtcd.methods.svfl import Shared
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.party import Message
from mtcd.protocol.token import Instruction, Tally, Token

PAYLOADS = (Message, Token, Tally, Instruction, Done, Share, Fresh, Shared, Gathering, Offer)
LETTERS = (Letter, Receipt, End, Void, Stuck, Freeze, Frozen, Thaw)
KINDS: dict[str, type] = {kind.__name__: kind for kind in (*PAYLOADS, *LETTERS, Ledger)}
PLAIN = (bool, int, float, str, type(None))
DTYPES = ("<f8", "<f4", "<i8")


def pack(value: Any) -> bytes:
    """One line of JSON with the shape of the whole, then the bytes of the arrays in order."""
    arrays: list[bytes] = []
    head = json.dumps(_plain(value, arrays), separators=(",", ":"))  # floats come back exactly as they were
    return head.encode() + b"\n" + b"".join(arrays)


def unpack(data: bytes) -> Any:
    """What was packed."""
    head, _, rest = data.partition(b"\n")
    return _Reading(rest).value(json.loads(head))


def _plain(value: Any, arrays: list[bytes]) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, np.ndarray):
        dtype = value.dtype.newbyteorder("<").str
        if dtype not in DTYPES:
            raise MtcdError(f"An array of {dtype} cannot be kept.")
        arrays.append(np.ascontiguousarray(value).tobytes())
        return ["array", dtype, list(value.shape)]
    name = type(value).__name__
    if KINDS.get(name) is type(value):
        return ["kind", name, [_plain(getattr(value, field), arrays) for field in field_names(type(value))]]
    if isinstance(value, dict):
        return ["dict", [[_plain(key, arrays), _plain(one, arrays)] for key, one in value.items()]]
    if isinstance(value, list | tuple | set | frozenset):
        parts = sorted(value) if isinstance(value, set | frozenset) else value
        return [name, [_plain(one, arrays) for one in parts]]
    raise MtcdError(f"A {name} cannot be kept.")


def field_names(kind: type) -> list[str]:
    """Of a class that can be kept, in the order in which it is made of them."""
    return [field.name for field in fields(kind)] if is_dataclass(kind) else list(kind._fields)  # type: ignore[attr-defined]


SEQUENCES: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


class _Reading:
    """Reads values in the order in which they were written, so that arrays are found where they are."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def value(self, told: Any) -> Any:
        if not isinstance(told, list):
            return told
        match told:
            case ["array", dtype, shape] if dtype in DTYPES:
                return self._array(np.dtype(dtype), shape)
            case ["kind", name, parts]:
                return KINDS[name](*[self.value(part) for part in parts])
            case ["dict", pairs]:
                return {self.value(key): self.value(one) for key, one in pairs}
            case [name, parts] if name in SEQUENCES:
                return SEQUENCES[name]([self.value(part) for part in parts])
        raise MtcdError("The journal holds something unknown: it is of another version.")

    def _array(self, dtype: np.dtype[Any], shape: list[int]) -> np.ndarray[Any, Any]:
        count = int(np.prod(shape, dtype=np.int64))
        values = np.frombuffer(self.data, dtype, count, self.at).reshape(shape).copy()
        self.at += values.nbytes
        return values
