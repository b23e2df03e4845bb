"""Journals: the last commit comes back, whatever happens to the process, and a damaged file is
refused."""

import os
from functools import partial
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from mtcd.core.errors import MtcdError
from mtcd.core.version import JOURNAL_FORMAT
from mtcd.federation.delivery import journal as journals
from mtcd.federation.delivery.journal import CHECK, FIELDS, HEADER, MAGIC, Durations, FileJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.recovery.wait import Wait
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.party import SERVER
from problems import make_data


@pytest.mark.parametrize("sync", [True, False])
def test_files_keep_the_last_commit(tmp_path: Path, sync: bool) -> None:
    journal = FileJournal(tmp_path / "journal", sync)
    assert journal.last() is None
    for number in range(5):
        journal.commit({"a": number, "z": np.full(1000 * (5 - number), number)})
        assert FileJournal(tmp_path / "journal").last()["a"] == number
    journal.close()
    journal.commit({"a": 5})
    again = FileJournal(tmp_path / "journal")
    again.commit({"a": 6})  # without looking first
    assert FileJournal(tmp_path / "journal").last() == {"a": 6}
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["journal.0", "journal.1"]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in tmp_path.iterdir())


@pytest.mark.parametrize("at", [9, FIELDS.size - 1, HEADER - 1, HEADER + 1, -1])
@pytest.mark.parametrize("cut", [False, True])
def test_damage_to_the_header_the_text_or_the_arrays_is_noticed(
    at: int, cut: bool, tmp_path: Path
) -> None:
    FileJournal(tmp_path / "journal").commit({"a": 1, "large": np.arange(600.0)})
    path = tmp_path / "journal.1"
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1
    path.write_bytes(whole[:at] if cut else whole)
    with pytest.raises(MtcdError, match="damaged"):
        FileJournal(tmp_path / "journal").last()


