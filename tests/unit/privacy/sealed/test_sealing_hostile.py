"""Sealed values from hostile parties: each is refused in words, none reaches the native library,
none crashes it."""

import hashlib
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtcd.core.errors import MtcdError, WireError
from mtcd.privacy.sealed.bfv.cipher import Sealer, SecretKey, find
from mtcd.privacy.sealed.bfv.keys import join, split
from mtcd.privacy.sealed.bfv.parameters import choose_parameters
from mtcd.privacy.sealed.bfv.wire import PRODUCT, PUBLIC, VECTOR, CipherFrame

BFV = find("bfv")
SAMPLES = 30
# where the coefficients of each begin, in a token
PRIMES = [prime * 8192 * 2 * 7 for prime in range(3)]
# one polynomial modulo two primes, without the lowest byte
SIZE = 8192 * (7 + 7 - 1)


@cache
def pair() -> tuple[SecretKey, Sealer]:
    key = BFV.generate(choose_parameters(SAMPLES, [3], 4))
    return key, BFV.sealer(key.public)


@cache
def honest(kind: int) -> bytes:
    key, sealer = pair()
    vector = sealer.encrypt(np.arange(SAMPLES))
    if kind == VECTOR:
        return sealer.to_bytes(vector)
    if kind == PUBLIC:
        return key.public
    product = sealer.product(vector, sealer.encode(np.ones((SAMPLES, 3), int)))
    return sealer.to_bytes(sealer.mask(product)[0])


def read(kind: int, data: bytes) -> object:
    key, sealer = pair()
    if kind == PUBLIC:
        return BFV.sealer(data)
    return sealer.vector_from_bytes(data) if kind == VECTOR else key.product_from_bytes(data)


def signed(data: bytes) -> bytes:
    """With a checksum that fits, as an attacker would send it."""
    return data[:-16] + hashlib.sha256(data[:-16]).digest()[:16]


@pytest.mark.parametrize("kind", [VECTOR, PRODUCT, PUBLIC])
def test_honest_bytes_are_read(kind: int) -> None:
    assert read(kind, honest(kind))


@given(st.sampled_from([VECTOR, PRODUCT, PUBLIC]), st.data())
@settings(max_examples=30, deadline=None)
def test_truncated_and_flipped_bytes_are_refused(kind: int, data: st.DataObject) -> None:
    good = honest(kind)
    cut = data.draw(st.integers(0, len(good) - 1))
    with pytest.raises(WireError):
        read(kind, good[:cut])
    place, bit = data.draw(st.integers(0, len(good) - 1)), data.draw(st.integers(0, 7))
    flipped = bytearray(good)
    flipped[place] ^= 1 << bit
    with pytest.raises(WireError):
        read(kind, bytes(flipped))


@given(st.sampled_from([VECTOR, PRODUCT, PUBLIC]), st.integers(0, 31), st.integers(0, 255))
@settings(max_examples=50, deadline=None)
def test_headers_with_any_byte_changed_are_refused_even_with_a_fitting_checksum(
    kind: int, place: int, value: int
) -> None:
    changed = bytearray(honest(kind))
    if changed[place] == value:
        return
    changed[place] = value
    # another number of columns is a valid message
    if kind == PRODUCT and place == 8 and 1 <= value <= 3:
        read(kind, signed(bytes(changed)))
        return
    if kind == PUBLIC and 6 <= place < 16:  # not used in public keys
        return
    with pytest.raises(WireError):
        read(kind, signed(bytes(changed)))


@given(st.sampled_from([VECTOR, PRODUCT, PUBLIC]), st.binary(max_size=200))
@settings(max_examples=60, deadline=None)
def test_any_other_bytes_are_refused(kind: int, data: bytes) -> None:
    for attempt in (data, honest(kind)[:32] + data, signed(honest(kind)[:32] + data + bytes(16))):
        with pytest.raises(WireError):
            read(kind, attempt)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ciphertexts": 2**32 - 1}, "ciphertexts"),
        ({"ciphertexts": 0}, "ciphertexts"),
        ({"columns": 2**32 - 1}, "columns"),
        ({"columns": 0}, "columns"),
        ({"primes": 3}, "primes"),
        ({"seeded": True}, "seeded"),
        ({"fingerprint": bytes(16)}, "another run"),
        ({"kind": VECTOR}, "kind"),
        ({"content": b""}, "bytes of content"),
        ({"content": b"\xff" * SIZE}, "coefficients beyond the modulus"),
    ],
)
def test_frames_that_lie_are_refused(change: dict[str, object], message: str) -> None:
    frame = CipherFrame.from_bytes(honest(PRODUCT), PRODUCT)
    assert len(frame.content) == SIZE
    with pytest.raises(WireError, match=message):
        read(PRODUCT, CipherFrame(**{**vars(frame), **change}).to_bytes())  # type: ignore[arg-type]


