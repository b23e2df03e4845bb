"""The interface of sealing without encryption: the same integers modulo t. For tests and as the
reference of ``bfv``.

Nothing is secret here: the bytes contain the integers. The secret key is a random number that tells
runs apart.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mtcd.core.errors import WireError
from mtcd.privacy.sealed.bfv import cipher
from mtcd.privacy.sealed.bfv.fixed_point import check_matrix, check_vector
from mtcd.privacy.sealed.bfv.keys import parse_parameters, read_private, uniform, write_private
from mtcd.privacy.sealed.bfv.layout import Integers, centred
from mtcd.privacy.sealed.bfv.parameters import Parameters
from mtcd.privacy.sealed.bfv.wire import PRODUCT, PUBLIC, VECTOR, CipherFrame


@dataclass(frozen=True)
class ClearVector:
    """The integers of a vector; ``flooded`` ones can only be opened."""

    values: Integers
    flooded: bool = False


@dataclass(frozen=True)
class ClearProduct:
    """The integers of a product."""

    values: Integers

    @property
    def columns(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class ClearMasked:
    """The integers of a product with a mask."""

    values: Integers

    @property
    def columns(self) -> int:
        return len(self.values)


@dataclass(frozen=True)
class ClearMatrix:
    """The integers of a matrix."""

    values: Integers

    @property
    def columns(self) -> int:
        return int(self.values.shape[1])


class _Clear:
    """What key and sealer have in common."""

    def __init__(self, parameters: Parameters, number: bytes) -> None:
        parameters.check_budget()
        self.parameters = parameters
        self._number = number
        content = json.dumps(dataclasses.asdict(parameters)).encode()
        # Parameters belong to the fingerprint: the same number with others is another run.
        self._mark = hashlib.sha256(number + content).digest()[:16]
        self.public = CipherFrame(PUBLIC, 0, False, 0, 0, self._mark, number + content).to_bytes()

    @property
    def fingerprint(self) -> str:
        return self._mark.hex()

    def encrypt(self, values: npt.ArrayLike) -> ClearVector:
        return ClearVector(check_vector(values, self.parameters))

    def to_bytes(self, sealed: cipher.SealedVector | cipher.MaskedProduct) -> bytes:
        content = sealed.values.astype("<i8").tobytes()  # type: ignore[union-attr]
        if isinstance(sealed, ClearMasked):
            kind, primes, columns = PRODUCT, 0, sealed.columns
        else:
            assert isinstance(sealed, ClearVector)
            kind, primes, columns = VECTOR, int(not sealed.flooded), 0
        return CipherFrame(kind, primes, False, columns, 1, self._mark, content).to_bytes()

    def vector_from_bytes(self, data: bytes) -> ClearVector:
        values, flooded = self._from_bytes(data, VECTOR)
        return ClearVector(values, flooded)

    def _from_bytes(self, data: bytes, kind: int) -> tuple[Integers, bool]:
        frame = CipherFrame.from_bytes(data, kind)
        frame.expect_fingerprint(self._mark)
        frame.expect("ciphertexts", frame.ciphertexts, 1)
        if kind == VECTOR:
            frame.expect("columns", frame.columns, 0)
        elif not 1 <= frame.columns <= self.parameters.most_columns:
            raise WireError("sealed.columns", f"is {frame.columns}, more than any party has")
        size = self.parameters.samples if kind == VECTOR else frame.columns
        frame.expect_size(8 * size)
        if frame.primes not in (0, 1):
            raise WireError("sealed.primes", f"is {frame.primes}, but 0 or 1 was expected")
        values = np.frombuffer(frame.content, "<i8").astype(np.int64)
        if np.any(values > self.parameters.half) or np.any(values < -self.parameters.half):
            raise WireError("sealed", "contains numbers beyond the modulus")
        return values, frame.primes == 0


class ClearSealer(_Clear):
    """``cipher.Sealer`` without encryption: integers, and masks on them."""

    def add_plain(self, vector: cipher.SealedVector, values: npt.ArrayLike) -> ClearVector:
        return self._changed(vector, check_vector(values, self.parameters))

    def subtract_plain(self, vector: cipher.SealedVector, values: npt.ArrayLike) -> ClearVector:
        return self._changed(vector, -check_vector(values, self.parameters))

    def subtract(self, vector: cipher.SealedVector, other: cipher.SealedVector) -> ClearVector:
        return self._changed(vector, -_usable(other))

    def _changed(self, vector: cipher.SealedVector, change: Integers) -> ClearVector:
        return ClearVector(centred(_usable(vector) + change, self.parameters.plain_modulus))

    def encode(self, matrix: npt.ArrayLike, checks: int = 0) -> ClearMatrix:
        values = check_matrix(matrix, self.parameters, checks)
        self.parameters.layout(values.shape[1])
        return ClearMatrix(values)

    def product(self, vector: cipher.SealedVector, matrix: cipher.EncodedMatrix) -> ClearProduct:
        assert isinstance(matrix, ClearMatrix)
        # Python's integers never overflow
        # Exact: products of int64 may exceed 64 bits, and the reference must not wrap around.
        exact = matrix.values.astype(object).T @ _usable(vector).astype(object)
        modulus = self.parameters.plain_modulus
        return ClearProduct(
            centred(np.array([int(value) % modulus for value in exact], np.int64), modulus)
        )

    def mask(self, product: cipher.SealedProduct) -> tuple[ClearMasked, Integers]:
        assert isinstance(product, ClearProduct)
        modulus = self.parameters.plain_modulus
        mask = uniform(modulus, product.columns)
        return ClearMasked(centred(product.values + mask, modulus)), mask

    def unmask(self, answer: npt.ArrayLike, mask: npt.ArrayLike) -> Integers:
        return unmask(answer, mask, self.parameters)

    def flood_vector(self, vector: cipher.SealedVector) -> ClearVector:
        return ClearVector(_usable(vector), flooded=True)

    def rerandomise(self, vector: cipher.SealedVector) -> ClearVector:
        return ClearVector(_usable(vector))

    def vector_from_bytes(self, data: bytes) -> ClearVector:
        vector = super().vector_from_bytes(data)
        if vector.flooded:
            raise WireError("sealed.primes", "is that of a vector that can only be decrypted")
        return vector


class ClearKey(_Clear):
    """``cipher.SecretKey`` without encryption: a number that tells runs apart."""

    def __repr__(self) -> str:
        return f"ClearKey({self.fingerprint})"

    def open_vector(self, vector: cipher.SealedVector) -> Integers:
        assert isinstance(vector, ClearVector)
        return vector.values

    def open_product(self, product: cipher.MaskedProduct) -> Integers:
        assert isinstance(product, ClearMasked)
        return product.values

    def product_from_bytes(self, data: bytes) -> ClearMasked:
        values, masked = self._from_bytes(data, PRODUCT)
        if not masked:
            raise WireError("sealed.primes", "is that of a product without a mask")
        return ClearMasked(values)

    def noise_budget(self, sealed: cipher.SealedVector | cipher.SealedProduct) -> int:
        return int(self.parameters.budget())

    def save(self, path: Path) -> None:
        write_private(path, self._number + json.dumps(dataclasses.asdict(self.parameters)).encode())


class _ClearScheme:
    """``cipher.CipherScheme`` without encryption, for tests and as a reference."""

    def generate(self, parameters: Parameters) -> ClearKey:
        return ClearKey(parameters, secrets.token_bytes(16))

    def load(self, path: Path) -> ClearKey:
        content = read_private(path)
        return ClearKey(parse_parameters(content[16:]), content[:16])

    def sealer(self, public: bytes) -> ClearSealer:
        frame = CipherFrame.from_bytes(public, PUBLIC)
        sealer = ClearSealer(parse_parameters(frame.content[16:]), frame.content[:16])
        frame.expect_fingerprint(sealer._mark)
        return sealer


def _usable(vector: cipher.SealedVector) -> Integers:
    assert isinstance(vector, ClearVector)
    if vector.flooded:
        raise ValueError("This vector was flooded: it can only be decrypted.")
    return vector.values


def unmask(answer: npt.ArrayLike, mask: npt.ArrayLike, parameters: Parameters) -> Integers:
    """The answer without the mask, centred; an answer that is not as many integers modulo t is
    rejected."""
    masks = np.asarray(mask, np.int64)
    values = np.asarray(answer)
    if values.dtype.kind not in "iu" or values.shape != masks.shape:
        raise WireError("answer", f"is not {masks.size} integers")
    # A number beyond the modulus would be reduced to another one, without a word.
    if values.size and (
        int(values.max()) > parameters.half or int(values.min()) < -parameters.half
    ):
        raise WireError("answer", "contains integers beyond the modulus")
    return centred(values.astype(np.int64) - masks, parameters.plain_modulus)


SCHEME: cipher.CipherScheme = _ClearScheme()
