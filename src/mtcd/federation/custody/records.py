"""What a party keeps, as bytes and back: numbers, texts, arrays, lists, dicts and the protocol's own payloads.

No pickle: only the classes listed here come back, and each from its fields. What is there twice, an array or a
letter, is written once: so it comes back as one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtcd.data.samples import is_tensor
from mtcd.errors import MtcdError
from mtcd.federation.custody.letters import End, Freeze, Frozen, Letter, Receipt, Stuck, Thaw, Void
from mtcd.federation.custody.search import Search
from mtcd.federation.custody.tensors import tensor_bytes, tensor_of
from mtcd.ledger.ledger import Ledger
from mtcd.methods.dcpa import Offer
from mtcd.methods.hosting import Done, Share
from mtcd.methods.split_parties import SplitToken, UpdateFusion
from mtcd.methods.svfl import Shared
from mtcd.protocol.gathering import Fresh, Gathering
from mtcd.protocol.party import Message
from mtcd.protocol.token import Instruction, Tally, Token

PAYLOADS = (Message, Token, Tally, Instruction, Done, Share, Fresh, Shared, Gathering, Offer)
OF_NETWORKS = (SplitToken, UpdateFusion)
LETTERS = (Letter, Receipt, End, Void, Stuck, Freeze, Frozen, Thaw, Search)
KINDS: dict[str, type] = {kind.__name__: kind for kind in (*PAYLOADS, *OF_NETWORKS, *LETTERS, Ledger)}
PLAIN = frozenset({bool, int, float, str, type(None)})
DTYPES = {np.dtype(name): name for name in ("<f8", "<f4", "<i8")}
LARGE = 4096
"""Bytes from which an array stands behind all others, and has a quicker checksum in journals."""

BYTE = np.dtype(np.uint8)
Numbers = NDArray[Any]


class Parts(NamedTuple):
    """A record in pieces: text, then small arrays, then large ones, none of them copied."""

    head: bytes
    small: list[Numbers]
    large: list[Numbers]


def pack(value: Any) -> bytes:
    """Text with the shape of the whole, a line end, then the bytes of the arrays."""
    head, small, large = parts(value)
    chunks: list[Any] = [head, *small, *large]
    return b"".join(chunks)


def parts(value: Any) -> Parts:
    """The same, not joined."""
    writing = _Writing()
    text = _to_json(writing.value(value))  # floats come back exactly as they were
    small = sum(array.nbytes for array in writing.small)
    return Parts(f"{small} {text}\n".encode(), writing.small, writing.large)


def unpack(data: bytes) -> Any:
    """What was packed."""
    head, _, rest = data.partition(b"\n")
    small, _, text = head.partition(b" ")
    return _Reading(rest, int(small)).value(json.loads(text))


_to_json = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class _Writing:
    """Turns a value into what JSON knows: a list begins with what it stands for."""

    __slots__ = ("known", "large", "small")

    def __init__(self) -> None:
        self.small: list[Numbers] = []
        self.large: list[Numbers] = []
        self.known: dict[int, int] = {}
        """The numbers of what is written once, by identity."""

    def value(self, value: Any) -> Any:
        """This runs at every commit, so it does not waste calls."""
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is np.ndarray:
            return self.array(value)
        if kind is dict and (not value or all(type(key) is str for key in value)):
            return {key: self.value(one) for key, one in value.items()}
        if kind is Letter and id(value) in self.known:
            return ["again", self.known[id(value)]]
        known = PARTS_OF.get(kind)
        if known is None:
            if isinstance(value, np.generic):
                return value.item()
            if is_tensor(value):
                return self.tensor(value)
            raise MtcdError(f"A {kind.__name__} cannot be kept.")
        tag, parts_of = known
        told = [tag]
        told += [one if type(one) in PLAIN else self.value(one) for one in parts_of(value)]
        if kind is Letter:
            self.known[id(value)] = len(self.known)
        return told

    def array(self, value: Numbers) -> list[Any]:
        number = self.known.get(id(value))
        if number is not None:
            return ["again", number]
        self.known[id(value)] = len(self.known)
        name = DTYPES.get(value.dtype)
        if name is None:
            raise MtcdError(f"An array of {value.dtype.str} cannot be kept.")
        (self.large if is_large(value.nbytes) else self.small).append(np.ascontiguousarray(value))
        return ["array", name, *value.shape]

    def tensor(self, value: Any) -> list[Any]:
        number = self.known.get(id(value))
        if number is not None:
            return ["again", number]
        self.known[id(value)] = len(self.known)
        kind, shape, data = tensor_bytes(value)
        (self.large if is_large(data.nbytes) else self.small).append(data)
        return ["tensor", kind, data.nbytes, *shape]


def is_large(size: int) -> bool:
    """Whether an array of so many bytes stands behind the others."""
    return size >= LARGE and size % 8 == 0


def _fields(kind: type) -> Callable[[Any], Any]:
    """The fields of an object, in the order in which it is made of them."""
    if not is_dataclass(kind):
        return tuple
    names = [field.name for field in fields(kind)]
    return attrgetter(*names)


_all_of_token = _fields(Token)
_most_of_token = attrgetter("index", "t", "hop", "aggregate", "penalty", "sync_penalty", "sync_change", "previous")


def _token(token: Token) -> Any:
    """Most tokens carry no more than their aggregate: the rest is then as it is when nothing is said of it."""
    more = token.extra or token.past or token.tally.visited or token.tally.products.size or token.tally.slope
    return _all_of_token(token) if more or token.instruction != UNTOLD else _most_of_token(token)


UNTOLD = Instruction(0)
SEQUENCES: dict[str, Any] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
PARTS_OF: dict[type, tuple[str, Callable[[Any], Any]]] = {
    **{kind: (name, _fields(kind)) for name, kind in KINDS.items()},
    Token: ("Token", _token),
    dict: ("dict", lambda value: chain.from_iterable(value.items())),
    list: ("list", iter),
    tuple: ("tuple", iter),
    set: ("set", sorted),
    frozenset: ("frozenset", sorted),
}
"""What stands for an object: a name, and what it is made of."""


class _Reading:
    """Reads values in the order in which they were written, so that arrays are found where they are."""

    def __init__(self, data: bytes, small: int) -> None:
        self.data, self.small, self.large = data, 0, small
        self.known: list[Any] = []

    def value(self, told: Any) -> Any:
        if isinstance(told, dict):
            return {key: self.value(one) for key, one in told.items()}
        if not isinstance(told, list):
            return told
        match told:
            case ["array", dtype, *shape] if dtype in DTYPES.values():
                return self._kept(self._array(np.dtype(dtype), shape))
            case ["tensor", str(kind), int(length), *shape]:
                return self._kept(tensor_of(kind, shape, self._array(BYTE, [length]).data))
            case ["again", int(number)]:
                return self.known[number]
            case ["dict", *pairs]:
                read = [self.value(one) for one in pairs]
                return dict(zip(read[::2], read[1::2], strict=True))
            case [name, *parts] if name in SEQUENCES:
                return SEQUENCES[name]([self.value(part) for part in parts])
            case [name, *parts] if name in KINDS:
                made = KINDS[name](*[self.value(part) for part in parts])
                return self._kept(made) if name == "Letter" else made
        raise MtcdError("The journal holds something unknown: it is of another version.")

    def _kept(self, value: Any) -> Any:
        self.known.append(value)
        return value

    def _array(self, dtype: np.dtype[Any], shape: list[int]) -> Numbers:
        count = int(np.prod(shape, dtype=np.int64))
        at = self.large if is_large(count * dtype.itemsize) else self.small
        values = np.frombuffer(self.data, dtype, count, at).reshape(shape).copy()
        if is_large(values.nbytes):
            self.large += values.nbytes
        else:
            self.small += values.nbytes
        return values
