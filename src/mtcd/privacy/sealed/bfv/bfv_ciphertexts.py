"""Ciphertexts of the BFV scheme, and their bytes: what both sides of ``bfv.py`` exchange."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tenseal.sealapi as seal

from mtcd.core.errors import WireError
from mtcd.privacy.sealed.bfv import cipher, seal_format
from mtcd.privacy.sealed.bfv.fixed_point import check_vector
from mtcd.privacy.sealed.bfv.layout import Integers
from mtcd.privacy.sealed.bfv.parameters import SENT_PRIMES
from mtcd.privacy.sealed.bfv.public_keys import EncryptionKeys
from mtcd.privacy.sealed.bfv.seal_format import Limbs, Polynomials, width
from mtcd.privacy.sealed.bfv.wire import PRODUCT, VECTOR, CipherFrame


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


@dataclass(frozen=True)
class BfvMasked:
    """The second polynomial of a product, for the key holder; the first one stays at the client."""

    sent: Polynomials
    columns: int


class Bfv:
    """What key and sealer have in common: they encode slots, and write and read ciphertexts."""

    def __init__(self, keys: EncryptionKeys) -> None:
        self._keys, self._context = keys, keys.context
        self.parameters = keys.context.parameters
        self._seal = keys.context.seal

    @property
    def fingerprint(self) -> str:
        return self._keys.mark.hex()

    def to_bytes(self, sealed: cipher.SealedVector | cipher.MaskedProduct) -> bytes:
        if isinstance(sealed, BfvMasked):
            return self._masked_to_bytes(sealed)

        assert isinstance(sealed, BfvVector)
        moduli = self._context.moduli[: sealed.primes]
        parts = sealed.compact or [seal_format.polynomials(one) for one in sealed.ciphertexts]
        if sealed.primes == SENT_PRIMES:
            dropped = self.parameters.dropped()
            content = b"".join(pack_rounded(part, moduli, dropped) for part in parts)
        else:
            content = b"".join(part.pack(moduli) for part in parts)
        seeded, count = bool(sealed.compact), len(sealed.ciphertexts)
        return CipherFrame(
            VECTOR, sealed.primes, seeded, 0, count, self._keys.mark, content
        ).to_bytes()

    def _masked_to_bytes(self, masked: BfvMasked) -> bytes:
        """One polynomial, without the bytes that decryption can spare."""
        moduli, spared = self._context.moduli[:SENT_PRIMES], (self.parameters.spared(),)
        content = pack_rounded(masked.sent, moduli, spared)
        return CipherFrame(
            PRODUCT, SENT_PRIMES, False, masked.columns, 1, self._keys.mark, content
        ).to_bytes()

    def _from_bytes(
        self, data: bytes, kind: int, primes: int
    ) -> tuple[CipherFrame, list[Polynomials]]:
        frame = CipherFrame.from_bytes(data, kind)
        frame.expect_fingerprint(self._keys.mark)
        frame.expect("primes", frame.primes, primes)
        # As many as the layout of this run has, and not as many as the frame says.
        ciphertexts = 1
        if kind == VECTOR:
            ciphertexts = self.parameters.layout().ciphertexts
        frame.expect("ciphertexts", frame.ciphertexts, ciphertexts)
        return frame, self._parts(frame)

    def _parts(self, frame: CipherFrame) -> list[Polynomials]:
        """The polynomials of each ciphertext, from content whose size is checked first."""
        if frame.primes == SENT_PRIMES:
            return self._rounded_parts(frame)

        moduli, degree = self._context.moduli[: frame.primes], self.parameters.degree
        count, seed = 2, 0
        if frame.seeded:
            count, seed = 1, seal_format.SEED
        size = seal_format.packed_size(moduli, degree, count) + seed
        blocks = _blocks(frame, size)
        return [Polynomials.unpack(block, moduli, degree, count, frame.seeded) for block in blocks]

    def _rounded_parts(self, frame: CipherFrame) -> list[Polynomials]:
        """Those of ciphertexts for decryption alone: whole ones, or halves of products."""
        frame.expect("seeded", frame.seeded, 0)
        moduli, degree = self._context.moduli[: frame.primes], self.parameters.degree
        dropped: tuple[int, ...] = (self.parameters.spared(),)
        if frame.kind == VECTOR:
            dropped = self.parameters.dropped()
        blocks = _blocks(frame, rounded_size(moduli, degree, dropped))
        return [unpack_rounded(block, moduli, degree, dropped) for block in blocks]

    def _vector(self, data: bytes, primes: int) -> BfvVector:
        frame, parts = self._from_bytes(data, VECTOR, primes)
        frame.expect("columns", frame.columns, 0)
        # decryption would show the first polynomial, the message, to everybody
        if not frame.seeded and not all(part.limbs[1].any() for part in parts):
            raise WireError("sealed", "is not encrypted: its second polynomial is zero")

        level = self._context.levels[primes]
        ciphertexts = tuple(seal_format.ciphertext(self._seal, level, part) for part in parts)
        return BfvVector(ciphertexts, primes)

    def _rounded(self, decryptor: Any, limbs: Limbs) -> Integers:
        """The slots to which a decryptor rounds two polynomials."""
        level = self._context.levels[SENT_PRIMES]
        part = seal_format.ciphertext(self._seal, level, Polynomials(limbs))
        return self._decrypted(decryptor, part)

    def _decrypted(self, decryptor: Any, part: Any) -> Integers:
        plain = seal.Plaintext()
        decryptor.decrypt(part, plain)
        return np.array(self._context.encoder.decode_int64(plain), np.int64)

    def _plain(self, slots: Integers) -> Any:
        plain = seal.Plaintext()
        self._context.encoder.encode(slots.tolist(), plain)
        return plain

    def _spread(self, values: npt.ArrayLike) -> list[Any]:
        slots = self.parameters.layout().spread(check_vector(values, self.parameters))
        return [self._plain(each) for each in slots]


def _blocks(frame: CipherFrame, size: int) -> list[memoryview]:
    """The content of each ciphertext, of so many bytes."""
    # Before anything is read: a frame of another size would be cut at the wrong places.
    frame.expect_size(size * frame.ciphertexts)
    content = memoryview(frame.content)
    return [content[start : start + size] for start in range(0, len(content), size)]


# Bytes of polynomials that are only decrypted: the lowest bits of their coefficients change
# nothing that decryption finds.
#
# With two primes p and q, a coefficient is a + p b, where a < p and b < q. Of a, the lowest bytes
# are not sent: the reader takes the middle of what they could have been. The error of the first
# polynomial adds to the noise as it is, that of the second times the secret key, so that more
# bytes of the first can be spared (`Parameters.dropped`, and `Parameters.spared` of a product).


Words = npt.NDArray[np.uint64]


def rounded_size(moduli: list[int], degree: int, dropped: tuple[int, ...]) -> int:
    """Bytes of what ``pack_rounded`` writes."""
    whole = width(moduli[0]) + width(moduli[1])
    return degree * (len(dropped) * whole - sum(dropped))


def pack_rounded(parts: Polynomials, moduli: list[int], dropped: tuple[int, ...]) -> bytes:
    """All polynomials, without so many of the lowest bytes of each."""
    first, second = moduli
    # The Chinese remainder: a + p b with b = (other - a) / p modulo q.
    inverse = pow(first, -1, second)
    sent = []
    for (low, other), bytes_dropped in zip(parts.limbs, dropped, strict=True):
        difference = (other + np.uint64(second) - low % np.uint64(second)) % np.uint64(second)
        sent.append(_bytes(low)[:, bytes_dropped : width(first)].tobytes())
        sent.append(_bytes(_times(difference, inverse, second))[:, : width(second)].tobytes())
    return b"".join(sent)


def unpack_rounded(
    data: memoryview, moduli: list[int], degree: int, dropped: tuple[int, ...]
) -> Polynomials:
    """The inverse, but for the rounding, from ``rounded_size`` bytes of another party."""
    first, second = moduli
    limbs, start = np.empty((len(dropped), 2, degree), np.uint64), 0
    for polynomial, bytes_dropped in enumerate(dropped):
        low, start = _words(data, start, degree, width(first) - bytes_dropped)
        high, start = _words(data, start, degree, width(second))
        # Shifted back: the missing bytes are the lowest.
        low = low << np.uint64(8 * bytes_dropped)
        if np.any(low >= first) or np.any(high >= second):
            raise WireError("sealed", "contains coefficients beyond the modulus")
        if bytes_dropped:
            # the middle of what the unsent bytes could be
            low = low + np.uint64(128 << 8 * (bytes_dropped - 1))
        limbs[polynomial, 0] = low % np.uint64(first)
        limbs[polynomial, 1] = (_times(high, first, second) + low % np.uint64(second)) % np.uint64(
            second
        )
    return Polynomials(limbs)


def _bytes(words: Words) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(words, "<u8").view(np.uint8).reshape(-1, 8)


def _words(data: memoryview, start: int, count: int, size: int) -> tuple[Words, int]:
    """Numbers of ``size`` bytes each, and where the rest begins."""
    words = np.zeros((count, 8), np.uint8)
    words[:, :size] = np.frombuffer(data[start : start + count * size], np.uint8).reshape(
        count, size
    )
    return words.view("<u8")[:, 0].astype(np.uint64), start + count * size


def _times(values: Words, factor: int, modulus: int) -> Words:
    """Products modulo a prime of at most 56 bits, byte by byte: no product has more than 64
    bits."""
    total = np.zeros_like(values)
    for shift in range(0, 56, 8):
        # Byte by byte: a product of two 56-bit numbers does not fit a word.
        digit = (values >> np.uint64(shift)) & np.uint64(255)
        total += digit * np.uint64((factor << shift) % modulus) % np.uint64(modulus)
    return total % np.uint64(modulus)