def test_a_vector_that_is_not_encrypted_is_refused() -> None:
    frame = CipherFrame.from_bytes(honest(VECTOR), VECTOR)
    half = len(frame.content) // 2
    for content in (
        bytes(2 * half),
        b"".join(frame.content[p : p + 8192 * 7] + bytes(8192 * 7) for p in PRIMES),
    ):
        with pytest.raises(WireError, match="not encrypted"):
            read(VECTOR, CipherFrame(**{**vars(frame), "content": content}).to_bytes())


def test_a_made_up_token_is_refused_because_of_its_noise() -> None:
    key, sealer = pair()
    frame = CipherFrame.from_bytes(
        sealer.to_bytes(sealer.flood_vector(sealer.encrypt(range(SAMPLES)))), 1
    )
    content = np.random.default_rng(0).integers(0, 64, len(frame.content)).astype(np.uint8)
    forged = CipherFrame(**{**vars(frame), "content": content.tobytes()}).to_bytes()
    with pytest.raises(WireError, match="too much noise"):
        key.open_vector(key.vector_from_bytes(forged))
    flipped = bytearray(frame.content)
    flipped[8192 + 7 * 1000 + 5] ^= 1  # one coefficient of many
    damaged = CipherFrame(**{**vars(frame), "content": bytes(flipped)}).to_bytes()
    with pytest.raises(WireError, match="too much noise"):
        key.open_vector(key.vector_from_bytes(damaged))


def test_a_made_up_product_is_answered_with_as_many_numbers_as_any_other() -> None:
    """Nothing tells it from an honest one, which is as uniform; only its sender uses the answer."""
    key, _ = pair()
    frame = CipherFrame.from_bytes(honest(PRODUCT), PRODUCT)
    content = np.random.default_rng(0).integers(0, 64, SIZE).astype(np.uint8).tobytes()
    forged = key.product_from_bytes(CipherFrame(**{**vars(frame), "content": content}).to_bytes())
    assert key.open_product(forged).shape == (3,)


def test_lengths_inside_public_keys_are_checked() -> None:
    frame = CipherFrame.from_bytes(honest(PUBLIC), PUBLIC)
    agreed, first, seed, *rotations = split(frame.content)

    def attempt(content: bytes) -> None:
        mark = hashlib.sha256(content).digest()[:16]
        read(
            PUBLIC,
            CipherFrame(**{**vars(frame), "content": content, "fingerprint": mark}).to_bytes(),
        )

    attempt(frame.content)
    huge = (2**63).to_bytes(8, "little") + frame.content[8:]
    beyond = first[:-7] + b"\xff" * 7
    parts = [first, seed, *rotations]
    other = agreed.replace(b'"samples": 30', b'"samples": 5000')
    assert other != agreed
    for content in (
        b"",
        huge,
        join([agreed]),
        join([agreed, *parts, parts[0]]),
        join([agreed, beyond, *parts[1:]]),
        join([agreed, first[:-1], *parts[1:]]),
        join([agreed, first, seed[:-1], *rotations]),
        join([agreed, first, seed + b"0", *rotations]),
        join([other, *parts]),
        join([b"{}", *parts]),
    ):
        with pytest.raises(WireError):
            attempt(content)


def test_a_second_polynomial_of_the_holders_choice_is_refused() -> None:
    """There is no place for one: with a trapdoor in it, requests would tell the whole table."""
    frame = CipherFrame.from_bytes(honest(PUBLIC), PUBLIC)
    agreed, first, _, *rotations = split(frame.content)
    content = join([agreed, first, first, *rotations])
    mark = hashlib.sha256(content).digest()[:16]
    forged = CipherFrame(**{**vars(frame), "content": content, "fingerprint": mark})
    with pytest.raises(WireError, match=r"sealed\.keys do not have the size"):
        read(PUBLIC, forged.to_bytes())


def test_a_party_with_more_columns_than_agreed_is_told() -> None:
    _, sealer = pair()
    with pytest.raises(MtcdError, match="at most 3 columns"):
        sealer.encode(np.ones((SAMPLES, 4), int))
