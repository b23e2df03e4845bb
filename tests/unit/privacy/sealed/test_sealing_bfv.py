"""Sealing with BFV: the integers of the clear twin, noise within its estimate, uniform masks, keys
that stay."""

import copy
import logging
import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from mtcd.core.errors import ConfigError, MtcdError, WireError
from mtcd.privacy.sealed.bfv import seal_format
from mtcd.privacy.sealed.bfv.bfv import BfvKey, BfvSealer
from mtcd.privacy.sealed.bfv.bfv_ciphertexts import (
    BfvMasked,
    BfvVector,
    pack_rounded,
    rounded_size,
    unpack_rounded,
)
from mtcd.privacy.sealed.bfv.cipher import SecretKey, find
from mtcd.privacy.sealed.bfv.keys import uniform, uniform_residues
from mtcd.privacy.sealed.bfv.parameters import LEAST_BUDGET, Parameters, choose_parameters
from mtcd.privacy.sealed.bfv.seal_format import Polynomials

BFV, CLEAR = find("bfv"), find("clear")
# samples repeated in every segment; in both rows; in two ciphertexts
SHAPES = [(60, 7), (4097, 4), (9000, 3)]


@cache
def pair(samples: int, columns: int, visits: int = 6) -> tuple[BfvKey, BfvSealer]:
    key = BFV.generate(choose_parameters(samples, [columns], visits))
    sealer = BFV.sealer(key.public)
    assert isinstance(key, BfvKey)
    assert isinstance(sealer, BfvSealer)
    return key, sealer


