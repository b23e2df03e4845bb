"""The weights of earlier syncs, as tokens and the end of a training carry them: to clients that have
not been visited since."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.protocol.codec.extensions import Extension, declare
from mtcd.protocol.codec.fields import Field, limit_of
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.codec.reading import Chunks, Reader, put_numbers, put_wholes

NAME = "past"
most_syncs = limit_of(NAME)


class WeightsByIteration(Field):
    """The weights of all tokens in earlier syncs, by iteration."""

    def write(self, value: Mapping[int, Any], chunks: Chunks) -> None:
        put_wholes(value, chunks)
        # By iteration: the same weights are the same bytes.
        for t in sorted(value):
            put_numbers(self.name, value[t], chunks)

    def read(self, frame: Reader) -> dict[int, Any]:
        bounds = frame.bounds
        count = frame.whole(self.name, 0, most_syncs(bounds) + 1)
        times = frame.wholes(self.name, count, bounds.iterations)
        return {t: frame.numbers(self.name, bounds.tokens) for t in times}

    def most(self, bounds: Bounds) -> int:
        return 8 + 8 * most_syncs(bounds) * (1 + bounds.tokens)


def _check(payload: Any, past: Mapping[int, Array], bounds: Bounds) -> None:
    # Weights of a sync that has not taken place cannot be known.
    if any(t >= payload.t for t in past):
        raise WireError(NAME, "is of an iteration that is still to come")


def _floats(past: Mapping[int, Array]) -> int:
    return sum(weights.size for weights in past.values())


def _former(attributes: Mapping[str, Any]) -> Mapping[int, Array] | None:
    return attributes["past"] or None


PAST = declare(
    Extension(4, NAME, WeightsByIteration(), _floats, always=False, check=_check, former=_former)
)
