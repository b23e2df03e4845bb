"""What may become of frames that were tampered with."""

import re
from typing import Any

import numpy as np

from mtcd.core.errors import WireError
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token

BITS = np.array([np.nan, np.inf, -np.inf, 1e308, -0.0, 5e-324]).view(np.int64).tolist()


WORDS = [0, 1, -1, 2, 3, 7, 255, 2**31, 2**48, 2**62, 2**63 - 1, -(2**63), *BITS]


def tells_numbers(error: WireError) -> bool:
    return re.search(r"\d", str(error).replace("theta_0", "")) is not None


def check(message: Message, bounds: Bounds) -> None:
    """Sound by other means than those of the code."""
    K = bounds.clients
    assert message.sender in range(SERVER, K)
    assert message.to in range(MONITOR, K)
    assert 0 <= message.floats < 10_000
    told = message.payload
    for name in ("t", "round", "iteration"):
        assert 0 <= getattr(told, name, 0) < 2**48
    # at most, whatever the network
    first_pass = 2 * K if bounds.tensors is not None and not bounds.server else 0
    assert -first_pass <= getattr(told, "hop", 0) < 2**48
    assert all(k in range(K) for k in getattr(told, "visited", ()))
    if isinstance(told, Token):
        assert told.index in range(bounds.tokens)
        assert told.previous in range(-1, K)
        assert told.slots.keys() <= bounds.slots
        tally, past = told.slots.get("tally"), told.slots.get("past", {})
        assert tally is None or tally.visited <= set(range(K))
        assert all(0 <= t < told.t and len(w) == bounds.tokens for t, w in past.items())
    for array in arrays(told):
        assert np.isfinite(np.asarray(array)).all()


def arrays(value: Any) -> list[Any]:
    """All numbers in a payload that are not whole."""
    if isinstance(value, float) or hasattr(value, "reshape"):
        return [value]
    if isinstance(value, dict):
        return [one for part in value.values() for one in arrays(part)]
    if isinstance(value, list | tuple):
        return [one for part in value for one in arrays(part)]
    names = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    return [one for name in names for one in arrays(getattr(value, name))]
