"""Frames that were tampered with: each is refused with a WireError and nothing else, or is a sound
message."""

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mtcd.core.errors import WireError
from mtcd.federation.delivery.frames import decode, encode
from mtcd.protocol.codec.limits import Bounds
from tampered_frames import WORDS, check, tells_numbers
from wired import PRIVATE, followed, linear, payload_names, split, wired

HEAD = 72
TRAININGS = (
    "visitors",
    "optimal",
    "gains",
    "stcd conjugate",
    "stcd twin",
    "svfl",
    "dcpa",
    "tree-cg",
    "cluster, batches",
    *PRIVATE,
)
SPLIT_NAMES = ("overlapping", "stcd")


@cache
def frames() -> list[tuple[bytes, Bounds]]:
    """The last frame of every kind from several trainings: tokens by then carry all that they ever
    do."""
    pytest.importorskip("torch")
    found = []
    for name, wire, ours in [
        *((name, *linear(name)[2:0:-1]) for name in TRAININGS),
        *((name, *split(name)[2:0:-1]) for name in SPLIT_NAMES),
    ]:
        list(followed(wired(ours, wire), 16))
        last = {kind_of(frame): frame for frame in wire.frames}
        assert last, name
        found += [(frame, wire.bounds) for frame in last.values()]
    return found


def kind_of(frame: bytes) -> str:
    return payload_names()[int.from_bytes(frame[12:14], "little")]


def verdict(frame: bytes, bounds: Bounds) -> str:
    """'refused' or 'sound'; anything else fails."""
    try:
        message, header = decode(frame, bounds)
    except WireError as error:
        return (
            "refused" if error.field == "version" or not tells_numbers(error) else "tells numbers"
        )
    assert encode(message, header) == frame  # there is one way to say a thing
    check(message, bounds)
    return "sound"


def mended(frame: bytes) -> bytes:
    """With the length that it has, so that what is behind the head is looked at."""
    return (
        frame[:16] + len(frame).to_bytes(8, "little") + frame[24:] if len(frame) >= HEAD else frame
    )


def test_there_are_frames_of_every_kind_and_they_are_sound() -> None:
    assert {kind_of(frame) for frame, _ in frames()} == set(payload_names().values())
    assert {verdict(frame, bounds) for frame, bounds in frames()} == {"sound"}


def test_every_word_of_every_kind_replaced_by_every_extreme() -> None:
    seen: Counter[str] = Counter()
    for frame, bounds in frames():
        for at in range(0, len(frame), 8):
            for word in WORDS:
                replaced = frame[:at] + word.to_bytes(8, "little", signed=True) + frame[at + 8 :]
                seen[verdict(replaced, bounds)] += 1
    assert seen.keys() == {"refused", "sound"}
    assert seen["refused"] > 5000
    # the rest are numbers of arrays, which may be anything finite
    assert seen["refused"] > seen["sound"]


def test_every_short_field_of_the_head_replaced() -> None:
    for frame, bounds in frames():
        for at in range(8, 16, 2):  # format, protocol, kind, length of the run's id
            for word in (0, 1, 2, 3, 5, 6, 11, 12, 255, 65535):
                replaced = frame[:at] + word.to_bytes(2, "little") + frame[at + 2 :]
                assert verdict(replaced, bounds) == ("sound" if replaced == frame else "refused")


def test_every_truncation_is_refused() -> None:
    for frame, bounds in frames():
        for end in range(len(frame)):
            for cut in {frame[:end], mended(frame[:end])}:
                assert verdict(cut, bounds) == "refused"


def test_as_many_bytes_as_a_head_has_are_read_as_one() -> None:
    _, bounds = next(iter(frames()))
    with pytest.raises(WireError, match="is cut short"):
        decode(bytes(HEAD - 1), bounds)
    with pytest.raises(WireError, match="magic is not that of mtcd"):
        decode(bytes(HEAD), bounds)


def test_frames_of_one_run_are_refused_by_another() -> None:
    for frame, bounds in frames():
        assert verdict(frame, replace(bounds, run="run-8")) == "refused"


@st.composite
def mutations(draw: st.DrawFn) -> tuple[int, bytes]:
    """A frame of one of the kinds, changed in one to three ways."""
    number = draw(st.integers(0, len(frames()) - 1))
    data = bytearray(frames()[number][0])
    for _ in range(draw(st.integers(1, 3))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(1, 24))
        way = draw(
            st.sampled_from(
                ["flip", "word", "insert", "delete", "overwrite", "double", "append", "swap"]
            )
        )
        if way == "flip" and at < len(data):
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif way == "word":
            data[at // 8 * 8 : at // 8 * 8 + 8] = draw(st.sampled_from(WORDS)).to_bytes(
                8, "little", signed=True
            )
        elif way == "delete":
            del data[at : at + length]
        elif way == "overwrite":
            data[at : at + length] = draw(st.binary(min_size=length, max_size=length))
        elif way == "double":
            data[at:at] = data[at : at + length // 8 * 8]
        elif way == "swap":
            data[at : at + 16] = data[at + 8 : at + 16] + data[at : at + 8]
        else:
            place = len(data) if way == "append" else at
            data[place:place] = draw(st.binary(min_size=1, max_size=64))
    return number, mended(bytes(data)) if draw(st.booleans()) else bytes(data)


@given(mutations())
@settings(max_examples=1500)
def test_whatever_is_done_to_a_frame_it_is_refused_or_sound(mutation: tuple[int, bytes]) -> None:
    number, data = mutation
    assert verdict(data, frames()[number][1]) in ("refused", "sound")


@given(st.binary(max_size=400), st.booleans())
@settings(max_examples=300)
@example(b"", False)
def test_bytes_from_anywhere_are_refused(data: bytes, with_head: bool) -> None:
    for frame, bounds in islice(frames(), 0, None, 4):
        assert (
            verdict(mended(frame[:HEAD] + data) if with_head and len(data) < 8 else data, bounds)
            == "refused"
        )


def test_a_frame_that_is_too_large_is_not_even_looked_at() -> None:
    for frame, bounds in frames():
        with pytest.raises(WireError, match="larger than any message"):
            decode(frame + bytes(10_000_000), bounds)
