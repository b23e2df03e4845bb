"""Ciphertexts of the BFV scheme, and their bytes: what both sides of ``bfv.py`` exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
import tenseal.sealapi as seal

from mtcd.core.errors import WireError
from mtcd.privacy.sealed.bfv import cipher, seal_format
from mtcd.privacy.sealed.bfv.fixed_point import check_vector
from mtcd.privacy.sealed.bfv.layout import Integers
from mtcd.privacy.sealed.bfv.parameters import SENT_PRIMES
from mtcd.privacy.sealed.bfv.public_keys import PublicKeys
from mtcd.privacy.sealed.bfv.rounding import pack_rounded, rounded_size, unpack_rounded
from mtcd.privacy.sealed.bfv.seal_format import Polynomials
from mtcd.privacy.sealed.bfv.wire import PRODUCT, VECTOR, Frame


@dataclass(frozen=True)
class BfvVector:
    """The ciphertexts of a vector, with this number of primes; a fresh one has also its compact
    form for the wire."""

    ciphertexts: tuple[Any, ...]
    primes: int
    compact: tuple[Polynomials, ...] = ()


@dataclass(frozen=True)
class BfvProduct:
    """The ciphertext of a product."""

    ciphertext: Any
    columns: int
    primes: int


class Bfv:
    """What key and sealer have in common: they encode slots, and write and read ciphertexts."""

    def __init__(self, keys: PublicKeys) -> None:
        self._keys, self._context = keys, keys.context
        self.parameters = keys.context.parameters
        self._seal = keys.context.seal

    @property
    def fingerprint(self) -> str:
        return self._keys.mark.hex()

    def to_bytes(self, sealed: cipher.SealedVector | cipher.SealedProduct) -> bytes:
        assert isinstance(sealed, BfvVector | BfvProduct)
        if isinstance(sealed, BfvVector):
            kind, columns, ciphertexts = VECTOR, 0, sealed.ciphertexts
            compact = sealed.compact
        else:
            kind, columns, ciphertexts, compact = PRODUCT, sealed.columns, (sealed.ciphertext,), ()
        moduli = self._context.moduli[: sealed.primes]
        parts = compact or [seal_format.polynomials(one) for one in ciphertexts]
        if sealed.primes == SENT_PRIMES:
            dropped = self.parameters.dropped()
            content = b"".join(pack_rounded(part, moduli, dropped) for part in parts)
        else:
            content = b"".join(part.pack(moduli) for part in parts)
        frame = Frame(
            kind, sealed.primes, bool(compact), columns, len(ciphertexts), self._keys.mark, content
        )
        return frame.to_bytes()

    def _from_bytes(self, data: bytes, kind: int, primes: int) -> tuple[Frame, tuple[Any, ...]]:
        frame = Frame.from_bytes(data, kind)
        frame.expect_fingerprint(self._keys.mark)
        frame.expect("primes", frame.primes, primes)
        frame.expect(
            "ciphertexts",
            frame.ciphertexts,
            self.parameters.layout().ciphertexts if kind == VECTOR else 1,
        )
        parts = self._parts(frame)
        if not frame.seeded and not all(part.limbs[1].any() for part in parts):
            raise WireError("sealed", "is not encrypted: its second polynomial is zero")
        level = self._context.levels[primes]
        return frame, tuple(seal_format.ciphertext(self._seal, level, part) for part in parts)

    def _parts(self, frame: Frame) -> list[Polynomials]:
        """The polynomials of each ciphertext: rounded ones are for decryption alone, seeded ones
        for all the rest."""
        moduli, degree = self._context.moduli[: frame.primes], self.parameters.degree
        rounded, dropped = frame.primes == SENT_PRIMES, self.parameters.dropped()
        if rounded:
            frame.expect("seeded", frame.seeded, 0)
            size = rounded_size(moduli, degree, dropped)
        else:
            size = seal_format.packed_size(moduli, degree, frame.seeded)
        frame.expect_size(size * frame.ciphertexts)
        content = memoryview(frame.content)
        blocks = [content[start : start + size] for start in range(0, len(content), size)]
        if rounded:
            return [unpack_rounded(block, moduli, degree, dropped) for block in blocks]
        return [Polynomials.unpack(block, moduli, degree, frame.seeded) for block in blocks]

    def _vector(self, data: bytes, primes: int) -> BfvVector:
        frame, ciphertexts = self._from_bytes(data, VECTOR, primes)
        frame.expect("columns", frame.columns, 0)
        return BfvVector(ciphertexts, primes)

    def _plain(self, slots: Integers) -> Any:
        plain = seal.Plaintext()
        self._context.encoder.encode(slots.tolist(), plain)
        return plain

    def _spread(self, values: npt.ArrayLike) -> list[Any]:
        slots = self.parameters.layout().spread(check_vector(values, self.parameters))
        return [self._plain(each) for each in slots]
