"""Polynomials and parameters of another party, as SEAL takes them."""

from dataclasses import replace

import numpy as np
import pytest

from mtcd.core.errors import ConfigError, WireError
from mtcd.privacy.sealed.bfv.parameters import choose_parameters
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


def test_parameters_that_have_enough_budget_and_no_ciphers_are_refused() -> None:
    """A plaintext modulus that is also a prime of the coefficient modulus: SEAL cannot decrypt."""
    public_keys = pytest.importorskip("mtcd.privacy.sealed.bfv.public_keys")
    chosen = choose_parameters(30, [3], 4)
    public_keys.Context(chosen)
    # both are the largest prime of so many bits that suits the degree
    bits = (*chosen.modulus_bits[:-1], chosen.plain_modulus.bit_length())
    wrong = replace(chosen, modulus_bits=bits)
    wrong.check_budget()
    with pytest.raises(ConfigError, match=r"SEAL refuses the parameters: .*not coprime"):
        public_keys.Context(wrong)
