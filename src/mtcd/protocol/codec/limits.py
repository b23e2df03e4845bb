"""The bounds of the messages of a run, which every party computes from the settings before any
message arrives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mtcd.core.errors import ConfigError

Shape = tuple[int, ...]

LONGEST_RUN_ID = 64
MOST = 2**48
"""An upper bound of all counters: iterations, hops, tours, terms, sequence numbers."""
F8, F4 = np.dtype("<f8"), np.dtype("<f4")


@dataclass(frozen=True, eq=False)
class Bounds:
    """The bounds of a run. If ``sender`` or ``receiver`` is set, only messages from, or to, that
    party are valid.

    An engine that authenticates its links keeps one instance per link, made by
    ``dataclasses.replace``, so that no party can send messages in another party's name.
    """

    run: str
    clients: int
    kinds: frozenset[type]
    """The payload classes that the method sends."""
    shape: Shape
    """The shape of an aggregate."""
    server: bool = True
    tokens: int = 0
    hops: int = MOST - 1
    """The largest hop of a token in an iteration. Tokens that go up to a server roam on while it is
    unreachable."""
    first_pass: int = 0
    """The hops of a lone token before training starts."""
    iterations: int = MOST
    """Every iteration number t is smaller than this."""
    slots: frozenset[str] = frozenset()
    """The slots that tokens and ends may have, by name: see ``extensions.py``."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """The limits of the fields of features, by their own names: this module knows none of them."""
    parameters: int = 0
    """The most parameters of a client, where clients report them to the monitor."""
    tensors: TensorShapes | None = None
    """Of a model whose arrays are tensors; None: arrays of NumPy in double precision."""
    numbers: np.dtype[Any] | None = None
    """The type of the numbers in aggregates on the wire, if it is not that of the model."""
    device: str = "cpu"
    """The device on which received tensors are placed."""
    sender: int | None = None
    receiver: int | None = None

    def __post_init__(self) -> None:
        run = self.run
        # Printable, as errors and logs show it; short, as it is part of every frame.
        if not (run.isascii() and run.isprintable() and 1 <= len(run) <= LONGEST_RUN_ID):
            raise ConfigError(f"The id of a run has 1 to {LONGEST_RUN_ID} plain characters.")

    @cached_property
    def steps(self) -> dict[Any, Any]:
        """A cache of how each record is read in this run."""
        return {}

    @cached_property
    def run_bytes(self) -> bytes:
        """The id of the run in frames."""
        return self.run.encode("ascii")

    @cached_property
    def run_words(self) -> bytes:
        """The same, filled up with zeros to whole words."""
        # A frame is a sequence of words, so that numbers can be used where they lie.
        return self.run_bytes + bytes(-len(self.run_bytes) % 8)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers in aggregates and representations on the wire."""
        if self.numbers is not None:
            return self.numbers
        # Tensors are of single precision, in which they travel as they are.
        if self.tensors is None:
            return F8
        return F4

    @cached_property
    def shared(self) -> tuple[Shape, ...]:
        """The shapes of the parameters that all parties share, beside those of each client."""
        if self.tensors is None:
            return ()
        return self.tensors.shared

    def with_slots(self, *names: str, **limits: int) -> Bounds:
        """The same bounds for messages with these slots too, and with these limits of their
        fields."""
        return replace(self, slots=self.slots | set(names), limits={**self.limits, **limits})

    def representation(self, client: int) -> Shape:
        """The shape of h_k on a batch."""
        if self.tensors is None:
            return self.shape
        return self.shape[0], self.tensors.widths[client]


@dataclass(frozen=True)
class TensorShapes:
    """The shapes of tensors that differ from an aggregate: numbers per sample in each client's
    representation, and parameters that all parties share."""

    widths: tuple[int, ...]
    shared: tuple[Shape, ...]

    @staticmethod
    def of(widths: Sequence[int], shared: Sequence[Any]) -> TensorShapes:
        """From the widths, and the shared parameters as tensors."""
        return TensorShapes(tuple(widths), tuple(tuple(value.shape) for value in shared))
