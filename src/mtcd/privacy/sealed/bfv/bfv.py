"""Sealing with the BFV scheme, by SEAL: a client's side (``BfvSealer``) and the key holder's
(``BfvKey``).

Products use diagonals with baby and giant steps (``layout``). SEAL does not hoist, so a chain of
rotations by one slot costs as much as rotations by several: two rotation keys serve all products,
by 1 slot and by ``stride`` slots.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import tenseal.sealapi as seal

from mtcd.core.errors import MtcdError, WireError
from mtcd.privacy.sealed.bfv import cipher, seal_format
from mtcd.privacy.sealed.bfv.bfv_ciphertexts import Bfv, BfvMasked, BfvProduct, BfvVector
from mtcd.privacy.sealed.bfv.clear import unmask
from mtcd.privacy.sealed.bfv.fixed_point import check_matrix
from mtcd.privacy.sealed.bfv.keys import join, read_private, split, uniform_residues, write_private
from mtcd.privacy.sealed.bfv.layout import Integers, centred
from mtcd.privacy.sealed.bfv.parameters import SENT_PRIMES, Parameters
from mtcd.privacy.sealed.bfv.public_keys import Context, EncryptionKeys
from mtcd.privacy.sealed.bfv.seal_format import Polynomials
from mtcd.privacy.sealed.bfv.wire import PRODUCT

LEAST_TO_DECRYPT = 18
"""Bits of noise budget below which a ciphertext is rejected: honest ones have 20 or more.

