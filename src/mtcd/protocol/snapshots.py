"""Snapshots of the state of parties: values as JSON and arrays, without pickle.

Only the classes that are declared as ``stored`` come back, each from its fields. An array that
occurs twice is kept once, and comes back as one. The order in memory of an array is kept: the
rounding of products depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.errors import MtcdError
from mtcd.protocol.codec.stored import PLAIN, described, is_described, made
from mtcd.protocol.former import RECORDS, former_token, is_former
from mtcd.protocol.party import Message
from mtcd.protocol.state import Snapshot


def take(value: Any) -> Snapshot:
    """The snapshot of a value. Its arrays are not copies: write them before anything changes."""
    taking = _Taking()
    content = taking.plain(value)
    return Snapshot({"content": content}, {str(i): array for i, array in enumerate(taking.arrays)})


def restored(snapshot: Snapshot) -> Any:
    """The value of a snapshot; it shares no memory with it."""
    try:
        # Copies: what is restored is trained further, and the snapshot may be restored again.
        arrays = {name: np.array(array, order="K") for name, array in snapshot.tensors.items()}
        return _value(snapshot.facts["content"], arrays)
    except (KeyError, TypeError, ValueError) as error:
        raise MtcdError(
            f"The checkpoint is not of this training: {type(error).__name__}: {error}"
        ) from None


class _Taking:
    """Turns values into JSON, and collects their arrays."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._numbers: dict[int, int] = {}

    def plain(self, value: Any) -> Any:
        """The value as JSON. An object has one key, the name of its class."""
        kind = type(value)
        if kind in PLAIN:
            return value
        # Arrays of objects would need pickle.
        if kind is np.ndarray and not value.dtype.hasobject:
            return {"array": str(self._number(value))}
        # A float64 of NumPy and a float of Python round alike, but their products with float32 do
        # not.
        if isinstance(value, np.generic):  # kept as it is: arithmetic depends on the type
            self.arrays.append(np.asarray(value))
            return {"scalar": str(len(self.arrays) - 1)}
        if kind is list:
            return [self.plain(part) for part in value]
        if kind is dict:
            return {"dict": [[self.plain(key), self.plain(part)] for key, part in value.items()]}
        found = described(kind)
        if found is not None:
            return {found.name: [self.plain(part) for part in found.parts(value)]}
        raise MtcdError(f"A {kind.__name__} cannot be kept in a checkpoint.")

    def _number(self, array: NDArray[Any]) -> int:
        # By identity: an array that two parties share must be one again afterwards.
        if id(array) not in self._numbers:
            self._numbers[id(array)] = len(self.arrays)
            self.arrays.append(array)
        return self._numbers[id(array)]


def _value(plain: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(plain, list):
        return [_value(part, arrays) for part in plain]
    # ``plain`` writes each dict as a list of pairs, so that every dict here is an object.
    if not isinstance(plain, dict):
        return plain
    # One key, the name of the class: anything else was not written by ``plain``.
    [(kind, parts)] = plain.items()
    if kind == "array":
        return arrays[parts]
    if kind == "scalar":
        return arrays[parts][()]
    values = _value(parts, arrays)
    if kind == "dict":
        return dict(values)
    if is_former(kind, values):
        return former_token(kind, values)
    if is_described(kind):
        return made(kind, values)
    return RECORDS[kind](*values)


@dataclass
class EngineState:
    """The parties, and the messages under way.

    Parameters
    ----------
    parties
        The state of each party: the clients by their numbers, then the server.
    monitor
        The state of the monitor.
    waiting
        Messages that are sent and recorded, but not delivered.
    outgoing
        Messages to send: a party returned them after its report.
    ahead
        By iteration, messages that are recorded after the observation of it.
    observed
        The parameters of this observation, where clients may be ahead of it.
    reached
        Its iteration.
    """

    parties: list[dict[str, Any]]
    monitor: dict[str, Any]
    waiting: list[Message]
    outgoing: list[Message]
    ahead: dict[int, list[Message]] = field(default_factory=dict)
    observed: Sequence[Any] | None = None
    reached: int = 0

    def snapshot(self) -> Snapshot:
        """The snapshot of this state. Write it before anything changes."""
        return take(vars(self))

    @staticmethod
    def of(snapshot: Snapshot) -> EngineState:
        """The state of a snapshot; it shares no memory with it."""
        kept = restored(snapshot)
        try:
            return EngineState(**kept)
        except TypeError as error:
            raise MtcdError(f"The checkpoint is not of this training: {error}") from None
