"""The usual types of attributes of payloads, each with its field."""

from __future__ import annotations

from typing import Annotated, Any

from mtcd.core.arrays import Array
from mtcd.protocol.codec.arrays import AggregateField, ParametersField, RepresentationField
from mtcd.protocol.codec.fields import Flag, Real, Whole
from mtcd.protocol.codec.limits import Bounds


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
