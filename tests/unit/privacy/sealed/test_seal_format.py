"""Polynomials of another party as bytes."""

import numpy as np
import pytest

from mtcd.core.errors import WireError
from mtcd.privacy.sealed.bfv.seal_format import Polynomials

MODULUS, DEGREE = 257, 8


@pytest.mark.parametrize("kind", [0, 3, 255])
def test_a_seed_of_a_kind_that_no_generator_has_is_refused(kind: int) -> None:
    """SEAL would expand it to other numbers than the sender's, or not at all."""
    sent = Polynomials(np.arange(DEGREE, dtype=np.uint64).reshape(1, 1, DEGREE), b"\1" + bytes(64))
    packed = sent.pack([MODULUS])
    found = Polynomials.unpack(memoryview(packed), [MODULUS], DEGREE, 1, True)
    assert (found.limbs == sent.limbs).all()
    wrong = packed[:-65] + bytes([kind]) + bytes(64)
    with pytest.raises(WireError, match="has a seed of an unknown kind"):
        Polynomials.unpack(memoryview(wrong), [MODULUS], DEGREE, 1, True)
