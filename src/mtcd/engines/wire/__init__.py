"""Messages as bytes, for engines whose parties are in different processes. No pickle; every field is checked."""

from mtcd.engines.wire.expected import Expected, SplitShapes, expect
from mtcd.engines.wire.frame import Header, decode, encode, largest
from mtcd.errors import WireError

__all__ = ["Expected", "Header", "SplitShapes", "WireError", "decode", "encode", "expect", "largest"]
