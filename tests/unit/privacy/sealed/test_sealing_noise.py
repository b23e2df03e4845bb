"""The noise of ciphertexts, computed with the secret key: what a curious key holder could look
at."""

from dataclasses import replace
from functools import cache
from math import prod

import numpy as np
import pytest
from scipy import signal, stats

from mtcd.privacy.sealed.bfv import seal_format
from mtcd.privacy.sealed.bfv.bfv import BfvKey, BfvSealer
from mtcd.privacy.sealed.bfv.bfv_ciphertexts import BfvVector
from mtcd.privacy.sealed.bfv.cipher import find
from mtcd.privacy.sealed.bfv.parameters import choose_parameters, plain_prime
from mtcd.privacy.sealed.bfv.seal_format import Polynomials

SAMPLES, COLUMNS = 60, 700  # seven diagonals


@cache
def pair() -> tuple[BfvKey, BfvSealer]:
    key = find("bfv").generate(choose_parameters(SAMPLES, [COLUMNS], 2))
    sealer = find("bfv").sealer(key.public)
    assert isinstance(key, BfvKey)
    assert isinstance(sealer, BfvSealer)
    return key, sealer


@cache
def secret() -> np.ndarray:
    """The ternary secret polynomial: SEAL holds it in NTT form, and transforms it back as part of a
    ciphertext."""
    key, _ = pair()
    context, fields = key._context, bytes(seal_format._fields(key._secret))
    size = key.parameters.degree * len(context.moduli) * 8
    limbs = np.frombuffer(fields[-size:], "<u8").reshape(len(context.moduli), -1)[: context.primes]
    transformed = Polynomials(np.array([limbs, limbs])).fields(
        context.levels[context.primes], ntt=True
    )
    item = seal_format.loaded(
        seal_format.seal.Ciphertext(), context.seal, seal_format._framed(transformed)
    )
    context.evaluator.transform_from_ntt_inplace(item)
    first = seal_format.polynomials(item).limbs[0, 0].astype(object)
    return np.where(first > 1, first - context.moduli[0], first).astype(np.int64)


def noise(ciphertext: object, primes: int) -> np.ndarray:
    """c0 + c1 s modulo q, centred: of an encryption of zeros, this is its noise."""
    key, _ = pair()
    moduli, limbs = key._context.moduli[:primes], seal_format.polynomials(ciphertext).limbs
    whole, total = prod(moduli), np.zeros(key.parameters.degree, object)
    for number, modulus in enumerate(moduli):
        product = limbs[0, number].astype(object)
        for shift in (0, 20, 40):  # in pieces that are exact in floating point
            piece = (limbs[1, number] >> np.uint64(shift)) & np.uint64(2**20 - 1)
            full = np.rint(signal.fftconvolve(piece.astype(float), secret().astype(float))).astype(
                np.int64
            )
            full = np.append(full, 0).reshape(2, -1)
            product = product + (full[0] - full[1]).astype(object) * 2**shift  # x^n = -1
        product %= modulus
        others = whole // modulus
        total = total + product * (others * pow(others, -1, modulus))
    return np.array([(int(value) + whole // 2) % whole - whole // 2 for value in total], float)


def test_the_secret_is_ternary_and_opens_an_encryption_of_zeros() -> None:
    key, sealer = pair()
    assert set(np.unique(secret())) == {-1, 0, 1}
    fresh = noise(sealer.encrypt(np.zeros(SAMPLES, int)).ciphertexts[0], 3)
    assert 0.9 < fresh.std() / np.sqrt(key.parameters._fresh()) < 1.1


def test_the_noise_of_a_product_is_what_was_estimated() -> None:
    key, sealer = pair()
    chosen, draw = key.parameters, np.random.default_rng(0)
    zeros = sealer.encrypt(np.zeros(SAMPLES, int))
    for _ in range(chosen.visits):
        zeros = sealer.rerandomise(zeros)
    product = sealer.product(zeros, sealer.encode(draw.integers(-99, 100, (SAMPLES, COLUMNS))))
    # by the key, see _rotation
    assert 0.1 < noise(product.ciphertext, 3).std() / chosen.product_noise() < 1.2


def test_flooding_hides_the_noise_of_a_token() -> None:
    key, sealer = pair()
    # of the flooding, after modulus switching
    half = 2.0 ** (key.parameters.flood_bits() - key.parameters.modulus_bits[2])
    fresh = sealer.encrypt(np.zeros(SAMPLES, int))
    for token in (fresh, sealer.rerandomise(sealer.rerandomise(fresh))):
        seen = noise(sealer.flood_vector(token).ciphertexts[0], 2) / half
        assert np.abs(seen).max() < 1.001
        assert stats.kstest(seen, stats.uniform(-1, 2).cdf).pvalue > 1e-6


@pytest.mark.parametrize("bits", [0, 60, 120, 160])
def test_noise_that_the_holder_has_chosen_does_not_show_in_a_request(bits: int) -> None:
    """What the holder gets, times its secret key, is uniform: whatever the table, and the noise
    that it has put into the token."""
    key, sealer = pair()
    moduli = key._context.moduli[:2]
    token = key.encrypt(np.zeros(SAMPLES, int))
    limbs = seal_format.polynomials(token.ciphertexts[0]).limbs.copy()
    for number, modulus in enumerate(key._context.moduli[:3]):
        limbs[0, number, 0] = (int(limbs[0, number, 0]) + 2**bits) % modulus
    level = key._context.levels[3]
    noisy = seal_format.ciphertext(key._seal, level, Polynomials(limbs))
    vector = BfvVector((noisy,), 3)

    for table in (np.zeros((SAMPLES, COLUMNS), int), np.ones((SAMPLES, COLUMNS), int)):
        masked, _ = sealer.mask(sealer.product(vector, sealer.encode(table)))
        [sent] = masked.sent.limbs
        both = Polynomials(np.array([np.zeros_like(sent), sent]))
        seen = noise(seal_format.ciphertext(key._seal, key._context.levels[2], both), 2)
        assert stats.kstest(seen / prod(moduli), stats.uniform(-0.5, 1).cdf).pvalue > 1e-6
        residues = sent[0] / moduli[0]
        assert stats.kstest(residues, stats.uniform(0, 1).cdf).pvalue > 1e-6


def test_the_larger_ring_gives_the_same_products() -> None:
    small = choose_parameters(100, [6], 3)
    large = replace(
        small,
        degree=16384,
        plain_modulus=plain_prime(16384, 44),
        modulus_bits=(54, 54, 53, 53, 56),
        stride=2,
    )
    large = replace(large, samples=8200, most_columns=5)  # over both rows
    key = find("bfv").generate(large)
    sealer, draw = find("bfv").sealer(key.public), np.random.default_rng(1)
    X, g = draw.integers(-9, 10, (8200, 5)), draw.integers(-999, 1000, 8200)
    masked, mask = sealer.mask(sealer.product(sealer.encrypt(g), sealer.encode(X)))
    sent = sealer.to_bytes(masked)
    np.testing.assert_array_equal(
        sealer.unmask(key.open_product(key.product_from_bytes(sent)), mask), X.T @ g
    )
