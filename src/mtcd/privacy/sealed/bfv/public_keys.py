"""The context of SEAL for parameters, and the public keys of a run with their bytes."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import tenseal.sealapi as seal

from mtcd.core.errors import ConfigError, WireError
from mtcd.privacy.sealed.bfv import seal_format
from mtcd.privacy.sealed.bfv.keys import join, parse_parameters, split
from mtcd.privacy.sealed.bfv.parameters import Parameters
from mtcd.privacy.sealed.bfv.seal_format import Polynomials
from mtcd.privacy.sealed.bfv.wire import PUBLIC, Frame


class Context:
    """SEAL's context for these parameters, which are checked for security and noise budget."""

    def __init__(self, parameters: Parameters) -> None:
        parameters.check_budget()
        self.parameters = parameters
        chosen = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
        chosen.set_poly_modulus_degree(parameters.degree)
        primes = seal.CoeffModulus.Create(parameters.degree, list(parameters.modulus_bits))
        chosen.set_coeff_modulus(primes)
        chosen.set_plain_modulus(parameters.plain_modulus)
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
        for primes in range(self.primes, 0, -1):
            found[primes] = tuple(data.parms_id())
            data = data.next_context_data()
        return found

    def elements(self) -> list[int]:
        """The Galois elements of the rotations that products use, sorted: 3^shift modulo 2n for a
        shift to the left."""
        parameters = self.parameters
        diagonals = parameters.layout(parameters.most_columns).diagonals
        shifts = {1} if min(parameters.stride, diagonals) > 1 else set()
        if diagonals > parameters.stride:
            shifts.add(parameters.stride)
        return sorted(pow(3, shift, 2 * parameters.degree) for shift in shifts)


@dataclass(frozen=True)
class PublicKeys:
    """The public key and the rotation keys; the random half of a rotation key is the seed that it
    is drawn from."""

    context: Context
    parts: list[Polynomials]

    @classmethod
    def generate(cls, context: Context, generator: Any) -> PublicKeys:
        public_key = seal.PublicKey()
        generator.create_public_key(public_key)
        parts = [seal_format.polynomials(public_key)]
        if elements := context.elements():
            parts += seal_format.key_parts(generator.create_galois_keys(elements))
        return cls(context, parts)

    @cached_property
    def _content(self) -> bytes:
        agreed = json.dumps(dataclasses.asdict(self.context.parameters)).encode()
        return join([agreed, *(part.pack(self.context.moduli) for part in self.parts)])

    @cached_property
    def mark(self) -> bytes:
        """The fingerprint: every sealed value carries it."""
        return hashlib.sha256(self._content).digest()[:16]

    def to_bytes(self) -> bytes:
        return Frame(
            PUBLIC, len(self.context.moduli), False, 0, 0, self.mark, self._content
        ).to_bytes()

    @classmethod
    def from_bytes(cls, data: bytes) -> PublicKeys:
        """Keys from another party: all numbers are checked before SEAL sees them."""
        frame = Frame.from_bytes(data, PUBLIC)
        agreed, *packed = split(frame.content)
        context = Context(parse_parameters(agreed))
        if len(packed) != 1 + len(context.elements()) * context.primes:
            raise WireError(
                "sealed.keys", f"are {len(packed)} parts, not as many as the parameters need"
            )
        degree = context.parameters.degree
        parts = []
        for number, part in enumerate(packed):
            seeded = number > 0
            if len(part) != seal_format.packed_size(context.moduli, degree, seeded):
                raise WireError("sealed.keys", "do not have the size that the parameters need")
            parts.append(Polynomials.unpack(memoryview(part), context.moduli, degree, seeded))
        keys = cls(context, parts)
        frame.expect_fingerprint(keys.mark)
        return keys

    @cached_property
    def public_key(self) -> Any:
        return seal_format.public_key(self.context.seal, self.parts[0])

    @cached_property
    def galois_keys(self) -> Any:
        return seal_format.galois_keys(self.context.seal, self.context.elements(), self.parts[1:])
