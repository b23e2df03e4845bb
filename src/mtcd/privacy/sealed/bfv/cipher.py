"""The interface of sealing: a secret key at its holder, sealers at the clients, integers modulo t
in between.

Values are integer vectors modulo an odd prime t, given and returned as int64 centred around zero.
The steps of a visit, at the client::

    product = sealer.product(vector, encoded)  # X^T g, encrypted
    masked, mask = sealer.mask(product)  # the half that the key holder gets, and what stays here
    data = sealer.to_bytes(masked)

at the key holder::

    answer = key.open_product(key.product_from_bytes(data))  # uniform, whatever the table

and at the client again::

    products = sealer.unmask(answer, mask)  # X^T g, one integer per column
    vector = sealer.rerandomise(sealer.add_plain(vector, change))  # on to the next client

``CipherScheme`` makes keys and sealers; ``find("bfv")`` is the real one, ``find("clear")`` computes
the same integers without encryption, for tests. No method changes its arguments. Bytes from another
party are checked by the ``..._from_bytes`` methods, which raise ``WireError``; the text of an error
never contains a value.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from mtcd.core.errors import did_you_mean
from mtcd.core.optional import find as import_optional
from mtcd.privacy.sealed.bfv.parameters import Parameters

Integers = npt.NDArray[np.int64]
SchemeName = Literal["bfv", "clear"]


class SealedVector(Protocol):
    """One integer per sample, encrypted: the token of a sealed tour."""


class SealedProduct(Protocol):
    """One integer per column of a matrix, encrypted: X^T g."""

    @property
    def columns(self) -> int: ...


class MaskedProduct(Protocol):
    """The half of a product that its key holder decrypts: it tells nothing without the mask."""

    @property
    def columns(self) -> int: ...


class EncodedMatrix(Protocol):
    """The columns of one client, prepared for products. Made once: this costs more than a
    product."""

    @property
    def columns(self) -> int: ...


class Sealer(Protocol):
    """What a client can do with public keys alone."""

    @property
    def parameters(self) -> Parameters: ...

    @property
    def fingerprint(self) -> str:
        """Of parameters and keys, in hex: the same at all parties of a run, another in another
        run."""

    def encrypt(self, values: npt.ArrayLike) -> SealedVector: ...

    def add_plain(self, vector: SealedVector, values: npt.ArrayLike) -> SealedVector: ...

    def subtract_plain(self, vector: SealedVector, values: npt.ArrayLike) -> SealedVector: ...

    def subtract(self, vector: SealedVector, other: SealedVector) -> SealedVector:
        """The difference of two vectors."""

    def encode(self, matrix: npt.ArrayLike, checks: int = 0) -> EncodedMatrix:
        """Prepare an integer matrix of samples by columns. Rejects a column whose product could
        exceed t/2, but for the last ``checks`` ones, whose products are used modulo t."""

    def product(self, vector: SealedVector, matrix: EncodedMatrix) -> SealedProduct: ...

    def mask(self, product: SealedProduct) -> tuple[MaskedProduct, Integers]:
        """Split a product into the half for the key holder, and numbers that stay secret.

        The half is pseudorandom for everybody, also for a key holder that has chosen its keys and
        the vector as it likes. Nothing but decryption works on it. What is decrypted is uniform
        modulo t; the numbers are what ``unmask`` needs to make products of it.
        """

    def unmask(self, answer: npt.ArrayLike, mask: npt.ArrayLike) -> Integers:
        """The product from the key holder's answer; both are checked for shape and range."""

    def flood_vector(self, vector: SealedVector) -> SealedVector:
        """Drown the noise of a vector that the key holder is to decrypt in random noise, and
        switch to the smallest modulus; nothing but decryption works on the result."""

    def rerandomise(self, vector: SealedVector) -> SealedVector:
        """Another encryption of the same integers, which cannot be linked to the one given."""

    def to_bytes(self, sealed: SealedVector | MaskedProduct) -> bytes: ...

    def vector_from_bytes(self, data: bytes) -> SealedVector: ...


class SecretKey(Protocol):
    """The secret key of one run. It has no bytes form, and its repr shows no content."""

    @property
    def parameters(self) -> Parameters: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def public(self) -> bytes:
        """Public keys and parameters, for all parties: ``CipherScheme.sealer`` reads them."""

    def encrypt(self, values: npt.ArrayLike) -> SealedVector: ...

    def open_vector(self, vector: SealedVector) -> Integers:
        """Decrypt. Raises ``WireError`` for a ciphertext whose noise is too large to be decrypted
        correctly."""

    def open_product(self, product: MaskedProduct) -> Integers:
        """Decrypt: a number for each column, uniform modulo t."""

    def noise_budget(self, sealed: SealedVector | SealedProduct) -> int:
        """The bits by which the noise may still grow before decryption fails."""

    def to_bytes(self, sealed: SealedVector | MaskedProduct) -> bytes: ...

    def vector_from_bytes(self, data: bytes) -> SealedVector: ...

    def product_from_bytes(self, data: bytes) -> MaskedProduct: ...

    def save(self, path: Path) -> None:
        """Write the key to a file that only its owner can read, so that a restarted key holder goes
        on."""


class CipherScheme(Protocol):
    """Makes keys and sealers."""

    def generate(self, parameters: Parameters) -> SecretKey:
        """A new secret key from the operating system's randomness. Rejects a noise budget under 20
        bits."""

    def load(self, path: Path) -> SecretKey: ...

    def sealer(self, public: bytes) -> Sealer: ...


def find(name: SchemeName) -> CipherScheme:
    """The scheme of this name; bfv needs the optional dependencies of ``mtcd[sealed]``."""
    if name not in ("bfv", "clear"):
        raise ValueError(f"There is no scheme '{name}': {did_you_mean(name, ['bfv', 'clear'])}")
    module: Any = import_optional(f"mtcd.privacy.sealed.bfv.{name}")
    scheme: CipherScheme = module.SCHEME
    return scheme
