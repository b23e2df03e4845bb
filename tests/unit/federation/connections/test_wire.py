"""Frames and openings as bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mtcd.core.errors import WireError
from mtcd.federation.connections.wire import (
    ANSWER,
    LONGEST_OPENING_BYTES,
    OPENING_HEAD_BYTES,
    REQUEST,
    Frame,
    FrameReader,
    Opening,
    decode_opening,
    frame_head,
    opening_bytes,
)

FRAMES = st.builds(
    Frame,
    st.sampled_from([REQUEST, ANSWER]),
    st.text("abcxyz/_", max_size=46),
    st.integers(0, 2**64 - 1),
    st.binary(max_size=300),
)


def read(reader: FrameReader, data: bytes, pieces: list[int]) -> list[Frame]:
    """What a reader makes of bytes that come in pieces of these lengths, in turn."""
    found, turn = [], 0
    while data:
        count = min(len(reader.target), pieces[turn % len(pieces)], len(data))
        reader.target[:count] = data[:count]
        frame = reader.advance(count)
        data, turn = data[count:], turn + 1
        found += [] if frame is None else [frame]
    return found


@given(st.lists(FRAMES, max_size=5), st.lists(st.integers(1, 100), min_size=1, max_size=5))
def test_frames_arrive_as_they_were_sent_however_they_are_cut(
    frames: list[Frame], pieces: list[int]
) -> None:
    data = b"".join(
        frame_head(one.what, one.kind, one.number, len(one.body)) + one.body for one in frames
    )
    assert read(FrameReader(300), data, pieces) == frames


def test_a_body_of_the_most_bytes_is_taken_and_a_longer_one_refused() -> None:
    assert read(FrameReader(3), frame_head(REQUEST, "x", 1, 3) + b"abc", [9])[0].body == b"abc"
    with pytest.raises(WireError, match="has 4 bytes, more than the 3 allowed"):
        read(FrameReader(3), frame_head(REQUEST, "x", 1, 4), [64])


@given(st.binary(min_size=64, max_size=64))
def test_a_head_of_any_bytes_is_refused_or_one_of_a_frame(head: bytes) -> None:
    try:
        frames = read(FrameReader(0), head, [64])
    except WireError:
        return
    assert [frame.body for frame in frames] == [b""]


def test_an_opening_is_read_back() -> None:
    data = Opening("clinics", "a", "b").encode()
    head, content = data[:OPENING_HEAD_BYTES], data[OPENING_HEAD_BYTES:]
    assert opening_bytes(head) == len(content)
    assert decode_opening(content) == Opening("clinics", "a", "b")


@pytest.mark.parametrize(
    ("head", "words"),
    [
        (b"GET / HTTP/1", "not that of a party"),
        (b"MTCDLINK\0\2\0\5", "has format 2, and this version of mtcd has 1"),
        (b"MTCDLINK\0\1\0\0", "no usable length"),
        (b"MTCDLINK\0\1\xff\xff", "no usable length"),
    ],
)
def test_another_opening_is_refused_by_its_head(head: bytes, words: str) -> None:
    with pytest.raises(WireError, match=words):
        opening_bytes(head)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b"\xff", b'{"federation": 1, "from": "a", "to": "b"}', b"[" * 999],
)
def test_an_opening_without_names_is_refused(content: bytes) -> None:
    with pytest.raises(WireError, match="not readable"):
        decode_opening(content)


@pytest.mark.parametrize(
    ("length", "fits"),
    [(0, False), (1, True), (LONGEST_OPENING_BYTES, True), (LONGEST_OPENING_BYTES + 1, False)],
)
def test_an_opening_has_one_byte_to_the_most(length: int, fits: bool) -> None:
    head = b"MTCDLINK\0\1" + length.to_bytes(2, "big")
    if fits:
        assert opening_bytes(head) == length
        return
    with pytest.raises(WireError, match="opening has no usable length"):
        opening_bytes(head)


@pytest.mark.parametrize(
    ("what", "name", "fits"),
    [
        (REQUEST, b"x", True),
        (ANSWER, b"", True),
        (3, b"", True),
        (0, b"", False),
        (4, b"", False),
        (REQUEST, b"\xff", False),
    ],
)
def test_a_frame_is_a_request_an_answer_or_a_sign_of_life(
    what: int, name: bytes, fits: bool
) -> None:
    if fits:
        assert FrameReader._kind(what, name) == name.decode()
        return
    with pytest.raises(WireError, match="has a head that is not one of a frame"):
        FrameReader._kind(what, name)
