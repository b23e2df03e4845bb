"""What parties tell each other, payload by payload: the fields, who may tell whom, and what must fit together.

A new payload is a ``Codec`` in this list, with a number that no other ever had. A class that gets a field without
getting one here is noticed when this module is imported.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from itertools import groupby
from typing import Any

from mtcd.engines.wire.expected import MOST, Expected
from mtcd.engines.wire.fields import (
    Aggregate,
    Clients,
    Field,
    Flag,
    Optional,
    Parameters,
    Past,
    Real,
    Representation,
    Row,
    Theta0,
    Usually,
    Whole,
)
from mtcd.engines.wire.reading import REAL, Chunks, Reader, Words
from mtcd.errors import WireError
from mtcd.methods.dcpa import Offer
from mtcd.methods.hosting import Done, Share
from mtcd.methods.split_parties import SplitToken, UpdateFusion
from mtcd.methods.svfl import Shared
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import MONITOR, SERVER, Part, Progress
from mtcd.protocol.token import NOTHING, Instruction, Tally, Token

Check = Callable[[Any, Expected], None]
UNTOLD = Instruction(0)


class Record(Field):
    """An object of this class, from its fields in the order in which it is made of them."""

    def __init__(self, name: str, kind: type, parts: Sequence[Field]) -> None:
        super().__init__(name)
        self.kind, self.parts = kind, tuple(parts)
        own = [f.name for f in fields(kind)] if is_dataclass(kind) else list(getattr(kind, "_fields", ()))
        self.named = tuple((part.name.rpartition(".")[2], part) for part in parts)
        if own != [name for name, _ in self.named]:
            raise TypeError(f"the fields of {kind.__name__} are not those that are sent")

    def write(self, value: Any, chunks: Chunks) -> None:
        for name, part in self.named:
            part.write(getattr(value, name), chunks)

    def read(self, frame: Reader) -> Any:
        values: list[Any] = []
        for step in self.steps(frame.expected):
            if type(step) is Words:
                values += step.read(frame)
            else:
                values.append(step.read(frame))
        return self.kind(*values)

    def steps(self, expected: Expected) -> Sequence[Words | Field]:
        """Its fields as they are read in this run: those that are one word each, together with those beside them."""
        steps: list[Words | Field] | None = expected.steps.get(self)
        if steps is None:
            words = [(part, part.word(expected)) for part in self.parts]
            steps = expected.steps[self] = []
            for single, group in groupby(words, lambda pair: pair[1] is not None):
                listed = list(group)
                steps += [Words([word for _, word in listed if word is not None])] if single else [p for p, _ in listed]
        return steps

    def most(self, expected: Expected) -> int:
        return sum(part.most(expected) for part in self.parts)


class Codec:
    """A payload: its number, its class, its ways (from, to) and its fields."""

    def __init__(self, number: int, kind: type, ways: str, parts: Sequence[Field], check: Check | None = None) -> None:
        self.number, self.kind, self.check = number, kind, check
        self.ways = frozenset(ways.split())
        self.record = Record(kind.__name__, kind, parts)

    def read(self, frame: Reader) -> Any:
        """The payload, every field checked."""
        payload = self.record.read(frame)
        if self.check is not None:
            self.check(payload, frame.expected)
        return payload


def way(sender: int, to: int) -> str:
    """Who tells whom, as ``Codec`` lists it: c is a client, s the server, m the monitor.

    >>> way(3, SERVER), way(4, 4)
    ('c>s', 'c>itself')
    """
    envelopes = {SERVER: "s", MONITOR: "m"}
    return f"{envelopes.get(sender, 'c')}>{'itself' if sender == to else envelopes.get(to, 'c')}"


def check_token(token: Token, expected: Expected) -> None:
    """What the fields of a token must be together."""
    told, tally = token.instruction, token.tally
    if told != UNTOLD and not expected.kept:
        raise WireError("instruction", "is none that this run gives")
    if math.copysign(1.0, told.stepsize) < 0:
        raise WireError("instruction.stepsize", "is negative")
    if len(tally.products) != (expected.tokens if expected.optimal else told.products):
        raise WireError("tally.products", "has another length than the plan says")
    if any(t >= token.t for t in token.past):
        raise WireError("past", "is of an iteration that is still to come")
    extra = told.floats
    if expected.optimal:
        extra = expected.tokens * (len(token.past) + 1) + 1 + len(tally.visited)
    elif expected.split is not None:
        extra = sum(math.prod(shape) for shape in expected.theta_0)
    if token.extra != extra:
        raise WireError("extra", "is not how much the token carries")


def is_empty(tally: Tally) -> bool:
    """Whether nothing was collected."""
    return not (len(tally.products) or tally.visited or any(REAL.pack(tally.slope)))  # -0.0 is something else


def last_client(expected: Expected) -> int:
    """K - 1."""
    return expected.clients - 1


def last_token(expected: Expected) -> int:
    """Gamma - 1."""
    return expected.tokens - 1


def last_iteration(expected: Expected) -> int:
    """Of all that count in t."""
    return expected.iterations - 1


INSTRUCTION = (
    Whole("instruction.tour", lambda e: MOST - 1 if e.kept else 0),
    Row("instruction.weights", "kept", lambda found: tuple(found.tolist())),
    Whole("instruction.keep", "kept"),
    Flag("instruction.starts"),
    Flag("instruction.trial"),
    Real("instruction.stepsize"),
    Flag("instruction.survey"),
)
TALLY = (Row("tally.products", "most_products"), Real("tally.slope"), Clients("tally.visited", set))
TOKEN = (
    Whole("index", last_token),
    Whole("t", last_iteration),
    Whole("hop", "hops", low=lambda e: -e.first_pass),
    Aggregate("aggregate"),
    Real("penalty"),
    Real("sync_penalty"),
    Optional(Aggregate("sync_change"), lambda e: e.carries_change),
    Whole("previous", last_client, low=-1),
    Usually(Record("instruction", Instruction, INSTRUCTION), lambda: UNTOLD, UNTOLD.__eq__),
    Past("past"),
    Usually(Record("tally", Tally, TALLY), lambda: Tally(NOTHING), is_empty),
    Whole("extra", "extra"),
)
HOPS = "c>c c>itself c>s s>c c>m"

CODECS = (
    Codec(1, type(None), "c>itself", ()),
    Codec(2, Token, HOPS, TOKEN, check_token),
    Codec(3, SplitToken, HOPS, (*TOKEN, Theta0("theta_0"), Whole("heading", last_client, low=-1)), check_token),
    Codec(4, Done, "c>s", (Whole("index", last_token), Clients("visited", frozenset))),
    Codec(5, Share, "s>c", (Whole("t", last_iteration),)),
    Codec(6, Fresh, "c>s", (Representation("representation"), Real("penalty"))),
    Codec(7, Shared, "s>c", (Whole("round", last_iteration), Aggregate("aggregate"))),
    Codec(8, UpdateFusion, "s>itself", (Whole("t", last_iteration),)),
    Codec(9, Offer, "c>c c>itself", (Whole("iteration", last_iteration), Aggregate("vector"))),
    Codec(10, Part, "c>m", (Whole("iteration", last_iteration), Parameters("parameters"))),
    Codec(
        11,
        Progress,
        "s>m c>m",
        (
            Whole("hop"),
            Whole("t", last_iteration),
            Optional(Aggregate("aggregate"), lambda e: e.split is None),
            Real("penalty"),
            Optional(Theta0("parameters"), lambda e: e.split is not None and not e.server),
        ),
    ),
)
BY_CLASS = {codec.kind: codec for codec in CODECS}
BY_NUMBER = {codec.number: codec for codec in CODECS}


def include(codecs: Sequence[Codec]) -> None:
    """Payloads of those who carry messages, beside those of the methods."""
    BY_CLASS.update({codec.kind: codec for codec in codecs})
    BY_NUMBER.update({codec.number: codec for codec in codecs})


@lru_cache(maxsize=4096)
def limit(codec: Codec, expected: Expected) -> int:
    """The most bytes that such a payload can have in this run."""
    return codec.record.most(expected)
