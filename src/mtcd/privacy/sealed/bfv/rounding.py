"""Bytes of polynomials that are only decrypted: the lowest bits of their coefficients change
nothing that decryption finds.

With two primes p and q, a coefficient is a + p b, where a < p and b < q. Of a, the lowest bytes are
not sent: the reader takes the middle of what they could have been. The error of the first
polynomial adds to the noise as it is, that of the second times the secret key, so that more bytes
of the first can be spared (``Parameters.dropped``, and ``Parameters.spared`` of a product).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mtcd.core.errors import WireError
from mtcd.privacy.sealed.bfv.seal_format import Polynomials, width

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
