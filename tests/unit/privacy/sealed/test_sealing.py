"""Sealing without encryption: slots, fixed point, parameters, and the clear twin against NumPy."""

import logging
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import ConfigError, DataError, MtcdError, WireError
from mtcd.privacy.sealed.bfv.cipher import find
from mtcd.privacy.sealed.bfv.fixed_point import TokenScale, fix_matrix
from mtcd.privacy.sealed.bfv.keys import parse_parameters
from mtcd.privacy.sealed.bfv.layout import Layout
from mtcd.privacy.sealed.bfv.parameters import (
    LEAST_BUDGET,
    SECURE_BITS,
    choose_parameters,
    plain_prime,
)
from mtcd.privacy.sealed.bfv.wire import PRODUCT, CipherFrame

CLEAR = find("clear")
CHOSEN = choose_parameters(200, [3], 4)


@given(
    st.integers(1, 90), st.integers(1, 16), st.sampled_from([1, 2, 3, 5]), st.integers(0, 2**32 - 1)
)
@settings(max_examples=60)
def test_rotated_diagonals_give_the_product_for_any_number_of_samples_and_columns(
    samples: int, columns: int, stride: int, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    layout = Layout(32, samples, columns)
    X, g = draw.integers(-9, 10, (samples, columns)), draw.integers(-9, 10, samples)
    vectors = layout.spread(g)
    np.testing.assert_array_equal(layout.gather(vectors), g)
    total = np.zeros(32, np.int64)
    for giant, babies in layout.steps(stride):
        total = layout.rotate(total, stride)
        for number, vector in enumerate(vectors):
            for baby in babies:
                diagonal = layout.diagonal(X, number, giant * stride + baby)
                total += layout.rotate(diagonal, -giant * stride) * layout.rotate(vector, baby)
    folded = layout.fold(total, 10**6 + 3)
    np.testing.assert_array_equal(folded, (X.T @ g) % (10**6 + 3))


def test_few_samples_need_few_diagonals() -> None:
    assert Layout(8192, 1000, 50).diagonals == 8  # 8 copies of the samples, 7 columns at each
    assert Layout(8192, 3700, 50).diagonals == 26
    assert Layout(8192, 5000, 50).diagonals == 51  # not 64: any number, not a power of two
    assert Layout(8192, 20000, 50).ciphertexts == 3


@pytest.mark.parametrize(("samples", "columns"), [(3700, 8193), (5000, 4097), (5000, 0)])
def test_columns_that_do_not_fit_are_refused(samples: int, columns: int) -> None:
    with pytest.raises(ConfigError, match="columns fit"):
        Layout(8192, samples, columns)


@pytest.mark.parametrize("samples", [1, 300, 3700, 20_000, 300_000])
@pytest.mark.parametrize("columns", [[1], [5, 50], [200, 3, 7]])
@pytest.mark.parametrize("visits", [2, 300])
def test_chosen_parameters_are_secure_and_leave_noise_budget(
    samples: int, columns: list[int], visits: int
) -> None:
    chosen = choose_parameters(samples, columns, visits)
    assert sum(chosen.modulus_bits) <= SECURE_BITS[chosen.degree]
    assert chosen.plain_modulus % (2 * chosen.degree) == 1
    assert chosen.budget() >= LEAST_BUDGET
    deviation = 2.0 ** chosen.flood_bits() / chosen.product_noise()
    assert deviation >= chosen.degree / 2 * 2.0**40


def test_too_little_noise_budget_and_too_little_security_are_refused_in_words() -> None:
    chosen = choose_parameters(5000, [50], 4)
    with pytest.raises(ConfigError, match="less than 128 bits of security"):
        replace(chosen, modulus_bits=(60, 60, 60, 60))
    small = replace(chosen, plain_modulus=plain_prime(8192, 44))
    for scheme in (CLEAR,):
        with pytest.raises(
            ConfigError, match=r"noise budget could fall to \d+ bits.*20 or more.*5000 samples"
        ):
            scheme.generate(small)
    with pytest.raises(ConfigError, match="more precision than 128-bit security"):
        choose_parameters(10**12, [5], 4)


@given(st.integers(0, 2**32 - 1), st.floats(1e-6, 1e6), st.booleans())
@settings(max_examples=40)
def test_fixed_point_keeps_its_error_bounds_and_no_product_reaches_half_of_the_modulus(
    seed: int, size: float, heavy: bool
) -> None:
    draw = np.random.default_rng(seed)
    chosen = CHOSEN
    X = draw.normal(size=(200, 3)) * size * np.array([1, 1e-3, 1e3])
    X[draw.random(X.shape) < 0.3] = 0
    if heavy:
        X[0] *= 30
    fixed, token = fix_matrix(X, chosen), TokenScale(chosen, limit=8.0)
    assert np.all(np.abs(fixed.rounded() - X) <= fixed.errors * (1 + 1e-9))
    worst = (
        np.sign(fixed.integers).T.astype(object)
        @ fixed.integers.astype(object)
        * chosen.token_bound
    )
    assert max(int(worst[j, j]) for j in range(3)) <= chosen.half
    assert token.integers([8.0, -8.0]).tolist() == [chosen.token_bound, -chosen.token_bound]
    g = draw.uniform(-8, 8, 200)
    assert np.all(np.abs(token.reals(token.integers(g)) - g) <= token.error * (1 + 1e-9))
    exact = fixed.integers.T @ token.integers(g)
    bound = (
        np.abs(X).sum(axis=0) * token.error
        + 8 * 200 * fixed.errors
        + 200 * token.error * fixed.errors
    )
    assert np.all(np.abs(fixed.products(exact, token) - X.T @ g) <= bound * (1 + 1e-9))


def test_values_beyond_what_was_agreed_are_refused() -> None:
    chosen = choose_parameters(20, [2], 4)
    token = TokenScale(chosen, limit=8.0)
    with pytest.raises(DataError, match=r"absolute value 9, but at most 8 was agreed"):
        token.integers([9.0] * 20)
    with pytest.raises(DataError, match="not finite"):
        token.integers([math.nan] * 20)
    with pytest.raises(DataError, match="not finite"):
        fix_matrix(np.full((20, 2), math.inf), chosen)
    sealer = CLEAR.sealer(CLEAR.generate(chosen).public)
    with pytest.raises(DataError, match="too large"):
        sealer.encode(np.full((20, 2), chosen.half // 20))
    outlier = np.zeros((20, 1))
    outlier[:, 0] = 1e-9
    outlier[0] = 1e9
    fix_matrix(outlier, chosen)  # the large value still has its resolution
    with pytest.raises(DataError, match="Expected 20 integers"):
        CLEAR.generate(chosen).encrypt([0.5] * 20)
    with pytest.raises(DataError, match="half of the plaintext modulus"):
        CLEAR.generate(chosen).encrypt([chosen.half + 1] * 20)


def test_a_visit_with_the_clear_twin_is_the_product_of_numpy() -> None:
    draw = np.random.default_rng(0)
    key = CLEAR.generate(choose_parameters(40, [3], 4))
    sealer = CLEAR.sealer(key.public)
    X, g, change = (
        draw.integers(-50, 50, (40, 3)),
        draw.integers(-99, 99, 40),
        draw.integers(-9, 9, 40),
    )
    vector = sealer.vector_from_bytes(key.to_bytes(key.encrypt(g)))
    masked, mask = sealer.mask(sealer.product(vector, sealer.encode(X)))
    answer = key.open_product(key.product_from_bytes(sealer.to_bytes(masked)))
    np.testing.assert_array_equal(sealer.unmask(answer, mask), X.T @ g)
    changed = sealer.rerandomise(
        sealer.subtract_plain(sealer.add_plain(vector, change), 2 * change)
    )
    np.testing.assert_array_equal(key.open_vector(sealer.flood_vector(changed)), g - change)
    with pytest.raises(WireError, match="can only be decrypted"):
        sealer.vector_from_bytes(sealer.to_bytes(sealer.flood_vector(changed)))
    with pytest.raises(WireError, match="primes"):
        key.product_from_bytes(
            CipherFrame(PRODUCT, 1, False, 3, 1, key._mark, bytes(24)).to_bytes()
        )


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b"[" * 100_000])
def test_bytes_that_are_no_parameters_are_refused(content: bytes) -> None:
    with pytest.raises(WireError, match="parameters"):
        parse_parameters(content)


def test_a_key_on_disk_is_private_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    key = CLEAR.generate(choose_parameters(10, [3], 4))
    path = tmp_path / "own" / "key"
    key.save(path)
    assert path.stat().st_mode & 0o777 == 0o600
    again = CLEAR.load(path)
    assert (again.fingerprint, again.public) == (key.fingerprint, key.public)
    assert list(path.parent.iterdir()) == [path]
    path.chmod(0o644)
    with pytest.raises(MtcdError, match="others can read it"):
        CLEAR.load(path)
    with pytest.raises(MtcdError, match="cannot be read"):
        CLEAR.load(tmp_path / "none")
    with pytest.raises(MtcdError, match="could not be written"):
        key.save(tmp_path / "own" / "key" / "below")
    assert not caplog.records
