"""Bounds of sealed trainings: numbers on a bound are accepted, those just beyond it are not."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import ConfigError, DataError, WireError
from mtcd.privacy.sealed.bfv import parameters as parameters_of_bfv
from mtcd.privacy.sealed.bfv.bfv_ciphertexts import pack_rounded, unpack_rounded
from mtcd.privacy.sealed.bfv.cipher import SecretKey, find
from mtcd.privacy.sealed.bfv.clear import unmask
from mtcd.privacy.sealed.bfv.fixed_point import TokenScale, check_vector, fix_matrix
from mtcd.privacy.sealed.bfv.keys import join, parse_parameters, split, uniform
from mtcd.privacy.sealed.bfv.parameters import (
    LEAST_BUDGET,
    SECURE_BITS,
    Parameters,
    choose_parameters,
    plain_prime,
)
from mtcd.privacy.sealed.bfv.public_keys import uniform_polynomial
from mtcd.privacy.sealed.bfv.seal_format import Polynomials, packed_size
from mtcd.privacy.sealed.bfv.wire import VECTOR, CipherFrame
from mtcd.privacy.sealed.checks import check_columns
from mtcd.privacy.sealed.conditions import cap_note, estimated_gap, largest_gap
from mtcd.privacy.sealed.participant import columns_from_bytes, sizes_from
from mtcd.privacy.sealed.payloads import SealedToken, as_block
from mtcd.privacy.sealed.plan import LabelSums, beside, code_length
from mtcd.privacy.sealed.scales import Scales
from mtcd.protocol.codec.limits import Bounds

SAMPLES = 30
PARAMETERS = choose_parameters(SAMPLES, [3], 4)
MOST_COLUMNS = 1_000_000


@pytest.mark.parametrize("apart", [0, 9, 10])
def test_a_column_singles_out_ten_rows_or_none(apart: int) -> None:
    column = (np.arange(40) < apart).astype(float)[:, None]
    if apart == 9:
        with pytest.raises(DataError, match="in 9 rows only"):
            check_columns(column, "p")
    else:
        check_columns(column, "p")


@pytest.mark.parametrize("columns", [0, 1, MOST_COLUMNS, MOST_COLUMNS + 1, True, 2.0, None])
def test_numbers_of_columns_that_are_told(columns: Any) -> None:
    """In a report of one party, and in the settings that the label holder sends to all."""
    told, settings = json.dumps({"columns": columns}).encode(), {"columns": [3, columns]}
    if columns in (1, MOST_COLUMNS) and columns is not True:
        assert columns_from_bytes("p", told) == columns
        assert sizes_from({**settings, "start": 1.0}, 2).columns == (3, columns)
        return
    with pytest.raises(DataError, match="p: the number of columns is out of range"):
        columns_from_bytes("p", told)
    with pytest.raises(WireError, match="is out of range"):
        sizes_from({**settings, "start": 1.0}, 2)


@pytest.mark.parametrize("start", [0.0, 5e-324, math.nextafter(1e300, 0.0), 1e300, 1, math.nan])
def test_the_bound_of_f_that_is_told(start: Any) -> None:
    settings = {"columns": [1], "start": start}
    if start in (5e-324, math.nextafter(1e300, 0.0)):
        assert sizes_from(settings, 1).start == start
        return
    with pytest.raises(WireError, match="is not a finite number above 0"):
        sizes_from(settings, 1)


def test_scales_of_a_token_are_positive() -> None:
    token = SealedToken(1, 0, np.ones(0), 5e-324, 5e-324, as_block(b""))
    bounds = Bounds("run", 2, frozenset(), (1,))
    token.check(bounds)
    for name in ("scale", "stretch"):
        with pytest.raises(WireError, match="scale is not positive"):
            replace(token, **{name: 0.0}).check(bounds)


def test_estimates_of_the_gap_where_f_stands_still() -> None:
    still = [(0, 2.0), (1, 2.0), (2, 2.0)]
    assert estimated_gap(still) == 0.0
    assert largest_gap(still) == 0.0
    said = cap_note(2, still, server=True)
    assert "The estimated gap is 0.0e+00 (relative)" in said
    # what may be left otherwise is not more
    assert "if it slows down" not in said


def test_a_gap_is_relative_to_f_where_the_optimum_would_be_0() -> None:
    assert largest_gap([(0, 2.0), (1, 1.0)]) == 1.0
    assert largest_gap([(1, 4.0)]) is None


def test_sums_over_labels_use_up_their_bits_exactly() -> None:
    """Of 20 samples, 10 bits: 5 for 2, 4 for 1 and for -1, 1 for 0."""
    assert [code_length(number) for number in (2, 1, -1, 0)] == [5, 4, 4, 1]
    sums = LabelSums(20, 1.0, 0.0)
    assert [sums.tell(2.0), sums.tell(1.0)] == [2.0, 1.0]
    assert not sums.exhausted
    assert sums.tell(0.0) == 0.0
    assert sums.exhausted
    assert sums.tell(0.0) is None

    # one bit more than there are
    sums = LabelSums(20, 1.0, 0.0)
    assert [sums.tell(2.0), sums.tell(2.0)] == [2.0, 2.0]
    assert sums.exhausted
    sums = LabelSums(20, 1.0, 0.0)
    assert [sums.tell(2.0), sums.tell(0.0), sums.tell(2.0)] == [2.0, 0.0, None]


@pytest.mark.parametrize("fine", [True, False])
def test_a_column_needs_sixteen_integers_unless_its_values_are_all_as_large(fine: bool) -> None:
    """Values lie 1 apart from the median, but for one that takes the room: a scale of 16 is enough,
    one of 8 is not. Values of the same size have no finer scale, whatever it is."""
    samples, depth = 30, 2
    parameters = choose_parameters(samples + beside(depth), (4,), 10)

    def scales(finer: float) -> Scales:
        return Scales(parameters, samples, 0.25, 40.0, 3, finer)

    column = np.where(np.arange(samples) % 2, 1.0, -1.0)[:, None]
    extreme = column.copy()
    extreme[0], extreme[1] = -20.0, 20.0
    finer = 1.0
    while scales(finer).integers(extreme)[1][0] > (16.0 if fine else 8.0):
        finer *= 1.1
    at_limit = scales(finer)
    assert at_limit.integers(extreme)[1].tolist() == [16.0 if fine else 8.0]
    if fine:
        at_limit.check_resolution(extreme, "p")
    else:
        with pytest.raises(DataError, match="most of its values differ by 8.0 integers"):
            at_limit.check_resolution(extreme, "p")

    while scales(finer).integers(column)[1][0] > 8.0:
        finer *= 1.1
    scales(finer).check_resolution(column, "p")


@pytest.mark.parametrize("exponent", [-40, -3, 0, 5])
def test_sums_are_as_fine_as_f_at_the_start_is_small(exponent: int) -> None:
    parameters = choose_parameters(30 + beside(2), (4,), 10)
    sums = Scales(parameters, 30, 0.25, 2.0**exponent, 3).sums
    assert sums * 2.0**exponent <= parameters.half / 9 < 2 * sums * 2.0**exponent


# the cipher


@pytest.fixture(scope="module", params=["bfv", "clear"])
def key(request: pytest.FixtureRequest) -> SecretKey:
    if request.param == "bfv":
        pytest.importorskip("tenseal")
    return find(request.param).generate(PARAMETERS)


@pytest.mark.parametrize("columns", [1, PARAMETERS.most_columns])
def test_products_of_one_column_and_of_the_most(key: SecretKey, columns: int) -> None:
    sealer = find("bfv" if "Bfv" in type(key).__name__ else "clear").sealer(key.public)
    matrix = np.arange(SAMPLES * columns).reshape(SAMPLES, columns) % 7 - 3
    vector = np.arange(SAMPLES) - 10
    product = sealer.product(sealer.encrypt(vector), sealer.encode(matrix))
    masked, mask = sealer.mask(product)
    opened = key.open_product(key.product_from_bytes(sealer.to_bytes(masked)))
    assert unmask(opened, mask, PARAMETERS).tolist() == (matrix.T @ vector).tolist()


def test_check_columns_alone_may_have_any_integers(key: SecretKey) -> None:
    sealer = find("bfv" if "Bfv" in type(key).__name__ else "clear").sealer(key.public)
    matrix = np.ones((SAMPLES, 2), int)
    matrix[:, 1] = PARAMETERS.half
    sealer.encode(matrix, checks=1)
    with pytest.raises(DataError, match="Column 1 is too large"):
        sealer.encode(matrix)


def test_integers_up_to_half_of_the_modulus() -> None:
    half = PARAMETERS.half
    edges = np.array([half, -half, 0])
    assert unmask(edges, np.zeros(3, int), PARAMETERS).tolist() == edges.tolist()
    assert check_vector(edges, PARAMETERS, 3).tolist() == edges.tolist()
    for beyond in (half + 1, -half - 1):
        with pytest.raises(DataError, match="exceeds half of the plaintext modulus"):
            check_vector(np.array([0, beyond]), PARAMETERS, 2)


def test_a_token_may_be_as_large_as_its_limit() -> None:
    scale = TokenScale(PARAMETERS, 2.0)
    assert scale.integers([2.0, -2.0]).tolist() == [PARAMETERS.token_bound, -PARAMETERS.token_bound]
    with pytest.raises(DataError, match="at most 2 was agreed"):
        scale.integers([math.nextafter(2.0, 3.0)])


def test_a_column_needs_eight_integers_and_one_of_zeros_none() -> None:
    """N ones have a scale of (t / 2B - N / 2) / N: 8 where t / 2B is 8.5 N."""
    ones = np.ones((SAMPLES, 2))
    ones[:, 1] = 0.0
    room = int(8.5 * SAMPLES)
    enough = replace(PARAMETERS, token_bound=PARAMETERS.half // room)
    assert enough.half // enough.token_bound == room
    found = fix_matrix(ones, enough)
    assert found.scales.tolist() == [8.0, 1.0]
    assert found.integers.tolist() == [[8, 0]] * SAMPLES
    with pytest.raises(DataError, match="Column 0 would be rounded to"):
        fix_matrix(ones, replace(PARAMETERS, token_bound=PARAMETERS.half // (room - 1)))


def parameters_of(**changed: Any) -> Parameters:
    return Parameters(**{**asdict(PARAMETERS), **changed})


@pytest.mark.parametrize(
    ("allowed", "refused", "said"),
    [
        (
            {"modulus_bits": (56, 56, 56, 50)},
            {"modulus_bits": (56, 56, 56, 51)},
            "less than 128 bits of security",
        ),
        (
            {"modulus_bits": (54, 54, 54, 54)},
            {"modulus_bits": (54, 54, 54)},
            "has too few primes",
        ),
        (
            {"plain_modulus": 2**60 - 1},
            {"plain_modulus": 2**60},
            "has more than 60 bits",
        ),
        (
            {"token_bound": PARAMETERS.half},
            {"token_bound": PARAMETERS.half + 1},
            "exceeds half of the plaintext modulus",
        ),
    ],
)
def test_parameters(allowed: dict[str, Any], refused: dict[str, Any], said: str) -> None:
    assert PARAMETERS.degree == 8192
    assert SECURE_BITS[8192] == 218
    parameters_of(**allowed)
    with pytest.raises(ConfigError, match=said):
        parameters_of(**refused)


def test_parameters_from_elsewhere_have_two_to_eight_primes_of_30_to_56_bits() -> None:
    def refusal(sizes: list[int]) -> str:
        modulus = plain_prime(16384, 30)
        changed = {"degree": 16384, "plain_modulus": modulus, "token_bound": 1000}
        told = json.dumps(asdict(PARAMETERS) | changed | {"modulus_bits": sizes}).encode()
        try:
            parse_parameters(told)
        except WireError as error:
            return str(error)
        return ""

    assert refusal([56] * 7) == ""
    # sizes that may be, but leave too little room for noise
    assert "noise budget" in refusal([56, 30, 30, 56])
    assert refusal([30] * 8) == ""
    assert "too few primes" in refusal([56, 56])
    for sizes in ([29, 56, 56, 56], [57, 56, 56, 56]):
        assert "are not sizes of primes" in refusal(sizes)
    assert "has 9 entries" in refusal([30] * 9)
    assert "has 1 entries" in refusal([30])


def test_the_budget_may_be_as_small_as_the_least(monkeypatch: pytest.MonkeyPatch) -> None:
    def left(bits: int) -> None:
        monkeypatch.setattr(Parameters, "budget", lambda self: bits)

    left(LEAST_BUDGET)
    PARAMETERS.check_budget()
    left(LEAST_BUDGET - 1)
    with pytest.raises(ConfigError, match=f"could fall to {LEAST_BUDGET - 1} bits"):
        PARAMETERS.check_budget()


def test_bytes_are_dropped_while_the_least_budget_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    most = parameters_of_bfv.MOST_DROPPED
    left = PARAMETERS.budget(most)
    monkeypatch.setattr(parameters_of_bfv, "LEAST_BUDGET", left)
    assert PARAMETERS.dropped() == most
    monkeypatch.setattr(parameters_of_bfv, "LEAST_BUDGET", left + 1)
    assert PARAMETERS.dropped() == (0, 0)


def test_bytes_are_spared_while_misses_are_rare_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    misses = [PARAMETERS.miss_bits(count) for count in range(3)]
    assert sorted(misses, reverse=True) == misses
    for count, bits in enumerate(misses):
        monkeypatch.setattr(parameters_of_bfv, "MISSES", bits)
        assert PARAMETERS.spared() == count
    monkeypatch.setattr(parameters_of_bfv, "MISSES", misses[0] + 1)
    assert PARAMETERS.spared() == 0


def test_the_noise_of_what_is_decrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    bfv = pytest.importorskip("mtcd.privacy.sealed.bfv.bfv")
    secret = find("bfv").generate(PARAMETERS)
    sealer = find("bfv").sealer(secret.public)
    vector = sealer.encrypt(np.arange(SAMPLES))
    left = secret.noise_budget(vector)
    monkeypatch.setattr(bfv, "LEAST_TO_DECRYPT", left)
    assert secret.open_vector(vector).tolist() == list(range(SAMPLES))
    monkeypatch.setattr(bfv, "LEAST_TO_DECRYPT", left + 1)
    with pytest.raises(WireError, match="has too much noise"):
        secret.open_vector(vector)


@pytest.mark.parametrize("stride", [1, 2, 8, 31, 32, 40])
def test_rotation_keys_are_for_the_shifts_of_products(stride: int) -> None:
    """By 1 for the next diagonal, and by the stride after so many: what the steps ask for, and no
    more, as each key takes megabytes."""
    keys = pytest.importorskip("mtcd.privacy.sealed.bfv.public_keys")
    for columns in (1, PARAMETERS.degree):
        parameters = replace(PARAMETERS, stride=stride, most_columns=columns)
        used = set()
        for giant, babies in parameters.layout(columns).steps(stride):
            if max(babies) > 0:
                used.add(1)
            if giant > 0:
                used.add(stride)
        assert len(used) == {1: 0, PARAMETERS.degree: 1 + (1 < stride < 32)}[columns]
        found = keys.Context.elements(SimpleNamespace(parameters=parameters))
        assert found == sorted(pow(3, shift, 2 * parameters.degree) for shift in used)


def test_coefficients_are_below_their_prime() -> None:
    primes, degree = [97, 89], 2
    sent = Polynomials(np.array([[[96, 0], [88, 88]]], np.uint64)).pack(primes)
    assert len(sent) == packed_size(primes, degree, 1)
    found = Polynomials.unpack(memoryview(sent), primes, degree, 1, seeded=False)
    assert found.limbs.tolist() == [[[96, 0], [88, 88]]]
    for place, prime in ((0, 97), (1, 97), (2, 89), (3, 89)):
        beyond = bytearray(sent)
        beyond[place] = prime
        with pytest.raises(WireError, match="coefficients beyond the modulus"):
            Polynomials.unpack(memoryview(beyond), primes, degree, 1, seeded=False)


def test_rounded_coefficients_are_below_their_prime() -> None:
    """a + 97 b, with a below 97 and b below 89."""
    primes, degree = [97, 89], 2
    largest = 96 + 97 * 88
    whole = np.array([largest, 97], np.uint64)
    limbs = np.array([[whole % 97, whole % 89]], np.uint64)
    sent = pack_rounded(Polynomials(limbs), primes, (0,))
    assert list(sent) == [96, 0, 88, 1]
    found = unpack_rounded(memoryview(sent), primes, degree, (0,))
    assert found.limbs.tolist() == limbs.tolist()
    for place, prime in ((0, 97), (1, 97), (2, 89), (3, 89)):
        beyond = bytearray(sent)
        beyond[place] = prime
        with pytest.raises(WireError, match="coefficients beyond the modulus"):
            unpack_rounded(memoryview(beyond), primes, degree, (0,))


@pytest.mark.parametrize("modulus", [2, 3, 97, 128, 2**20 + 7])
def test_uniform_numbers_are_below_their_modulus(modulus: int) -> None:
    """As many words as the bits of a modulus have room for are drawn, and those beyond it left
    out: of 97, that is one of four."""
    count = 5000
    secret = uniform(modulus, count)
    [public] = uniform_polynomial(bytes(32), b"", [modulus], count)
    for found in (secret, public):
        assert len(found) == count
        assert found.min() >= 0
        assert found.max() < modulus
    if modulus < 100:
        assert set(secret) == set(public.tolist()) == set(range(modulus))


def test_a_frame_may_be_empty_and_has_a_seed_or_none() -> None:
    frame = CipherFrame(VECTOR, 1, False, 0, 1, bytes(16), b"")
    assert CipherFrame.from_bytes(frame.to_bytes(), VECTOR) == frame
    seeded = replace(frame, seeded=True)
    assert CipherFrame.from_bytes(seeded.to_bytes(), VECTOR) == seeded
    with pytest.raises(WireError, match="seeded is 2, but 0 or 1"):
        CipherFrame.from_bytes(replace(frame, seeded=2).to_bytes(), VECTOR)
    with pytest.raises(WireError, match="too few for a header"):
        CipherFrame.from_bytes(frame.to_bytes()[:-1], VECTOR)


def test_parts_of_a_block_end_with_it() -> None:
    parts = [b"", b"abc", b""]
    assert split(join(parts)) == split(join(parts), 3) == parts
    for count in (2, 4):
        with pytest.raises(WireError, match="has 3 parts, not as many as expected"):
            split(join(parts), count)


def test_an_entry_between_two_integers_has_the_largest_error() -> None:
    scale = TokenScale(PARAMETERS, 2.0)
    between = (np.arange(8) + 0.5) * 2.0 / PARAMETERS.token_bound
    lost = np.abs(scale.reals(scale.integers(between)) - between)
    np.testing.assert_allclose(lost, scale.error, rtol=1e-3)
