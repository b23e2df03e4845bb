"""Payload classes: what parties send to each other. Each class declares its schema, its routes and
its size, once.

    @payload(5, "s>c")
    @dataclass(frozen=True, slots=True)
    class Share(Payload):
        t: Iteration

The annotation of each attribute names its field type (``Annotated[int, Whole(...)]``; the
usual ones are below). The number identifies the class in frames and must never have been that of
another class. The routes say which kind of party may send it to which: c is a client, s the server,
m the monitor. A class without a complete schema is refused when its module is imported.

Two kinds of writers walk these declarations. Frames are written and read by the field types, which
know the bounds and refuse what is outside them (:class:`Nested`). The state of a party is trusted,
and has arrays that occur twice: journals and checkpoints write each of these once, from the same
attributes in the same order (``stored.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from inspect import get_annotations
from itertools import groupby
from typing import Annotated, Any, ClassVar

from mtcd.core.arrays import Array
from mtcd.protocol.codec.arrays import AggregateField, ParametersField, RepresentationField
from mtcd.protocol.codec.extensions import Slots
from mtcd.protocol.codec.fields import Field, Flag, Real, Whole
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.reading import Chunks, Reader, Word, Words, WordsWriter
from mtcd.protocol.codec.stored import Class, stored

Write = Callable[[Any, Chunks], None]


class Payload:
    """The base class of everything that a message may carry."""

    __slots__ = ()

    depends_on_tokens: ClassVar[bool] = True
    """Whether it is void once the tokens of its iteration are regenerated. Uploads are not, nor are
    keys."""
    opens_round: ClassVar[bool] = False
    """Whether it opens a round with the aggregate of all parties, before any update."""

    @property
    def rounds_ended(self) -> int | None:
        """At a client, how many syncs, rounds or tours have ended when it arrives; None if it does
        not say, or if it is a token, which says more."""
        return None

    @property
    def floats(self) -> int:
        """The numbers that the ledger counts when this is sent; 0 for a signal."""
        return 0

    @property
    def wide_floats(self) -> int:
        """The count of those that travel in double precision under every transport."""
        return 0

    def check(self, bounds: Bounds) -> None:
        """Raise a ``WireError`` if fields that are valid by themselves are inconsistent."""


class Nested(Field):
    """An object of a dataclass whose attributes declare their fields."""

    def __init__(self, kind: type, prefix: str = "") -> None:
        # The names of nested attributes are those that errors give: ``instruction.tour``.
        self.kind = kind
        own = declared_fields(kind)
        self.parts = tuple(part.named(prefix + name) for name, part in own.items())
        self._writers = _writers(dict(zip(own, self.parts, strict=True)))

    def named(self, name: str) -> Nested:
        nested = Nested(self.kind, f"{name}.")
        nested.name = name
        return nested

    def write(self, value: Any, chunks: Chunks) -> None:
        for name, write in self._writers:
            write(value if name is None else getattr(value, name), chunks)

    def read(self, frame: Reader) -> Any:
        values: list[Any] = []
        # which fields are single words depends on the run, so it is found once for each
        steps = frame.bounds.steps.get(self)
        if steps is None:
            steps = self.steps(frame.bounds)
        for step in steps:
            if type(step) is Words:
                values += step.read(frame)
            else:
                values.append(step.read(frame))
        return self.kind(*values)

    def steps(self, bounds: Bounds) -> Sequence[Words | Field]:
        """The fields as they are read in this run: adjacent fields that are single words are read
        together."""
        steps: list[Words | Field] = []
        adjacent: list[Word] = []
        for part in self.parts:
            # Whether a field is a single word may depend on the run: a slot that is not agreed on
            # is one.
            word = part.word(bounds)
            if word is not None:
                adjacent.append(word)
                continue
            if adjacent:
                steps.append(Words(adjacent))
                adjacent = []
            steps.append(part)
        if adjacent:
            steps.append(Words(adjacent))
        bounds.steps[self] = steps
        return steps

    def most(self, bounds: Bounds) -> int:
        return sum(part.most(bounds) for part in self.parts)


def _writers(parts: Mapping[str, Field]) -> list[tuple[str | None, Write]]:
    """How the attributes are written, in order: each by its name, or several words of the object
    together."""
    found: list[tuple[str | None, Write]] = []
    for code, names in groupby(parts, lambda name: parts[name].code is not None):
        listed = list(names)
        if code and len(listed) > 1:
            words = WordsWriter([(name, parts[name].name, parts[name].code) for name in listed])
            found.append((None, words.write))
        else:
            found += [(name, parts[name].write) for name in listed]
    return found


class Schema:
    """The schema of a payload class: its number, its routes and its fields."""

    def __init__(self, number: int, kind: type[Payload], routes: str) -> None:
        self.number, self.kind = number, kind
        # The record is built when the class is declared, so that a mistake shows at import.
        self.routes = frozenset(routes.split())
        self.record = Nested(kind)
        self.has_check = kind.check is not Payload.check
        """Whether fields that are valid by themselves may be inconsistent."""
        self.has_slots = any(isinstance(part, Slots) for part in self.record.parts)


SCHEMAS: dict[type, Schema] = {}
"""By payload class."""
_NUMBERS: dict[int, type] = {}


def payload(number: int, routes: str) -> Callable[[Class], Class]:
    """Declare a payload class: see the top of this module."""

    def declare(kind: Class) -> Class:
        taken = _NUMBERS.get(number, kind)
        if taken is not kind:
            raise TypeError(
                f"{kind.__name__} has the number {number}, which is that of {taken.__name__}"
            )
        SCHEMAS[kind] = Schema(number, kind, routes)
        _NUMBERS[number] = kind
        return stored(kind)

    return declare


def declared_fields(kind: type) -> dict[str, Field]:
    """The fields of a dataclass, by attribute, as its annotations declare them."""
    if not is_dataclass(kind):
        raise TypeError(f"{kind.__name__} is not a dataclass")
    hints: dict[str, Any] = {}
    # From the base on, so that a subclass may declare another field for the same attribute.
    for base in reversed(kind.__mro__):
        hints |= get_annotations(base, eval_str=True)
    found = {}
    for attribute in fields(kind):
        metadata = getattr(hints[attribute.name], "__metadata__", ())
        field = next((one for one in metadata if isinstance(one, Field)), None)
        if field is None:
            raise TypeError(f"{kind.__name__}.{attribute.name} does not declare its field")
        found[attribute.name] = field
    return found


def last_client(bounds: Bounds) -> int:
    """K - 1, the number of the last client."""
    return bounds.clients - 1


def last_token(bounds: Bounds) -> int:
    """Gamma - 1, the number of the last token."""
    return bounds.tokens - 1


def last_iteration(bounds: Bounds) -> int:
    """The largest iteration number."""
    return bounds.iterations - 1


Count = Annotated[int, Whole()]
Iteration = Annotated[int, Whole(last_iteration)]
ClientNumber = Annotated[int, Whole(last_client)]
TokenIndex = Annotated[int, Whole(last_token)]
Bool = Annotated[bool, Flag()]
Number = Annotated[float, Real()]
Aggregate = Annotated[Array, AggregateField()]
"""An array, or a tensor, which the protocol handles without knowing its class."""
Representation = Annotated[Any, RepresentationField()]
Parameters = Annotated[Array, ParametersField()]
