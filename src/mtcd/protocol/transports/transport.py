"""Transports: transforms of the arrays of a message between sender and receiver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from mtcd.core.registry import Registry
from mtcd.protocol.codec.arrays import AggregateField
from mtcd.protocol.codec.extensions import EXTENSIONS
from mtcd.protocol.codec.fields import Optional
from mtcd.protocol.codec.limits import F8
from mtcd.protocol.codec.payloads import Payload, declared_fields
from mtcd.protocol.state import Stateful

P = TypeVar("P", bound=Payload)


class Transport(Stateful, ABC):
    """A transform of the aggregates and representations that travel. Each party has an instance of
    its own.

    A subclass declares its wire form (``dtype``), from which the ledger computes the bytes;
    ``encode`` for the sender and ``decode`` for the receiver; the state that must survive a restart
    (``state_fields``); and ``reads_objective``. ``encode`` must return an encoded array unchanged,
    because lost messages are sent again. Messages of a party to itself are not transformed.
    """

    dtype: np.dtype[Any] = F8
    reads_objective = True
    """Whether f can be read off an aggregate that has travelled."""
    planned: ClassVar[bool] = False
    """Whether ``mtcd plan`` tries it where bytes count."""
    note: ClassVar[str] = ""
    """What a run says of it, if its results may differ from those in double precision."""
    unit: ClassVar[float] = 0.0
    """The share of a change by which its rounding may be wrong, where it keeps differences."""
    keeps_differences = False
    """Whether it needs every message of a link, in order, and in return keeps the digits of
    differences between aggregates, with which accelerations compute."""

    @abstractmethod
    def encode(self, numbers: Any) -> Any:
        """The array in its wire form."""

    @abstractmethod
    def decode(self, numbers: Any) -> Any:
        """The array in the form in which the receiver computes."""

    def sent(self, payload: P, to: int) -> P:
        """The payload as it leaves for this party."""
        return mapped(payload, self.encode)

    def received(self, payload: P, sender: int) -> P:
        """The payload as it arrives from this party."""
        return mapped(payload, self.decode)

    def passed(self, payload: P, sender: int, to: int) -> P:
        """What arrives of a payload, computed by the transport of the sender: for engines that do
        both ends in one place."""
        return self.received(self.sent(payload, to), sender)


def mapped(payload: P, transform: Any) -> P:
    """The payload with its arrays transformed; a token is changed in place, because its sender no
    longer uses it."""
    # Tokens only: other payloads have no slots, or none with arrays.
    slots = getattr(payload, "slots", None)
    if slots:
        for name in slots.keys() & _array_slots():
            payload.put(name, transform(slots[name]))  # type: ignore[attr-defined]

    kind = type(payload)
    names = _ARRAYS.get(kind)
    # Found once per class: its fields never change.
    if names is None:
        names = _ARRAYS[kind] = _arrays(kind)
    found = {name: getattr(payload, name) for name in names}
    # None is an aggregate that the sender does not have; it stays away.
    new = {name: transform(array) for name, array in found.items() if array is not None}
    if not new:
        return payload
    if _is_frozen(kind):
        return replace(payload, **new)  # type: ignore[type-var]
    for name, array in new.items():
        setattr(payload, name, array)
    return payload


_ARRAYS: dict[type, tuple[str, ...]] = {}


def _arrays(kind: type) -> tuple[str, ...]:
    """The attributes of a payload class that hold aggregates or representations."""
    found = []
    for name, field in declared_fields(kind).items():
        # What may be None is one all the same, where it is there.
        if isinstance(field, Optional):
            field = field.field
        if isinstance(field, AggregateField):
            found.append(name)
    return tuple(found)


def _array_slots() -> set[str]:
    """The slots that hold aggregates or representations."""
    return {name for name, one in EXTENSIONS.items() if isinstance(one.field, AggregateField)}


def _is_frozen(kind: Any) -> bool:
    return bool(kind.__dataclass_params__.frozen)


DEFAULT = "float64"
TRANSPORTS: Registry[type[Transport]] = Registry(
    Transport,
    "mtcd.transports",
    "mtcd.protocol.transports",
    "method.transport: nothing is called {!r};",
)


def make_transport(name: str) -> Transport | None:
    """The transport of this name; None for the default, under which arrays travel as they are."""
    made = TRANSPORTS[name]()  # which refuses an unknown name
    if name == DEFAULT:
        return None
    return made