@pytest.mark.long
def test_any_damage_to_the_last_commit_is_noticed(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    for number in range(3):
        journal.commit({"a": number, "z": np.arange(3.0), "large": np.arange(600.0)})
    path = tmp_path / "journal.1"  # of the third
    whole = path.read_bytes()
    damaged = [whole[:cut] for cut in (*range(1, 300), *range(300, len(whole), 97), len(whole) - 1)]
    damaged += [whole[:i] + bytes([whole[i] ^ 1]) + whole[i + 1 :] for i in range(len(whole))]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(MtcdError, match="damaged"):
            FileJournal(tmp_path / "journal").last()


def test_a_journal_of_another_version_is_told_as_such(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.commit({"z": 1})
    journal.close()
    slot = tmp_path / "journal.1"
    data = slot.read_bytes().replace(MAGIC, b"MTCDJRN2")
    slot.write_bytes(data[: FIELDS.size] + CHECK.pack(crc32(data[: FIELDS.size])) + data[HEADER:])
    with pytest.raises(
        MtcdError, match=f"of journal format '2', and this version of mtcd reads '{JOURNAL_FORMAT}'"
    ):
        FileJournal(tmp_path / "journal").last()


def test_killed_at_any_byte_of_a_commit_the_one_before_is_found(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    values = [{"a": n, "z": np.full(600 - 50 * n, float(n))} for n in range(4)]
    journal, contents = FileJournal(path), []
    for value in values:
        journal.commit(value)
        contents.append([one.read_bytes() if one.exists() else b"" for one in journal.paths])
    for n in range(4):
        slot = (n + 1) % 2
        old, new = contents[n - 1][slot] if n else b"", contents[n][slot]
        for written in (*range(0, 200), *range(200, len(new) - HEADER, 61)):
            body = new[HEADER : HEADER + written]
            torn = (
                (old[:HEADER] or bytes(HEADER if written else 0)) + body + old[HEADER + written :]
            )
            journal.paths[slot].write_bytes(torn)
            journal.paths[1 - slot].write_bytes(contents[n][1 - slot])
            found = FileJournal(path).last()
            assert found is None if n == 0 else found["a"] == n - 1
        again = FileJournal(path)
        again.commit(values[n])
        assert FileJournal(path).last()["a"] == n


@pytest.mark.parametrize(
    ("other", "damaged"),
    [(b"", False), (bytes(HEADER), False), (bytes(HEADER) + b"new", False), (bytes(5), True)],
)
def test_a_file_without_a_header_was_in_its_first_commit(
    other: bytes, damaged: bool, tmp_path: Path
) -> None:
    FileJournal(tmp_path / "journal").commit({"a": 1})
    (tmp_path / "journal.0").write_bytes(other)
    if damaged:  # a header is written at once, and zeros before it are as long
        with pytest.raises(MtcdError, match="damaged"):
            FileJournal(tmp_path / "journal").last()
    else:
        assert FileJournal(tmp_path / "journal").last() == {"a": 1}


def test_a_commit_goes_on_where_a_write_ended_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = FileJournal(tmp_path / "journal")
    real = os.pwritev
    monkeypatch.setattr(
        os, "pwritev", lambda file, pieces, at: real(file, [b"".join(pieces)[:700]], at)
    )
    journal.commit({"z": np.arange(600.0)})
    np.testing.assert_array_equal(FileJournal(tmp_path / "journal").last()["z"], np.arange(600.0))
    journal.commit({"z": np.arange(1000.0), "many": [np.full(2, k) for k in range(2000)]})
    back = FileJournal(tmp_path / "journal").last()
    np.testing.assert_array_equal(back["z"], np.arange(1000.0))
    assert [array[0] for array in back["many"]] == list(range(2000))
    monkeypatch.setattr(
        os, "pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(MtcdError, match=r"could not be written: No space left"):
        journal.commit({"z": np.arange(1000.0)})
    np.testing.assert_array_equal(FileJournal(tmp_path / "journal").last()["z"], np.arange(1000.0))


def test_a_journal_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.paths[1].mkdir()
    for use in (journal.last, journal.check):
        with pytest.raises(MtcdError, match=r"journal cannot be read: Is a directory\.$"):
            use()
    (tmp_path / "other.uploads").mkdir()
    with pytest.raises(MtcdError, match=r"other\.uploads cannot be used: Is a directory\.$"):
        FileJournal(tmp_path / "other").numbers("uploads", (2, 3))


def test_a_party_goes_on_from_its_file(tmp_path: Path) -> None:
    model = Glm("ridge")
    data = make_data(model, 8, [2, 2, 1], seed=1)

    def reliable(k: int) -> ReliableParty:
        parties = MTCD(tokens=1, hops=2, stepsize=0.01).parties(
            model.problem(data), make_network("cycle", data.clients), 0
        )
        party = parties.server if k == SERVER else parties.clients[k]
        return ReliableParty(
            k, party, Wait(), FileJournal(tmp_path / f"{k}"), parties.opening, 3
        ).resume()

    (envelope,) = reliable(SERVER).unacknowledged()
    first = reliable(envelope.to)
    first.deliver(unpack(pack(envelope)))
    again = reliable(envelope.to)
    assert pack(again.snapshot()) == pack(first.snapshot())
    assert np.abs(again.party.parameters()).max() > 0
    assert again.deliver(unpack(pack(envelope))).ack is not None
    assert pack(again.snapshot()) == pack(first.snapshot())


class Watched:
    """The calls of the system by which a journal is written, in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[str] = []
        self.pieces: list[int] = []
        for name in ("pwritev", "pwrite", "fdatasync", "fsync"):
            monkeypatch.setattr(os, name, partial(self.call, name, getattr(os, name)))

    def call(self, name: str, real: Any, *given: Any) -> Any:
        self.calls.append(name)
        if name == "pwritev":
            self.pieces.append(len(given[1]))
        return real(*given)


@pytest.mark.parametrize(
    ("sync", "calls"),
    [
        (False, ["pwritev", "pwrite"]),
        # at first, the names of the files too
        (True, ["fsync", "pwritev", "fdatasync", "pwrite", "fdatasync"]),
    ],
)
def test_with_sync_the_content_is_on_the_disk_before_the_header_is_written(
    sync: bool, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched = Watched(monkeypatch)
    journal = FileJournal(tmp_path / "journal", sync) if sync else FileJournal(tmp_path / "journal")
    journal.commit({"a": 1})
    assert watched.calls == calls
    journal.commit({"a": 2})
    assert watched.calls[len(calls) :] == [call for call in calls if call != "fsync"]


def test_a_commit_of_more_pieces_than_one_write_takes_is_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = FileJournal(tmp_path / "journal")
    monkeypatch.setattr(journals, "MOST_PIECES", 3)
    watched = Watched(monkeypatch)
    for arrays_of_a_page in (1, 2, 3, 4):  # beside the piece of all that is small
        rows = [np.full(512, float(k)) for k in range(arrays_of_a_page)]
        journal.commit(rows)
        assert [row.tobytes() for row in FileJournal(tmp_path / "journal").last()] == [
            row.tobytes() for row in rows
        ]
    assert watched.pieces == [2, 3, 1, 1]


def test_a_journal_that_is_closed_keeps_no_file_open(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path / "journal")
    journal.commit({"a": 1})
    opened = journal._files
    assert [os.fstat(file).st_ino for file in opened] == [
        path.stat().st_ino for path in journal.paths
    ]
    journal.close()
    for file in opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(file)
    journal.close()  # there is nothing left to give back


class KilledError(Exception):
    """In the middle of a commit."""


@pytest.mark.parametrize("writes", [0, 1])
def test_a_process_killed_between_two_writes_leaves_the_commit_before(
    writes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, left = FileJournal(tmp_path / "journal"), iter(range(writes))
    journal.commit(["first", np.arange(1000.0)])
    journal.commit(["second", np.arange(2000.0)])

    def until_killed(write: Any) -> Any:
        def writing(*given: Any) -> Any:
            if next(left, None) is None:
                raise KilledError
            return write(*given)

        return writing

    with monkeypatch.context() as patch:
        for name in ("pwrite", "pwritev"):
            patch.setattr(os, name, until_killed(getattr(os, name)))
        with pytest.raises(KilledError):
            journal.commit(["third", np.arange(3000.0)])
    name, numbers = FileJournal(tmp_path / "journal").last()
    assert (name, len(numbers)) == ("second", 2000)


def test_each_commit_is_timed_for_whoever_asks(tmp_path: Path) -> None:
    durations = Durations()
    for name in ("one", "another"):
        FileJournal(tmp_path / name, durations=durations).commit({"a": 1})
    assert sum(durations.counts) == 2
    assert durations.seconds > 0
