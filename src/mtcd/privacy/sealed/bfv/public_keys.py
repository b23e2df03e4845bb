"""The context of SEAL for parameters, and the public keys of a run with their bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import tenseal.sealapi as seal

from mtcd.core.errors import ConfigError, WireError
from mtcd.privacy.sealed.bfv import seal_format
from mtcd.privacy.sealed.bfv.keys import join, parse_parameters, split
from mtcd.privacy.sealed.bfv.parameters import Parameters
from mtcd.privacy.sealed.bfv.seal_format import Limbs, Polynomials
from mtcd.privacy.sealed.bfv.wire import PUBLIC, CipherFrame


class Context:
    """SEAL's context for these parameters, which are checked for security and noise budget."""

    def __init__(self, parameters: Parameters) -> None:
        # Before SEAL: its own refusals say nothing of a training.
        parameters.check_budget()
        self.parameters = parameters
        chosen = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
        chosen.set_poly_modulus_degree(parameters.degree)
        primes = seal.CoeffModulus.Create(parameters.degree, list(parameters.modulus_bits))
        chosen.set_coeff_modulus(primes)
        chosen.set_plain_modulus(parameters.plain_modulus)
        # SEAL checks the security level itself, so that a wrong table here cannot lower it.
        self.seal = seal.SEALContext(chosen, True, seal.SEC_LEVEL_TYPE.TC128)
        if not self.seal.parameters_set():
            raise ConfigError(
                f"SEAL refuses the parameters: {self.seal.parameters_error_message()}."
            )
        self.moduli = [prime.value() for prime in primes]
        """All primes; those of ciphertexts are without the last one."""
        self.evaluator, self.encoder = seal.Evaluator(self.seal), seal.BatchEncoder(self.seal)

    @property
    def primes(self) -> int:
        """Those of a ciphertext before any modulus switching."""
        return len(self.moduli) - 1

    @cached_property
    def levels(self) -> dict[int, tuple[int, ...]]:
        """SEAL's id of the modulus chain at each number of primes."""
        found, data = {}, self.seal.first_context_data()
        # SEAL drops one prime at each switch, the last one first.
        for primes in range(self.primes, 0, -1):
            found[primes] = tuple(data.parms_id())
            data = data.next_context_data()
        return found

    @cached_property
    def agreed(self) -> bytes:
        """The parameters, as they travel with the public keys."""
        return json.dumps(dataclasses.asdict(self.parameters)).encode()

    def uniform(self, seed: bytes) -> Limbs:
        """The uniform polynomial of the public key with this seed."""
        return uniform_polynomial(seed, self.agreed, self.moduli, self.parameters.degree)

    def elements(self) -> list[int]:
        """The Galois elements of the rotations that products use, sorted: 3^shift modulo 2n for a
        shift to the left."""
        parameters = self.parameters
        diagonals = parameters.layout(parameters.most_columns).diagonals
        shifts = []
        # Keys for those shifts only that products use: each takes megabytes.
        if min(parameters.stride, diagonals) > 1:
            shifts.append(1)
        if diagonals > parameters.stride:
            shifts.append(parameters.stride)
        # 3 comes first: a stride is shorter than a row, so that its power is neither 1 nor 2.
        return [pow(3, shift, 2 * parameters.degree) for shift in shifts]


@dataclass(frozen=True)
class EncryptionKeys:
    """The public key and the rotation keys: of each, one polynomial, and the seed of the other.

    Parameters
    ----------
    context : Context
        Of the parameters of the run.
    first : array of uint64
        The first polynomial of the public key, by prime: -(a s + e).
    seed : bytes
        From which every party draws a, the second one: see ``uniform_polynomial``.
    rotations : list of Polynomials
        The parts of the rotation keys, whose second polynomials SEAL draws from seeds.
    """

    context: Context
    first: Limbs
    seed: bytes
    rotations: list[Polynomials]

    @classmethod
    def generate(cls, context: Context, generator: Any) -> EncryptionKeys:
        """Keys of the secret key that a generator of SEAL has made."""
        made = seal.PublicKey()
        generator.create_public_key(made)
        # Drawn for this alone, and not by SEAL's generator, whose numbers follow from one another.
        seed = os.urandom(SEED)
        keys = cls(context, _first_for(context, made, generator.secret_key(), seed), seed, [])
        if elements := context.elements():
            keys.rotations.extend(seal_format.key_parts(generator.create_galois_keys(elements)))
        return keys

    @cached_property
    def _content(self) -> bytes:
        moduli = self.context.moduli
        first = Polynomials(self.first[None]).pack(moduli)
        rotations = [part.pack(moduli) for part in self.rotations]
        # Hashed as it travels: parties with one mark have the same keys and parameters.
        return join([self.context.agreed, first, self.seed, *rotations])

    @cached_property
    def mark(self) -> bytes:
        """The fingerprint: every sealed value carries it."""
        return hashlib.sha256(self._content).digest()[:16]

    def to_bytes(self) -> bytes:
        """The keys as they travel to all parties."""
        return CipherFrame(
            PUBLIC, len(self.context.moduli), False, 0, 0, self.mark, self._content
        ).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> EncryptionKeys:
        """Keys from another party: all numbers are checked before SEAL sees them."""
        frame = CipherFrame.from_bytes(data, PUBLIC)
        agreed, *packed = split(frame.content)
        context = Context(parse_parameters(agreed))
        # Counted before anything is unpacked: sizes follow from the parameters, not from the
        # sender.
        if len(packed) != 2 + len(context.elements()) * context.primes:
            raise WireError(
                "sealed.keys", f"are {len(packed)} parts, not as many as the parameters need"
            )

        moduli, degree = context.moduli, context.parameters.degree
        whole = seal_format.packed_size(moduli, degree, polynomials=1)
        sizes = [whole, SEED, *[whole + seal_format.SEED] * (len(packed) - 2)]
        if [len(part) for part in packed] != sizes:
            raise WireError("sealed.keys", "do not have the size that the parameters need")

        [first] = Polynomials.unpack(memoryview(packed[0]), moduli, degree, 1, False).limbs
        rotations = [
            Polynomials.unpack(memoryview(part), moduli, degree, 1, True) for part in packed[2:]
        ]
        keys = cls(context, first, packed[1], rotations)
        frame.expect_fingerprint(keys.mark)
        return keys

    @cached_property
    def public_key(self) -> Any:
        """The key with which anybody encrypts, as SEAL has it."""
        # Computed here from the seed: the holder cannot have chosen it (see
        # `uniform_polynomial.py`).
        limbs = np.array([self.first, self.context.uniform(self.seed)])
        return seal_format.public_key(self.context.seal, Polynomials(limbs))

    @cached_property
    def galois_keys(self) -> Any:
        """The rotation keys, as SEAL has them."""
        return seal_format.galois_keys(self.context.seal, self.context.elements(), self.rotations)


