"""The uniform polynomial of a public key, from a seed: every party computes it by itself.

What hides a party's table from the key holder is that polynomial (see ``BfvSealer.mask``). A holder
that could choose it would choose one with a trapdoor, such as a quotient of two short polynomials,
which looks as uniform as any other. It chooses the seed only, and the polynomial is a hash of it:
there is no way from a trapdoor back to a seed. The seed is drawn for this purpose alone; the secret
key and the errors come from another generator.

Only this polynomial matters. With uniform ``a``, a request is ``c + a u + e`` for ``c`` that may
depend in any way on the table, on ``a`` and on all else that the holder has made: tokens, rotation
keys, the other polynomial of the public key. It is pseudorandom for every ``c``.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

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
