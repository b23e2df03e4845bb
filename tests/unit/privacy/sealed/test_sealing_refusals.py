"""What the ciphers refuse, each by its own message: misuse in this process, and false values of
others. Fuzzed bytes seldom come as far as these checks."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest

from mtcd.core.errors import ConfigError, DataError, WireError
from mtcd.privacy.sealed.bfv.cipher import Sealer, SecretKey, find
from mtcd.privacy.sealed.bfv.clear import unmask
from mtcd.privacy.sealed.bfv.fixed_point import (
    TokenScale,
    check_matrix,
    check_vector,
    fix_matrix,
)
from mtcd.privacy.sealed.bfv.keys import parse_parameters, split
from mtcd.privacy.sealed.bfv.parameters import Parameters, choose_parameters
from mtcd.privacy.sealed.bfv.wire import PRODUCT, VECTOR, CipherFrame

SAMPLES = 30
PARAMETERS = choose_parameters(SAMPLES, [3], 4)


@pytest.fixture(scope="module", params=["bfv", "clear"])
def pair(request: pytest.FixtureRequest) -> tuple[SecretKey, Sealer]:
    scheme = find(request.param)
    key = scheme.generate(PARAMETERS)
    return key, scheme.sealer(key.public)


def test_an_unknown_scheme_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no scheme 'bvf'.*'bfv'"):
        find("bvf")  # type: ignore[arg-type]


def test_what_was_flooded_can_only_be_decrypted(pair: tuple[SecretKey, Sealer]) -> None:
    """Flooding drops primes: a product with what is left would decrypt to noise."""
    _, sealer = pair
    vector = sealer.encrypt(np.arange(SAMPLES))
    flooded = sealer.flood_vector(vector)
    block = sealer.encode(np.ones((SAMPLES, 2), int))
    with pytest.raises(ValueError, match="was flooded"):
        sealer.product(flooded, block)


@pytest.mark.parametrize("columns", [0, PARAMETERS.most_columns + 1])
def test_products_of_a_wrong_number_of_columns_are_refused(
    pair: tuple[SecretKey, Sealer], columns: int
) -> None:
    key, sealer = pair
    product = sealer.product(
        sealer.encrypt(np.arange(SAMPLES)), sealer.encode(np.ones((SAMPLES, 2), int))
    )
    honest = CipherFrame.from_bytes(sealer.to_bytes(sealer.mask(product)[0]), PRODUCT)
    with pytest.raises(WireError, match=r"sealed\.columns is [0-9]+, more than any party has"):
        key.product_from_bytes(replace(honest, columns=columns).to_bytes())


def clear_vector() -> tuple[SecretKey, CipherFrame]:
    scheme = find("clear")
    key = scheme.generate(PARAMETERS)
    sealer = scheme.sealer(key.public)
    return key, CipherFrame.from_bytes(sealer.to_bytes(sealer.encrypt(np.arange(SAMPLES))), VECTOR)


def test_the_clear_cipher_refuses_numbers_beyond_the_modulus() -> None:
    key, frame = clear_vector()
    key.vector_from_bytes(frame.to_bytes())
    for beyond in (PARAMETERS.half + 1, -PARAMETERS.half - 1):
        content = np.full(SAMPLES, beyond, "<i8").tobytes()
        with pytest.raises(WireError, match="contains numbers beyond the modulus"):
            key.vector_from_bytes(replace(frame, content=content).to_bytes())
    for edge in (PARAMETERS.half, -PARAMETERS.half):
        content = np.full(SAMPLES, edge, "<i8").tobytes()
        key.vector_from_bytes(replace(frame, content=content).to_bytes())


def test_the_clear_cipher_refuses_an_unknown_mark_of_flooding() -> None:
    key, frame = clear_vector()
    with pytest.raises(WireError, match=r"sealed\.primes is 2, but 0 or 1 was expected"):
        key.vector_from_bytes(replace(frame, primes=2).to_bytes())


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([1, 2], "is not 3 integers"),
        ([1.0, 2.0, 3.0], "is not 3 integers"),
        ("abc", "is not 3 integers"),
        ([None] * 3, "is not 3 integers"),
        ([[1, 2, 3]], "is not 3 integers"),
        ([PARAMETERS.half + 1, 0, 0], "contains integers beyond the modulus"),
        ([0, -PARAMETERS.half - 1, 0], "contains integers beyond the modulus"),
    ],
)
def test_answers_that_are_no_integers_modulo_t_are_refused(answer: Any, message: str) -> None:
    with pytest.raises(WireError, match=message):
        unmask(answer, np.zeros(3, int), PARAMETERS)


@pytest.mark.parametrize("limit", [0.0, -1.0, np.inf, np.nan])
def test_a_token_needs_a_positive_limit(limit: float) -> None:
    with pytest.raises(ConfigError, match="must be a positive number"):
        TokenScale(PARAMETERS, limit)


@pytest.mark.parametrize("shape", [(SAMPLES + 1, 2), (SAMPLES - 1, 2), (SAMPLES,), (SAMPLES, 2, 1)])
def test_matrices_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=f"{SAMPLES} samples were agreed"):
        fix_matrix(np.ones(shape), PARAMETERS)
    with pytest.raises(DataError, match=f"integer matrix with {SAMPLES} rows"):
        check_matrix(np.ones(shape, int), PARAMETERS)


def test_a_matrix_that_is_not_of_integers_is_refused() -> None:
    with pytest.raises(DataError, match="Expected an integer matrix"):
        check_matrix(np.ones((SAMPLES, 2)), PARAMETERS)


@pytest.mark.parametrize("vector", [np.ones(SAMPLES), np.ones(SAMPLES + 1, int)])
def test_vectors_of_another_kind_or_size_are_refused(vector: Any) -> None:
    with pytest.raises(DataError, match=f"Expected {SAMPLES} integers"):
        check_vector(vector, PARAMETERS)


def test_columns_that_would_be_rounded_to_a_few_integers_are_refused() -> None:
    """Products of coarse columns would be those of another table, which no message would say."""
    matrix = np.random.default_rng(0).normal(size=(SAMPLES, 2))
    fix_matrix(matrix, PARAMETERS)
    tight = replace(PARAMETERS, token_bound=PARAMETERS.half // SAMPLES)
    with pytest.raises(DataError, match="Column 0 would be rounded to .* fewer than 8: train on"):
        fix_matrix(matrix, tight)


def parameters_with(**changed: Any) -> bytes:
    return json.dumps(asdict(PARAMETERS) | changed).encode()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"modulus_bits": [50]}, "has 1 entries, but 2 to 8 were expected"),
        ({"modulus_bits": [30] * 9}, "has 9 entries, but 2 to 8 were expected"),
        ({"modulus_bits": [30, 30]}, "has too few primes"),
        ({"modulus_bits": "50"}, "are not sizes of primes"),
        ({"plain_modulus": PARAMETERS.plain_modulus - 2}, "is not a prime that was expected"),
        ({"more": 1}, "do not have the expected fields"),
        ({"degree": 4096}, "parameters"),
        ({"degree": -1}, "parameters"),
        ({"samples": 0}, "parameters"),
        ({"samples": 2.5}, "parameters"),
        ({"modulus_bits": [218]}, "parameters"),
        ({"plain_modulus": 4}, "parameters"),
        ({"plain_modulus": 10**400}, "parameters"),
        ({"stride": True}, "parameters"),
        ({"token_bound": 2**60}, "parameters"),
        ({"visits": 10**400}, "parameters"),
        ({"most_columns": 10**9}, "parameters"),
    ],
)
def test_parameters_of_another_party_are_checked(changed: dict[str, Any], message: str) -> None:
    assert parse_parameters(parameters_with()) == PARAMETERS
    with pytest.raises(WireError, match=message):
        parse_parameters(parameters_with(**changed))


def test_a_modulus_needs_a_prime_beside_those_that_are_sent() -> None:
    with pytest.raises(ConfigError, match="too few primes: use choose_parameters"):
        Parameters(**asdict(PARAMETERS) | {"modulus_bits": (50, 50)})


@pytest.mark.parametrize("content", [b"", b"\x01" * 7, (9).to_bytes(8, "little") + b"12345678"])
def test_parts_that_do_not_fit_their_lengths_are_refused(content: bytes) -> None:
    with pytest.raises(WireError):
        split(content)


@pytest.mark.parametrize("data", [None, 3, "text"])
def test_what_is_no_block_of_bytes_is_no_frame(data: Any) -> None:
    with pytest.raises(WireError, match="is not a block of bytes"):
        CipherFrame.from_bytes(data, VECTOR)