def _first_for(context: Context, made: Any, secret: Any, seed: bytes) -> Limbs:
    """The first polynomial of a public key whose second one is drawn from a seed.

    SEAL has made -(b s + e) and b, for b of its own. With (b - a) s added, the first is
    -(a s + e). Polynomials are in NTT form, where products are those of the numbers.
    """
    first, own = seal_format.polynomials(made).limbs
    wanted, key = context.uniform(seed), seal_format.secret_limbs(secret, len(context.moduli))
    rows = []
    for number, modulus in enumerate(context.moduli):
        # Python's integers: products of two numbers of 56 bits do not fit 64.
        difference = own[number].astype(object) - wanted[number].astype(object)
        product = difference * key[number].astype(object)
        rows.append((first[number].astype(object) + product) % modulus)
    return np.array(rows).astype(np.uint64)


# The uniform polynomial of a public key, from a seed: every party computes it by itself.
#
# What hides a party's table from the key holder is that polynomial (see `BfvSealer.mask`). A
# holder that could choose it would choose one with a trapdoor, such as a quotient of two short
# polynomials, which looks as uniform as any other. It chooses the seed only, and the polynomial
# is a hash of it: there is no way from a trapdoor back to a seed. The seed is drawn for this
# purpose alone; the secret key and the errors come from another generator.
#
# Only this polynomial matters. With uniform `a`, a request is `c + a u + e` for `c` that may
# depend in any way on the table, on `a` and on all else that the holder has made: tokens,
# rotation keys, the other polynomial of the public key. It is pseudorandom for every `c`.


SEED = 32
"""Bytes of a seed."""
PURPOSE = b"mtcd, sealed tours, uniform polynomial of the public key"
"""Hashed with the seed: the same seed gives something else wherever else it may be used."""
SPARE = 64
"""Words that are drawn besides, since some are rejected."""


def uniform_polynomial(
    seed: bytes, agreed: bytes, moduli: list[int], degree: int
) -> npt.NDArray[np.uint64]:
    """Coefficients that are uniform modulo each prime: a row for each.

    Parameters
    ----------
    seed : bytes
        Of the key holder.
    agreed : bytes
        The parameters of the run: with others the same seed gives another polynomial.
    moduli : list of int
        The primes, below 2^63.
    degree : int
        The number of coefficients.

    Examples
    --------
    >>> uniform_polynomial(bytes(32), b"", [97], 4)
    array([[51, 23, 94, 25]], dtype=uint64)
    """
    rows = []
    for number, modulus in enumerate(moduli):
        stated = (PURPOSE, agreed, number.to_bytes(4, "little"), seed)
        # lengths in front: no two lists of parts have the same bytes
        parts = b"".join(len(part).to_bytes(8, "little") + part for part in stated)
        rows.append(_below(modulus, degree, parts))

    return np.array(rows)


def _below(modulus: int, count: int, data: bytes) -> npt.NDArray[np.uint64]:
    """The first ``count`` words of a hash, cut to the bits of a prime, that are below it."""
    # An extendable hash: more words are the same words and further ones.
    hashed = hashlib.shake_256(data)
    shift = np.uint64(64 - modulus.bit_length())
    drawn = count + SPARE
    while True:
        words = np.frombuffer(hashed.digest(8 * drawn), "<u8") >> shift
        found = words[words < modulus]
        if len(found) >= count:
            return found[:count].astype(np.uint64)
        drawn *= 2  # a longer output begins with the shorter one
