"""Messages as bytes, for engines whose parties are in different processes. No pickle; every field is checked."""

from mtcd.engines.wire.expected import Expected, SplitShapes, expect
from mtcd.engines.wire.frame import Envelope, decode, encode, largest
from mtcd.errors import WireError

__all__ = ["Envelope", "Expected", "SplitShapes", "WireError", "decode", "encode", "expect", "largest"]
