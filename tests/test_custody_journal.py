"""Journals: what is kept comes back as it was, and a damaged file is refused."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mtcd.errors import MtcdError
from mtcd.federation.custody.journal import FileJournal
from mtcd.federation.custody.letters import Letter
from mtcd.federation.custody.postman import Postman
from mtcd.federation.custody.records import pack, unpack
from mtcd.methods.hosting import Done
from mtcd.methods.mtcd import MTCD
from mtcd.model.linear import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.party import SERVER, Message
from mtcd.protocol.token import Token
from problems import make_data

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.integers() | st.text(), inner),
)


@given(VALUES)
def test_plain_values_come_back(value) -> None:
    assert repr(unpack(pack(value))) == repr(value)  # 1 and 1.0 and True are not the same


@given(st.lists(arrays.arrays(np.float64, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0)), max_size=3))
def test_arrays_come_back_bit_by_bit_and_can_be_written_to(given_arrays) -> None:
    back = unpack(pack({"x": given_arrays}))["x"]
    assert [(a.shape, a.tobytes()) for a in back] == [(a.shape, a.tobytes()) for a in given_arrays]
    assert all(a.flags.writeable for a in back)


def test_letters_come_back() -> None:
    token = Token(1, 2, 3, np.arange(4.0), 0.1, 0.2, np.ones(4), 3)
    letter = Letter(0, 1, 5, 2, 1, {2: 1}, Message(0, 1, token, 4, 4))
    back = unpack(pack(letter))
    assert repr(back) == repr(letter)
    assert type(back.message.payload) is Token
    assert unpack(pack(Done(1, frozenset({2, 1})))) == Done(1, frozenset({1, 2}))


def test_what_is_not_listed_is_not_kept() -> None:
    with pytest.raises(MtcdError, match="Path"):
        pack(Path("x"))
    with pytest.raises(MtcdError, match="complex|c16"):
        pack(np.ones(2, complex))


@pytest.mark.parametrize("sync", [True, False])
def test_a_file_keeps_the_last_commit(tmp_path: Path, sync: bool) -> None:
    journal = FileJournal(tmp_path / "journal", sync)
    assert journal.last() is None
    journal.commit({"a": 1})
    journal.commit({"a": 2})
    (tmp_path / "journal.new").write_bytes(b"half a comm")  # killed while writing the next
    assert FileJournal(tmp_path / "journal").last() == {"a": 2}
    assert (tmp_path / "journal").stat().st_mode & 0o077 == 0


def test_any_damage_to_the_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    FileJournal(path).commit({"a": np.arange(3.0)})
    whole = path.read_bytes()
    damaged = [whole[:cut] for cut in range(len(whole))]
    damaged += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(MtcdError, match="damaged"):
            FileJournal(path).last()


def test_a_party_goes_on_from_its_file(tmp_path: Path) -> None:
    model = Glm("ridge")
    data = make_data(model, 8, [2, 2, 1], seed=1)

    def postman(k: int) -> Postman:
        cast = MTCD(tokens=1, hops=2, stepsize=0.01).cast(model.problem(data), make_network("cycle", data.clients), 0)
        party = cast.server if k == SERVER else cast.clients[k]
        return Postman(k, party, FileJournal(tmp_path / f"{k}"), cast.opening)

    (letter,) = postman(SERVER).waiting()
    first = postman(letter.to)
    first.deliver(unpack(pack(letter)))
    again = postman(letter.to)
    assert pack(again.record()) == pack(first.record())
    assert np.abs(again.party.parameters()).max() > 0
    assert again.deliver(unpack(pack(letter))).receipt is not None
    assert pack(again.record()) == pack(first.record())
