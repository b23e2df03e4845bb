"""Coefficients of SEAL's objects as NumPy arrays, and back, through SEAL's own file format.

SEAL reads only buffers that are composed here, from numbers that were checked: no bytes of another
party reach it. Its format, from version 4.0 on: a header of 16 bytes, then, compressed with zstd or
not, the fields of the object.
"""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import tenseal.sealapi as seal
import zstandard

from mtcd.core.errors import WireError

Limbs = npt.NDArray[np.uint64]
"""Polynomials by primes by coefficients."""
SEED = 65
"""Bytes of a seed: the kind of generator, and 64 bytes."""
_HEADER = struct.Struct("<HBBBBHQ")
_FIELDS = struct.Struct("<4Q?QQQdQ")
_PLAINTEXT = struct.Struct("<4QQd")
_MADE = seal.Serialization.SEALHeader()
# not compressed
_PLAIN = (_MADE.magic, _MADE.header_size, _MADE.version_major, _MADE.version_minor, 0, 0)


@contextmanager
def _scratch() -> Iterator[tuple[int, str]]:
    """A file in memory, for a library that saves to paths only; closed, and thereby gone, at the
    end."""
    # The secret key passes through here: it must not reach a disk.
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:  # elsewhere than on Linux: a private file
            yield file.fileno(), file.name
        return
    descriptor = os.memfd_create("mtcd", os.MFD_CLOEXEC)
    try:
        yield descriptor, f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def saved(item: Any) -> bytes:
    """What SEAL saves of an object."""
    with _scratch() as (descriptor, path):
        item.save(path)
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def loaded(item: Any, context: Any, data: bytes) -> Any:
    """The object, loaded by SEAL from well-formed bytes."""
    with _scratch() as (descriptor, path):
        os.pwrite(descriptor, data, 0)
        item.load(context, path)
    return item


def _fields(item: Any) -> memoryview:
    data = saved(item)
    compressed = _HEADER.unpack_from(data)[4]
    rest = memoryview(data)[_HEADER.size :]
    # SEAL compresses by default; both forms occur.
    if compressed:
        return memoryview(zstandard.ZstdDecompressor().decompressobj().decompress(rest))
    return rest


def _framed(fields: bytes) -> bytes:
    return _HEADER.pack(*_PLAIN, _HEADER.size + len(fields)) + fields


@dataclass(frozen=True)
class Polynomials:
    """A ciphertext or a part of a key: two polynomials, or one and the seed of the second."""

    limbs: Limbs
    seed: bytes = b""

    def fields(self, level: tuple[int, ...], ntt: bool) -> bytes:
        """As SEAL has it, at the level of the modulus chain with this id."""
        _, primes, degree = self.limbs.shape
        # a scale and a correction factor belong to other schemes of SEAL: both are 1
        content = struct.pack("<Q", self.limbs.size) + self.limbs.astype("<u8").tobytes()
        head = _FIELDS.pack(*level, ntt, 2, degree, primes, 1.0, 1)
        seed = _framed(self.seed) if self.seed else b""
        return head + _framed(content) + seed

    def pack(self, moduli: list[int]) -> bytes:
        """For the wire: only the bytes that a prime needs."""
        parts = []
        for number, modulus in enumerate(moduli):
            words = np.ascontiguousarray(self.limbs[:, number], "<u8")
            parts.append(
                words.view(np.uint8).reshape(*words.shape, 8)[..., : width(modulus)].tobytes()
            )
        return b"".join(parts) + self.seed

    @classmethod
    def unpack(
        cls, data: memoryview, moduli: list[int], degree: int, count: int, seeded: bool
    ) -> Polynomials:
        """The inverse for ``count`` polynomials, and a seed if there is one, from ``packed_size``
        bytes of another party: every coefficient must be below its prime."""
        limbs = np.empty((count, len(moduli), degree), np.uint64)
        start = 0
        for number, modulus in enumerate(moduli):
            size = count * degree * width(modulus)
            # the highest bytes of a word are 0 in every prime, and do not travel
            words = np.zeros((count, degree, 8), np.uint8)
            part = np.frombuffer(data[start : start + size], np.uint8)
            words[..., : width(modulus)] = part.reshape(count, degree, width(modulus))
            limbs[:, number] = words.view("<u8")[..., 0]
            # SEAL takes them as reduced, and computes nonsense otherwise
            if np.any(limbs[:, number] >= modulus):
                raise WireError("sealed", "contains coefficients beyond the modulus")
            start += size

        # What follows the polynomials is the seed, of a kind that SEAL knows.
        seed = bytes(data[start:])
        if seeded and seed[0] not in (1, 2):
            raise WireError("sealed", "has a seed of an unknown kind")
        return cls(limbs, seed)