A ciphertext with one coefficient changed at random passes with a probability of about 2^-18.
"""


@dataclass(frozen=True)
class BfvMatrix:
    """Diagonals in NTT form by ciphertext, giant step and baby step; those of zeros are left
    out."""

    diagonals: dict[tuple[int, int, int], Any]
    columns: int


class BfvSealer(Bfv):
    """``cipher.Sealer`` with BFV: what a client does with public keys."""

    def __init__(self, keys: EncryptionKeys) -> None:
        super().__init__(keys)
        self._encryptor = seal.Encryptor(self._seal, keys.public_key)
        self._evaluator = self._context.evaluator
        # decrypts what needs no key: a ciphertext whose second polynomial is zero
        # A key pair of its own, which opens nothing: SEAL has no other way to round a polynomial.
        unused = seal.KeyGenerator(self._seal).secret_key()
        self._rounding = seal.Decryptor(self._seal, unused)

    def encrypt(self, values: npt.ArrayLike) -> BfvVector:
        return self._whole(
            *(_made(self._encryptor.encrypt, plain) for plain in self._spread(values))
        )

    def add_plain(self, vector: cipher.SealedVector, values: npt.ArrayLike) -> BfvVector:
        return self._changed(self._evaluator.add_plain, vector, values)

    def subtract_plain(self, vector: cipher.SealedVector, values: npt.ArrayLike) -> BfvVector:
        return self._changed(self._evaluator.sub_plain, vector, values)

    def subtract(self, vector: cipher.SealedVector, other: cipher.SealedVector) -> BfvVector:
        parts = zip(self._usable(vector), self._usable(other), strict=True)
        return self._whole(*(_made(self._evaluator.sub, part, less) for part, less in parts))

    def _changed(
        self, change: Callable[..., None], vector: cipher.SealedVector, values: npt.ArrayLike
    ) -> BfvVector:
        parts = zip(self._usable(vector), self._spread(values), strict=True)
        return self._whole(*(_made(change, part, plain) for part, plain in parts))

    def encode(self, matrix: npt.ArrayLike, checks: int = 0) -> BfvMatrix:
        values = check_matrix(matrix, self.parameters, checks)
        layout, stride = self.parameters.layout(values.shape[1]), self.parameters.stride
        # Keys of a run have rotations for the widest party only.
        if layout.columns > self.parameters.most_columns:
            raise MtcdError(
                f"The keys of this run are for at most {self.parameters.most_columns} columns per "
                "party."
            )
        level, diagonals = self._context.levels[self._context.primes], {}
        for giant, babies in layout.steps(stride):
            for number in range(layout.ciphertexts):
                for baby in babies:
                    slots = layout.diagonal(values, number, giant * stride + baby)
                    # SEAL refuses to multiply by zero, which would leave nothing encrypted
                    if slots.any():
                        # Rotated back beforehand: `product` rotates all that was added before a
                        # giant step.
                        plain = self._plain(layout.rotate(slots, -giant * stride))
                        self._evaluator.transform_to_ntt_inplace(plain, level)
                        diagonals[number, giant, baby] = plain
        return BfvMatrix(diagonals, layout.columns)

    def product(self, vector: cipher.SealedVector, matrix: cipher.EncodedMatrix) -> BfvProduct:
        assert isinstance(matrix, BfvMatrix)
        layout, run = self.parameters.layout(matrix.columns), self._evaluator
        # The baby steps once for all giant steps, as they are the same.
        rotated = {}
        steps = min(self.parameters.stride, layout.diagonals)
        for number, part in enumerate(self._usable(vector)):
            for baby, one in enumerate(self._baby_steps(part, steps)):
                rotated[number, baby] = one

        # the last giant step first: each rotation moves all that was added before it
        total = None
        for giant, babies in layout.steps(self.parameters.stride):
            if total is not None:
                run.rotate_rows_inplace(total, self.parameters.stride, self._keys.galois_keys)
            partial = None
            # Diagonals of zeros were left out when the matrix was encoded.
            for number, baby in [(n, b) for n in range(layout.ciphertexts) for b in babies]:
                if plain := matrix.diagonals.get((number, giant, baby)):
                    term = _made(run.multiply_plain, rotated[number, baby], plain)
                    partial = _summed(run, partial, term)
            if partial is not None:
                run.transform_from_ntt_inplace(partial)
                total = _summed(run, total, partial)
        return BfvProduct(total or self._zero(), matrix.columns)

    def _baby_steps(self, part: Any, count: int) -> list[Any]:
        """The ciphertext rotated by 0 to count - 1 slots, in NTT form."""
        steps = [part]
        while len(steps) < count:
            steps.append(_made(self._evaluator.rotate_rows, steps[-1], 1, self._keys.galois_keys))
        return [_made(self._evaluator.transform_to_ntt, step) for step in steps]

    def mask(self, product: cipher.SealedProduct) -> tuple[BfvMasked, Integers]:
        """Keep the first polynomial of the product, and give the second one away.

        With a fresh encryption of zero the second polynomial is c + a u + e, with a that nobody
        could choose (it is drawn from a seed) and u and e that nobody else knows: an instance of
        ring learning with errors, which hides c from everybody. The key holder rounds its product
        with the secret key to a plaintext, the client rounds the first polynomial. Their sum is the
        message, unless a coefficient is so close to the middle of two integers that its noise
        decides (``Parameters.miss_bits``).
        """
        assert isinstance(product, BfvProduct)
        # The fresh encryption of zero is what makes the second polynomial pseudorandom.
        total = _summed(self._evaluator, self._zero(), product.ciphertext)
        # To two primes: less to send, and the noise shrinks with the modulus.
        self._evaluator.mod_switch_to_inplace(total, self._context.levels[SENT_PRIMES])
        kept, sent = seal_format.polynomials(total).limbs

        own = self._rounded(self._rounding, np.array([kept, np.zeros_like(kept)]))
        modulus = self.parameters.plain_modulus
        # Folded as the holder's half will be: partial sums of a column add up modulo t.
        share = self.parameters.layout(product.columns).fold(own, modulus)
        return BfvMasked(Polynomials(sent[None]), product.columns), (modulus - share) % modulus

    def unmask(self, answer: npt.ArrayLike, mask: npt.ArrayLike) -> Integers:
        return unmask(answer, mask, self.parameters)

    def flood_vector(self, vector: cipher.SealedVector) -> BfvVector:
        return BfvVector(tuple(map(self._flooded, self._usable(vector))), SENT_PRIMES)

    def _flooded(self, part: Any) -> Any:
        """A fresh encryption of zero hides the ciphertext, uniform noise hides the noise that
        decryption shows."""
        # at the full modulus: the rounding of the switch then depends on flooded numbers only
        whole = self._context.primes
        noise = uniform_residues(
            self.parameters.flood_bits(), self.parameters.degree, self._context.moduli[:whole]
        )
        # A plaintext polynomial of noise, and 0 as the second: only the noise grows, not the
        # message.
        limbs = np.array([noise, np.zeros_like(noise)])
        result = seal_format.ciphertext(self._seal, self._context.levels[whole], Polynomials(limbs))
        for other in (self._zero(), part):
            self._evaluator.add_inplace(result, other)
        self._evaluator.mod_switch_to_inplace(result, self._context.levels[SENT_PRIMES])
        return result

    def rerandomise(self, vector: cipher.SealedVector) -> BfvVector:
        return self._whole(
            *(_summed(self._evaluator, self._zero(), part) for part in self._usable(vector))
        )

    def vector_from_bytes(self, data: bytes) -> BfvVector:
        return self._vector(data, self._context.primes)

    def _zero(self) -> Any:
        return _made(self._encryptor.encrypt_zero)

    def _whole(self, *ciphertexts: Any) -> BfvVector:
        return BfvVector(ciphertexts, self._context.primes)

    def _usable(self, vector: cipher.SealedVector) -> tuple[Any, ...]:
        assert isinstance(vector, BfvVector)
        if vector.primes != self._context.primes:
            raise ValueError("This vector was flooded: it can only be decrypted.")
        return vector.ciphertexts


class BfvKey(Bfv):
    """``cipher.SecretKey`` with BFV: what the key holder decrypts, and how."""

    def __init__(self, keys: EncryptionKeys, secret: Any) -> None:
        super().__init__(keys)
        self._secret = secret
        self._encryptor = seal.Encryptor(self._seal, secret)
        self._decryptor = seal.Decryptor(self._seal, secret)

    def __repr__(self) -> str:
        return f"BfvKey({self.fingerprint})"

    def __reduce__(self) -> str:
        raise TypeError("A secret key cannot be pickled.")

    @property
    def public(self) -> bytes:
        return self._keys.to_bytes()

    def encrypt(self, values: npt.ArrayLike) -> BfvVector:
        plains = self._spread(values)
        # Fresh, so its second polynomial is a seed: half of the bytes for the token on its way out.
        compact = tuple(
            seal_format.polynomials(self._encryptor.encrypt_symmetric(plain)) for plain in plains
        )
        level = self._context.levels[self._context.primes]
        ciphertexts = tuple(seal_format.ciphertext(self._seal, level, part) for part in compact)
        return BfvVector(ciphertexts, self._context.primes, compact)

    def open_vector(self, vector: cipher.SealedVector) -> Integers:
        assert isinstance(vector, BfvVector)
        return self.parameters.layout().gather([self._slots(part) for part in vector.ciphertexts])

    def open_product(self, product: cipher.MaskedProduct) -> Integers:
        assert isinstance(product, BfvMasked)
        modulus, [sent] = self.parameters.plain_modulus, product.sent.limbs
        # Only the second polynomial was sent: the first one, at the client, is its share.
        slots = self._rounded(self._decryptor, np.array([np.zeros_like(sent), sent]))
        sums = self.parameters.layout(product.columns).fold(slots, modulus)
        return centred(sums, modulus)

    def _slots(self, part: Any) -> Integers:
        # with too much noise, decryption gives other numbers, and says nothing
        if self._decryptor.invariant_noise_budget(part) < LEAST_TO_DECRYPT:
            raise WireError(
                "sealed", "has too much noise to be decrypted: it is damaged, or made up"
            )
        return self._decrypted(self._decryptor, part)

    def noise_budget(self, sealed: cipher.SealedVector | cipher.SealedProduct) -> int:
        assert isinstance(sealed, BfvVector | BfvProduct)
        parts: tuple[Any, ...]
        if isinstance(sealed, BfvVector):
            parts = sealed.ciphertexts
        else:
            parts = (sealed.ciphertext,)
        return min(int(self._decryptor.invariant_noise_budget(part)) for part in parts)

    def vector_from_bytes(self, data: bytes) -> BfvVector:
        return self._vector(data, SENT_PRIMES)

    def product_from_bytes(self, data: bytes) -> BfvMasked:
        frame, [sent] = self._from_bytes(data, PRODUCT, SENT_PRIMES)
        if not 1 <= frame.columns <= self.parameters.most_columns:
            raise WireError("sealed.columns", f"is {frame.columns}, more than any party has")
        return BfvMasked(sent, frame.columns)

    def save(self, path: Path) -> None:
        write_private(path, join([self.public, seal_format.saved(self._secret)]))


class _BfvScheme:
    """``cipher.CipherScheme`` with BFV, by the SEAL library."""

    def generate(self, parameters: Parameters) -> BfvKey:
        context = Context(parameters)
        generator = seal.KeyGenerator(context.seal)
        return BfvKey(EncryptionKeys.generate(context, generator), generator.secret_key())

    def load(self, path: Path) -> BfvKey:
        # Checked as keys from another party are: the file may have been changed.
        content = read_private(path)
        try:
            public, secret = split(content, 2)
            keys = EncryptionKeys.from_bytes(public)
            return BfvKey(keys, seal_format.loaded(seal.SecretKey(), keys.context.seal, secret))
        except (WireError, ValueError, RuntimeError):
            raise MtcdError(
                f"{path} is not a complete secret key: start a new run, with new keys."
            ) from None

    def sealer(self, public: bytes) -> BfvSealer:
        return BfvSealer(EncryptionKeys.from_bytes(public))


def _made(operation: Callable[..., None], *given: Any) -> Any:
    """The ciphertext that an operation of SEAL writes to its last argument."""
    result = seal.Ciphertext()
    operation(*given, result)
    return result


def _summed(evaluator: Any, first: Any, second: Any) -> Any:
    """The first ciphertext, which becomes the sum; the second one if there is none yet."""
    if first is None:
        return second
    evaluator.add_inplace(first, second)
    return first


SCHEME: cipher.CipherScheme = _BfvScheme()
