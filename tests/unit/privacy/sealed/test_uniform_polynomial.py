"""The uniform polynomial of a public key is a hash of a seed, and the key fits it."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from scipy import stats

from mtcd.privacy.sealed.bfv import seal_format
from mtcd.privacy.sealed.bfv.public_keys import PURPOSE, uniform_polynomial

MODULI = [2**55 - 311, 2**20 + 7]


def by_hand(seed: bytes, agreed: bytes, number: int, modulus: int, degree: int) -> list[int]:
    """Word by word, with Python's integers."""
    hashed = hashlib.shake_256()
    for part in (PURPOSE, agreed, number.to_bytes(4, "little"), seed):
        hashed.update(len(part).to_bytes(8, "little") + part)
    data, found = hashed.digest(64 * degree), []
    for start in range(0, len(data), 8):
        word = int.from_bytes(data[start : start + 8], "little") >> (64 - modulus.bit_length())
        if word < modulus:
            found.append(word)
    return found[:degree]


def test_it_is_shake_256_with_rejection() -> None:
    seed = bytes(range(32))
    found = uniform_polynomial(seed, b"agreed", MODULI, 300)
    for number, modulus in enumerate(MODULI):  # of the second prime, half of the words are rejected
        assert found[number].tolist() == by_hand(seed, b"agreed", number, modulus, 300)


def test_it_is_uniform_and_differs_by_seed_parameters_and_prime() -> None:
    rows = {
        name: uniform_polynomial(seed, agreed, [MODULI[0]] * 2, 4000)
        for name, seed, agreed in (
            ("one", bytes(32), b"x"),
            ("another seed", b"\x01" + bytes(31), b"x"),
            ("other parameters", bytes(32), b"y"),
        )
    }
    flat = [row for found in rows.values() for row in found]
    for row in flat:
        assert stats.kstest(row / MODULI[0], "uniform").pvalue > 1e-6
    for place, row in enumerate(flat):
        for other in flat[:place]:
            assert not np.array_equal(row, other)
            assert abs(stats.pearsonr(row.astype(float), other.astype(float)).statistic) < 0.1


def test_the_public_key_has_small_errors_for_the_polynomial_of_its_seed() -> None:
    """b + a s = -e: few bits, in every prime alike."""
    pytest.importorskip("tenseal")
    from mtcd.privacy.sealed.bfv.cipher import find
    from mtcd.privacy.sealed.bfv.parameters import choose_parameters

    key = find("bfv").generate(choose_parameters(60, [7], 6))
    keys = key._keys  # type: ignore[attr-defined]
    context = keys.context
    a = context.uniform(keys.seed)
    s = seal_format.secret_limbs(key._secret, len(context.moduli))  # type: ignore[attr-defined]
    errors = []
    for number, modulus in enumerate(context.moduli):
        product = a[number].astype(object) * s[number].astype(object)
        errors.append((keys.first[number].astype(object) + product) % modulus)
    limbs = np.array(errors).astype(np.uint64)[: context.primes]

    # SEAL takes the NTT form back, as that of a ciphertext
    level = context.levels[context.primes]
    fields = seal_format.Polynomials(np.array([limbs, limbs])).fields(level, ntt=True)
    item = seal_format.loaded(
        seal_format.seal.Ciphertext(), context.seal, seal_format._framed(fields)
    )
    context.evaluator.transform_from_ntt_inplace(item)
    found = seal_format.polynomials(item).limbs[0]
    small = [
        np.where(row > modulus // 2, row.astype(np.int64) - modulus, row.astype(np.int64))
        for row, modulus in zip(found, context.moduli, strict=False)
    ]
    np.testing.assert_array_equal(small[0], small[1])
    assert np.abs(small[0]).max() <= 21
    assert 3.0 < small[0].std() < 3.5


def test_keys_of_one_run_have_a_seed_of_their_own() -> None:
    pytest.importorskip("tenseal")
    from mtcd.privacy.sealed.bfv.cipher import find
    from mtcd.privacy.sealed.bfv.parameters import choose_parameters

    chosen = choose_parameters(60, [7], 6)
    seeds = {find("bfv").generate(chosen)._keys.seed for _ in range(3)}  # type: ignore[attr-defined]
    assert len(seeds) == 3