def width(modulus: int) -> int:
    """Bytes of a coefficient on the wire."""
    return -(-modulus.bit_length() // 8)


def packed_size(moduli: list[int], degree: int, polynomials: int) -> int:
    """Bytes of so many polynomials as ``Polynomials.pack`` writes them, without a seed."""
    return polynomials * degree * sum(width(modulus) for modulus in moduli)


def _parse(fields: memoryview) -> tuple[Polynomials, memoryview]:
    """The first object of what SEAL saved, and the rest."""
    *_, polynomials, degree, primes, _, _ = _FIELDS.unpack_from(fields)
    rest = fields[_FIELDS.size + _HEADER.size :]
    (size,) = struct.unpack_from("<Q", rest)
    limbs = np.frombuffer(rest[8 : 8 + 8 * size], "<u8").reshape(-1, primes, degree)
    rest = rest[8 + 8 * size :]
    # Fewer arrays than polynomials: the second one is a seed, which SEAL expands.
    if len(limbs) == polynomials:
        return Polynomials(limbs), rest
    return Polynomials(limbs, bytes(rest[_HEADER.size : _HEADER.size + SEED])), rest[
        _HEADER.size + SEED :
    ]


def polynomials(item: Any) -> Polynomials:
    """Those of a ciphertext or a public key."""
    return _parse(_fields(item))[0]


def key_parts(galois_keys: Any) -> list[Polynomials]:
    """Those of the rotation keys, in the order of their indices."""
    fields = _fields(galois_keys)
    (indices,) = struct.unpack_from("<32xQ", fields)
    rest, found = fields[40:], []
    for _ in range(indices):
        (parts,) = struct.unpack_from("<Q", rest)
        rest = rest[8:]
        for _ in range(parts):
            part, rest = _parse(rest[_HEADER.size :])
            found.append(part)
    return found


def secret_limbs(secret_key: Any, primes: int) -> Limbs:
    """The coefficients of a secret key by prime, in NTT form."""
    words = _fields(secret_key)[_PLAINTEXT.size + _HEADER.size :]
    (size,) = struct.unpack_from("<Q", words)
    return np.frombuffer(words[8 : 8 + 8 * size], "<u8").reshape(primes, -1)


def ciphertext(context: Any, level: tuple[int, ...], parts: Polynomials) -> Any:
    """One at this level of the modulus chain."""
    return loaded(seal.Ciphertext(), context, _framed(parts.fields(level, False)))


def public_key(context: Any, parts: Polynomials) -> Any:
    """The key with which anybody encrypts."""
    return loaded(
        seal.PublicKey(), context, _framed(parts.fields(tuple(context.key_parms_id()), True))
    )


def galois_keys(context: Any, elements: list[int], parts: list[Polynomials]) -> Any:
    """Rotation keys: as many parts for each of the elements, which are sorted."""
    # by index (element - 1) / 2, with no parts for elements that have no key
    level = tuple(context.key_parms_id())
    # The elements have equally many parts, one for each prime of a ciphertext.
    each = len(parts) // max(len(elements), 1)
    fields = bytearray(struct.pack("<4QQ", *level, (max(elements, default=-1) + 1) // 2))
    place = iter(parts)
    for element in range(1, max(elements, default=-1) + 1, 2):
        fields += struct.pack("<Q", each if element in elements else 0)
        if element in elements:
            for _ in range(each):
                fields += _framed(next(place).fields(level, True))
    return loaded(seal.GaloisKeys(), context, _framed(bytes(fields)))
