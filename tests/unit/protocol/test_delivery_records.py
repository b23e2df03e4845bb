"""Records: the state of a party as bytes comes back as it was."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mtcd.core.errors import MtcdError
from mtcd.federation.delivery.journal import FileJournal
from mtcd.methods.mtcd.client import Done
from mtcd.methods.optimal_sync.tally import SyncTally
from mtcd.methods.tours.instruction import Instruction
from mtcd.protocol.codec.envelopes import Envelope
from mtcd.protocol.codec.records import StateWriter, pack, unpack
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token
from mtcd.training.plateau import Windows

WHOLE = st.integers(-(2**63), 2**63)
VALUES = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(WHOLE | st.text(), inner)
    ),
)


@given(VALUES)
def test_plain_values_come_back(value) -> None:
    assert repr(unpack(pack(value))) == repr(value)  # 1 and 1.0 and True are not the same


@given(
    st.lists(
        arrays.arrays(np.float64, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)),
        max_size=3,
    )
)
def test_arrays_come_back_bit_by_bit_and_can_be_written_to(given_arrays) -> None:
    back = unpack(pack({"x": given_arrays}))["x"]
    assert [(a.shape, a.tobytes()) for a in back] == [(a.shape, a.tobytes()) for a in given_arrays]
    assert all(a.flags.writeable for a in back)


def test_envelopes_come_back() -> None:
    token = Token(1, 2, 3, np.arange(4.0), 0.1, 0.2, 3)
    envelope = Envelope(0, 1, 5, 2, 1, {2: 1}, Message(0, 1, token, 4, 4))
    back = unpack(pack(envelope))
    assert repr(back) == repr(envelope)
    assert type(back.message.payload) is Token
    assert unpack(pack(Done(1, frozenset({2, 1})))) == Done(1, frozenset({1, 2}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("past", {3: np.ones(2)}),
        ("windows", Windows(3, 0.5)),
        ("tour", Instruction(1, (0.5, 0.5), keep=2)),
        ("tally", SyncTally(np.ones(3), 0.5, {1, 4})),
        ("gains", np.ones(3)),
        ("visited", frozenset({2, 1})),
    ],
)
def test_whatever_a_token_carries_beside_its_aggregate_comes_back(name: str, value: Any) -> None:
    plain = Token(1, 2, 3, np.arange(4.0), 0.1, 0.2, 3)
    carrying = replace(plain, slots={name: value})
    assert repr(unpack(pack(plain))) == repr(plain)
    assert repr(unpack(pack(carrying))) == repr(carrying) != repr(plain)


def test_what_is_not_listed_is_not_kept() -> None:
    for value, words in (
        (Path("x"), "Path"),
        (2**64, "int"),
        (np.ones(2, complex), "complex|c16"),
    ):
        with pytest.raises(MtcdError, match=words):
            pack(value)


def test_what_is_there_twice_is_written_once_and_comes_back_as_one() -> None:
    z = np.arange(5000.0)
    envelope = Envelope(0, 1, 5, 2, 1, {}, Message(0, 1, Token(1, 2, 3, z, 0.1)))
    data = pack(
        {"outbox": [envelope], "passed": envelope, "z": z, "others": [np.ones(2), np.arange(4000)]}
    )
    assert len(data) < z.nbytes + 4000 * 8 + 500
    back = unpack(data)
    assert back["passed"] is back["outbox"][0]
    assert back["passed"].message.payload.aggregate is back["z"]
    np.testing.assert_array_equal(back["z"], z)
    np.testing.assert_array_equal(back["others"][1], np.arange(4000))


def test_arrays_from_4096_bytes_on_stand_behind_the_others_if_they_are_whole_words(
    tmp_path: Path,
) -> None:
    lengths = [1022, 1023, 1024, 1025, 1026, 1036]
    rows = [np.arange(n, dtype=np.float32) for n in lengths]
    assert [len(StateWriter().parts(row).large) for row in rows] == [0, 0, 1, 0, 1, 1]
    FileJournal(tmp_path / "journal").commit(rows)
    back = FileJournal(tmp_path / "journal").last()
    assert [row.tobytes() for row in back] == [row.tobytes() for row in rows]
