"""The bytes of sealed values: a header of fixed size, the content, a checksum. Nothing is read
before it was checked.

=====  ==============================================================================
bytes  field
=====  ==============================================================================
4      ``MTCS``
1      version of this format
1      kind: 1 vector, 2 product, 3 public keys
1      the number of primes of the coefficient modulus
1      1: the second polynomial of a ciphertext is the seed from which it is drawn; else 0
4      columns of a product, else 0
4      ciphertexts
16     fingerprint of parameters and keys
...    content
16     SHA-256 of all of the above, cut: against accidents, not against attackers
=====  ==============================================================================
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass

from mtcd.core.errors import WireError

VECTOR, PRODUCT, PUBLIC = 1, 2, 3
KINDS = {VECTOR: "vector", PRODUCT: "product", PUBLIC: "public keys"}
MAGIC, VERSION = b"MTCS", 2
_HEADER = struct.Struct("<4sBBBBII16s")
_CHECKSUM = 16
OVERHEAD = _HEADER.size + _CHECKSUM


@dataclass(frozen=True)
class CipherFrame:
    """A sealed value as it travels."""

    kind: int
    primes: int
    seeded: bool
    columns: int
    ciphertexts: int
    fingerprint: bytes
    content: bytes

    def to_bytes(self) -> bytes:
        header = _HEADER.pack(
            MAGIC,
            VERSION,
            self.kind,
            self.primes,
            self.seeded,
            self.columns,
            self.ciphertexts,
            self.fingerprint,
        )
        body = header + self.content
        return body + _checksum(body)

    @classmethod
    def from_bytes(cls, data: bytes, kind: int) -> CipherFrame:
        """The frame in these bytes. Rejects what is no frame of this kind and version, or was
        changed on its way."""
        if not isinstance(data, bytes | bytearray | memoryview):
            # The order of the checks: a foreign format is not called a wrong checksum.
            raise WireError("sealed", "is not a block of bytes")
        data = bytes(data)
        if len(data) < OVERHEAD:
            raise WireError(
                "sealed", f"has {len(data)} bytes, too few for a header: it was cut off"
            )
        magic, version, found, primes, seeded, columns, ciphertexts, fingerprint = (
            _HEADER.unpack_from(data)
        )
        if magic != MAGIC:
            raise WireError("sealed", "is not a sealed value")
        if version != VERSION:
            raise WireError(
                "sealed.version",
                f"is {version}, but {VERSION} was expected: install the same version",
            )
        if found != kind:
            raise WireError(
                "sealed.kind", f"is {KINDS.get(found, 'unknown')}, but {KINDS[kind]} was expected"
            )
        # after the header: a message of another version has another checksum, perhaps
        if data[-_CHECKSUM:] != _checksum(data[:-_CHECKSUM]):
            raise WireError("sealed.checksum", "is wrong: it was cut off or changed on its way")
        if seeded > 1:
            raise WireError("sealed.seeded", f"is {seeded}, but 0 or 1 was expected")
        return cls(
            found,
            primes,
            bool(seeded),
            columns,
            ciphertexts,
            fingerprint,
            data[_HEADER.size : -_CHECKSUM],
        )

    def expect(self, field: str, found: int, wanted: int) -> None:
        if found != wanted:
            raise WireError(f"sealed.{field}", f"is {found}, but {wanted} was expected")

    def expect_fingerprint(self, fingerprint: bytes) -> None:
        """Reject a value that was sealed with other keys or parameters: that of another run."""
        if self.fingerprint != fingerprint:
            raise WireError(
                "sealed.fingerprint",
                "is that of other keys or parameters: it belongs to another run",
            )

    def expect_size(self, size: int) -> None:
        if len(self.content) != size:
            raise WireError(
                "sealed", f"has {len(self.content)} bytes of content, but {size} were expected"
            )


def _checksum(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:_CHECKSUM]