def table(draw: np.random.Generator, chosen: Parameters, columns: int) -> np.ndarray:
    most = max(chosen.half // chosen.token_bound // chosen.samples, 1)
    return draw.integers(-most, most + 1, (chosen.samples, columns))


@given(
    st.sampled_from(SHAPES), st.integers(0, 2**32 - 1), st.lists(st.sampled_from("+-r"), max_size=6)
)
@settings(max_examples=8, deadline=None)
def test_any_chain_of_operations_gives_the_integers_of_the_clear_twin(
    shape: tuple[int, int], seed: int, operations: list[str]
) -> None:
    draw = np.random.default_rng(seed)
    key, sealer = pair(*shape)
    twin_key = CLEAR.generate(key.parameters)
    twin = CLEAR.sealer(twin_key.public)
    # wraps around, in both alike
    g = draw.integers(-key.parameters.half, key.parameters.half + 1, shape[0])
    X = table(draw, key.parameters, draw.integers(1, shape[1] + 1))
    opened = []
    for its_key, its_sealer in ((key, sealer), (twin_key, twin)):
        changes = np.random.default_rng(seed + 1)
        vector = its_sealer.vector_from_bytes(its_key.to_bytes(its_key.encrypt(g)))
        for operation in operations:
            change = changes.integers(-key.parameters.half, key.parameters.half + 1, shape[0])
            if operation == "+":
                vector = its_sealer.add_plain(vector, change)
            elif operation == "-":
                vector = its_sealer.subtract_plain(vector, change)
            else:
                vector = its_sealer.vector_from_bytes(
                    its_sealer.to_bytes(its_sealer.rerandomise(vector))
                )
        masked, mask = its_sealer.mask(its_sealer.product(vector, its_sealer.encode(X)))
        sent = its_sealer.to_bytes(masked)
        product = its_sealer.unmask(its_key.open_product(its_key.product_from_bytes(sent)), mask)
        sent = its_sealer.to_bytes(its_sealer.flood_vector(vector))
        opened.append([product, its_key.open_vector(its_key.vector_from_bytes(sent))])
    np.testing.assert_array_equal(opened[0][0], opened[1][0])
    np.testing.assert_array_equal(opened[0][1], opened[1][1])


def test_products_with_tables_of_zeros_and_with_few_nonzero_rows() -> None:
    key, sealer = pair(60, 7)
    g = np.arange(60) - 30
    single = np.zeros((60, 7), np.int64)
    single[17, 3] = 5
    for X in (np.zeros((60, 7), np.int64), single, np.ones((60, 1), np.int64)):
        masked, mask = sealer.mask(sealer.product(sealer.encrypt(g), sealer.encode(X)))
        np.testing.assert_array_equal(sealer.unmask(key.open_product(masked), mask), X.T @ g)


def test_the_noise_of_the_longest_chain_stays_within_its_estimate_and_flooding_leaves_20_bits() -> (
    None
):
    visits, columns = 6, 30
    key, sealer = pair(4097, columns, visits)
    chosen, draw = key.parameters, np.random.default_rng(3)
    X = table(draw, chosen, columns)
    vector: BfvVector = sealer.encrypt(draw.integers(-9, 10, 4097))
    for _ in range(visits):
        vector = sealer.rerandomise(sealer.add_plain(vector, draw.integers(-9, 10, 4097)))
    product = sealer.product(vector, sealer.encode(X))
    room = chosen.data_bits - np.log2(chosen.plain_modulus) - 1
    # the budget of a noise of one standard deviation
    expected = room - np.log2(chosen.product_noise())
    # the largest of 8192 is about four of them
    assert expected - 3 < key.noise_budget(product) < expected + 3
    flooded = sealer.flood_vector(vector)
    sent = key.vector_from_bytes(sealer.to_bytes(flooded))
    assert (
        LEAST_BUDGET
        <= key.noise_budget(sent)
        <= key.noise_budget(flooded)
        <= chosen.budget((0, 0)) + 1
    )
    fresh = sealer.flood_vector(sealer.encrypt(np.zeros(4097, int)))
    # a small noise cannot be told from a large one
    assert key.noise_budget(fresh) == key.noise_budget(flooded)


@pytest.mark.parametrize("columns", [3, 60, 300])
@pytest.mark.parametrize("samples", [60, 3700, 9000, 50_000])
def test_what_is_not_sent_of_a_product_costs_at_most_a_probability_of_2_to_the_minus_40(
    samples: int, columns: int
) -> None:
    chosen = choose_parameters(samples, [columns], 12)
    spared = chosen.spared()
    assert chosen.miss_bits(spared) >= 40 > chosen.miss_bits(3)
    assert chosen.miss_bits(0) >= 50


def test_halves_are_rounded_to_another_integer_about_as_often_as_was_estimated() -> None:
    """With so many bytes unsent that it happens: then the number of wrong coefficients is known."""
    key, sealer = pair(60, 7)
    chosen, level = key.parameters, key._context.levels[2]
    moduli, unsent, repeats = key._context.moduli[:2], (7,), 30
    matrix = sealer.encode(np.ones((60, 7), int))

    def coefficients(sent: Polynomials) -> np.ndarray:
        both = Polynomials(np.array([np.zeros_like(sent.limbs[0]), sent.limbs[0]]))
        plain = seal_format.seal.Plaintext()
        key._decryptor.decrypt(seal_format.ciphertext(key._seal, level, both), plain)
        return np.array([plain[place] for place in range(plain.coeff_count())])

    wrong = 0
    for _ in range(repeats):
        masked, _ = sealer.mask(sealer.product(sealer.encrypt(np.zeros(60, int)), matrix))
        data = memoryview(pack_rounded(masked.sent, moduli, unsent))
        rounded = unpack_rounded(data, moduli, chosen.degree, unsent)
        wrong += np.count_nonzero(coefficients(masked.sent) - coefficients(rounded))

    expected = repeats * 2.0 ** -chosen.miss_bits(unsent[0])
    assert 100 < expected < 200
    assert 0.4 * expected < wrong < 1.2 * expected


def test_rounded_bytes_are_off_by_half_of_what_was_dropped() -> None:
    moduli = [2**55 - 311, 2**54 - 33]
    draw = np.random.default_rng(2)
    limbs = np.stack([draw.integers(0, modulus, (2, 500), np.uint64) for modulus in moduli], axis=1)
    limbs[0, :, 0], limbs[0, :, 1] = 0, np.array(moduli) - 1

    def numbers(residues: np.ndarray) -> list[int]:
        p, q = moduli
        return [int(a) + p * ((int(b) - int(a)) * pow(p, -1, q) % q) for a, b in residues.T]

    for dropped in ((0, 0), (3, 1), (6, 5)):
        data = pack_rounded(Polynomials(limbs), moduli, dropped)
        assert len(data) == rounded_size(moduli, 500, dropped)
        again = unpack_rounded(memoryview(data), moduli, 500, dropped)
        for polynomial, count in enumerate(dropped):
            whole = moduli[0] * moduli[1]
            pairs = zip(numbers(again.limbs[polynomial]), numbers(limbs[polynomial]), strict=True)
            errors = [(new - old + whole // 2) % whole - whole // 2 for new, old in pairs]
            assert max(map(abs, errors)) <= (256**count // 2)
            assert count == 0 or max(errors) > 0.8 * 256**count / 2


def test_parameters_without_noise_budget_are_refused_before_a_key_is_made() -> None:
    chosen = choose_parameters(100, [3], 4)
    with pytest.raises(ConfigError, match="noise budget"):
        BFV.generate(Parameters(**{**vars(chosen), "visits": 10**9}))


def slots_of(key: BfvKey, masked: BfvMasked) -> np.ndarray:
    """All numbers that the key holder decrypts, before it adds those of a column."""
    [sent] = masked.sent.limbs
    return key._rounded(key._decryptor, np.array([np.zeros_like(sent), sent]))


def test_what_the_key_holder_decrypts_is_uniform_whatever_the_table() -> None:
    key, sealer = pair(60, 7)
    chosen, draw = key.parameters, np.random.default_rng(5)
    seen = []
    for X in (np.zeros((60, 7), np.int64), table(draw, chosen, 7)):
        product = sealer.product(sealer.encrypt(np.full(60, chosen.token_bound)), sealer.encode(X))
        slots = [slots_of(key, sealer.mask(product)[0]) for _ in range(3)]
        seen.append(np.concatenate(slots) % chosen.plain_modulus)
        counts = np.bincount(seen[-1] * 64 // chosen.plain_modulus, minlength=64)
        assert stats.chisquare(counts).pvalue > 1e-6
        low_bits = np.bincount(seen[-1] % 16, minlength=16)
        assert stats.chisquare(low_bits).pvalue > 1e-6
        assert not np.array_equal(slots[0], slots[1])
    assert stats.ks_2samp(*seen).pvalue > 1e-6


def test_masks_and_flooding_noise_are_drawn_from_their_ranges() -> None:
    drawn = uniform(97, 97_000)
    assert stats.chisquare(np.bincount(drawn, minlength=97)).pvalue > 1e-6
    moduli = [2**50 - 27, 2**49 - 81, 2**48 - 59]
    whole, bits = moduli[0] * moduli[1] * moduli[2], 70
    values = []
    for residues in uniform_residues(bits, 2000, moduli).T:
        parts = [
            int(r) * (whole // m) * pow(whole // m, -1, m)
            for r, m in zip(residues, moduli, strict=True)
        ]
        value = sum(parts) % whole
        values.append(value - whole if value > whole // 2 else value)
    assert -(2**bits) <= min(values) < -(0.99 * 2**bits)
    assert 0.99 * 2**bits < max(values) < 2**bits
    assert (
        stats.kstest([value / 2**bits for value in values], stats.uniform(-1, 2).cdf).pvalue > 1e-6
    )
    assert set(np.unique(uniform_residues(3, 2000, [101]))) == {
        (value - 8) % 101 for value in range(16)
    }


def test_encryptions_of_the_same_integers_have_nothing_in_common() -> None:
    key, sealer = pair(60, 7)
    vector = key.encrypt(np.zeros(60, int))
    first, again = (
        seal_format.polynomials(one.ciphertexts[0]).limbs
        for one in (vector, sealer.rerandomise(vector))
    )
    assert np.mean(first == again) < 1e-3
    assert key.to_bytes(vector) != key.to_bytes(key.encrypt(np.zeros(60, int)))


def secret_words(key: BfvKey) -> list[bytes]:
    """The first bytes of the secret polynomial as SEAL holds it, each long enough to be found by
    accident nowhere."""
    fields = bytes(seal_format._fields(key._secret))
    return [fields[start : start + 7] for start in range(1000, 1800, 8)]


def test_the_secret_key_is_in_no_bytes_log_or_repr_and_cannot_be_copied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key, sealer = pair(60, 7)
    vector = key.encrypt(np.zeros(60, int))
    product, _ = sealer.mask(sealer.product(vector, sealer.encode(np.ones((60, 1), int))))
    sent = (
        key.public
        + key.to_bytes(vector)
        + sealer.to_bytes(sealer.rerandomise(vector))
        + sealer.to_bytes(product)
    )
    words = secret_words(key)
    assert len(set(words)) > 90
    assert not any(word in sent for word in words)
    assert any(word in bytes(seal_format._fields(key._secret)) for word in words)
    assert repr(key) == str(key) == f"BfvKey({key.fingerprint})"
    for copying in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="cannot be pickled"):
            copying(key)
    assert not caplog.records


def test_a_restarted_key_holder_goes_on(tmp_path: Path) -> None:
    key, sealer = pair(60, 7)
    path = tmp_path / "sealing.key"
    key.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    again: SecretKey = BFV.load(path)
    assert (again.fingerprint, again.public) == (key.fingerprint, key.public)
    g = np.arange(60)
    np.testing.assert_array_equal(again.open_vector(sealer.encrypt(g)), g)
    content = path.read_bytes()
    for bad in (
        b"",
        content[:-40],
        content[: len(content) // 2],
        b"\xff" * 100,
        content[:-200] + bytes(200),
    ):
        path.write_bytes(bad)
        with pytest.raises(MtcdError, match="not a complete secret key"):
            BFV.load(path)


def test_a_key_of_other_parameters_or_of_another_run_is_not_mixed_up() -> None:
    (key, sealer), other = pair(60, 7), BFV.generate(choose_parameters(60, [7], 6))
    other_sealer = BFV.sealer(other.public)
    assert key.fingerprint != other.fingerprint
    for foreign in (
        key.to_bytes(key.encrypt(np.zeros(60, int))),
        sealer.to_bytes(sealer.encrypt(np.zeros(60, int))),
    ):
        with pytest.raises(WireError, match="belongs to another run"):
            other_sealer.vector_from_bytes(foreign)
