"""The journal of a party: its last commit, whole or not at all; and numbers in a file, changed in
place, for what is too large to be written at every commit."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from functools import partial
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from time import perf_counter
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import JournalError, MtcdError, raised_as, system_reason
from mtcd.core.version import JOURNAL_FORMAT
from mtcd.federation.delivery.durations import Durations
from mtcd.protocol.codec.records import Parts, StateWriter, pack, unpack

KIND = "MTCDJRN"
FORMAT_DIGITS = str(JOURNAL_FORMAT)
MAGIC = (KIND[: 8 - len(FORMAT_DIGITS)] + FORMAT_DIGITS).encode()  # eight bytes
DIGEST = 16
# magic, number of the commit; bytes that the digest is of, bytes that are summed up; their sum, the
# digest
FIELDS = Struct(f"<8sQQQQ{DIGEST}s")
CHECK = Struct("<Q")
HEADER = FIELDS.size + CHECK.size
MOST_PIECES = 512  # that one write takes
_digest = partial(blake2b, digest_size=DIGEST)


class Journal(ABC):
    """Keeps the last committed value. A value that is read back shares no memory with the one that
    was written."""

    @abstractmethod
    def commit(self, value: Any) -> None:
        """Write a value: from now on a restart finds it."""

    @abstractmethod
    def last(self) -> Any:
        """The last value committed; None before the first."""

    sync = False  # it matters to files alone, which set it
    """Whether a commit waits for the disk."""

    @abstractmethod
    def numbers(self, name: str, shape: tuple[int, ...]) -> Array:
        """Numbers that lie beside the journal and are changed in place; zeros before the first
        commit."""


class MemoryJournal(Journal):
    """For simulations: it outlives the party, not the process."""

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.beside: dict[str, Array] = {}

    def numbers(self, name: str, shape: tuple[int, ...]) -> Array:
        if self.content is None:
            self.beside[name] = np.zeros(shape)
        return self.beside[name]

    def commit(self, value: Any) -> None:
        self._write(pack(value))

    def _write(self, content: bytes) -> None:
        self.content = content

    def last(self) -> Any:
        if self.content is None:
            return None
        return unpack(self.content)


class Slot(NamedTuple):
    """One of the two files, as its header says."""

    number: int
    """Of its commit, from 1 on."""
    digested: int
    summed: int
    total: int
    digest: bytes
    data: bytes

    def is_whole(self) -> bool:
        """Whether the content is the one that the header was written for."""
        # What is behind the end is left from a longer commit before.
        middle, end = HEADER + self.digested, HEADER + self.digested + self.summed
        if len(self.data) < end:
            return False
        body = memoryview(self.data)
        words = np.frombuffer(body[middle:end], np.uint64)
        return _digest(body[HEADER:middle]).digest() == self.digest and _sum(words) == self.total


class FileJournal(Journal):
    """Two files, written in turns, each with a number and checksums.

    The content is written first and the header, which makes it count, last. So a killed process
    leaves the last commit or the one before: a file whose content does not fit its header was being
    overwritten, if the other one is newer. With ``sync`` the same holds for a loss of power: every
    commit then waits for the disk, twice.
    """

    def __init__(self, path: Path, sync: bool = False, durations: Durations | None = None) -> None:
        """``durations``: where to count how long commits take."""
        self.path, self.sync = path, sync
        self.durations = durations or Durations()
        self.paths = [path.with_name(f"{path.name}.{i}") for i in range(2)]
        self._files: list[int] = []
        self._number = 0
        self._writer = StateWriter()

    def numbers(self, name: str, shape: tuple[int, ...]) -> Array:
        path = self.path.with_name(f"{self.path.name}.{name}")
        return mapped_numbers(path, shape, fresh=self.last() is None)

    def commit(self, value: Any) -> None:
        began = perf_counter()
        content = self._writer.parts(value)
        try:
            if not self._files:
                self._open()
            self._write(self._number + 1, content)
            self._number += 1
        # Not by `raised_as`: there is a commit for every message.
        except OSError as error:
            raise JournalError(
                f"{self.path} could not be written: {system_reason(error)}."
            ) from None

        self.durations.add(perf_counter() - began)

    def last(self) -> Any:
        newest = self._newest()
        if newest is None:
            return None
        return unpack(newest.data[HEADER : HEADER + newest.digested + newest.summed])

    def check(self) -> None:
        """Raise an error if the last commit cannot be read."""
        self._newest()

    def _newest(self) -> Slot | None:
        """The last commit, whole; None before the first."""
        with raised_as(f"{self.path} cannot be read", JournalError):
            slots = [slot for slot in map(self._slot, self.paths) if slot is not None]
        if not slots:
            return None
        # By the number in the header: a file that was being overwritten still has its older one.
        newest = max(slots, key=lambda slot: slot.number)
        self._number = newest.number
        # Not the one before: the party has sent messages that only the newest commit knows.
        if not newest.is_whole():
            raise self._damaged()
        return newest

    def close(self) -> None:
        """Give the files back; the next commit opens them again."""
        for file in self._files:
            os.close(file)
        self._files = []

    def _open(self) -> None:
        """Both files, where the last commit is known."""
        if not self._number:
            self.last()
        self._files = [os.open(path, os.O_RDWR | os.O_CREAT, 0o600) for path in self.paths]
        # The names of new files are on disk only when their folder is.
        if self.sync:
            _sync_folder(self.path.parent)

    def _write(self, number: int, content: Parts) -> None:
        # In turns: the last commit stays whole while the next one is written.
        file, (head, large) = self._files[number % 2], content
        summed = total = 0
        for array in large:
            summed += array.nbytes
            total += _sum(array.ravel().view(np.uint64))
        # The content first, and on disk, before the header that makes it count.
        pieces: list[Any] = [head, *large]
        if len(pieces) > MOST_PIECES:
            pieces = [b"".join(pieces)]
        done = os.pwritev(file, pieces, HEADER)
        # The system may take a part, as on a full disk: the next write then raises the error.
        while done < len(head) + summed:
            done += os.pwrite(file, b"".join(pieces)[done:], HEADER + done)
        if self.sync:
            os.fdatasync(file)
        header = FIELDS.pack(
            MAGIC, number, len(head), summed, total % 2**64, _digest(head).digest()
        )
        os.pwrite(file, header + CHECK.pack(crc32(header)), 0)
        if self.sync:
            os.fdatasync(file)

    def _slot(self, path: Path) -> Slot | None:
        """None if nothing was committed to it yet."""
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        header = data[:HEADER]
        # Nothing but zeros: the process was killed before its first header.
        if not any(header) and (len(header) == HEADER or not header):
            return None
        # The header has a sum of its own: a damaged number could make an old commit the newest.
        if CHECK.pack(crc32(header[: FIELDS.size])) != header[FIELDS.size :]:
            raise self._damaged()
        magic, number, digested, summed, total, digest = FIELDS.unpack_from(header)
        if magic != MAGIC:
            found = repr(magic.decode("ascii", "replace").lstrip(KIND))
            raise JournalError(
                f"{self.path} is of journal format {found}, and this version of mtcd reads "
                f"'{JOURNAL_FORMAT}': end the run with the version that wrote it, or start all "
                "parties with new folders (--out)."
            )
        return Slot(number, digested, summed, total, digest, data)

    def _damaged(self) -> JournalError:
        return JournalError(
            f"{self.path} is damaged, so the messages that this party has sent are unknown. "
            "Restore a backup of the same moment, or start all parties with new folders (--out)."
        )


def _sum(words: np.ndarray[Any, Any]) -> int:
    return int(np.add.reduce(words))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def mapped_numbers(path: Path, shape: tuple[int, ...], fresh: bool) -> Array:
    """As the file has them; zeros if it is ``fresh``. A crashed process leaves all that it had
    written.

    Zeros are written out, so that a full disk is noticed here and not when a number is changed.
    """
    with raised_as(f"{path} cannot be used"):
        if fresh:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                for _ in range(shape[0]):
                    file.write(np.zeros(shape[1:]).tobytes())
        size = path.stat().st_size
        # By its size, as the file says nothing of itself.
        if size != 8 * int(np.prod(shape, dtype=np.int64)):
            raise MtcdError(
                f"{path} is not of this training: put back the file that was there, or start the "
                "federation again with new folders."
            )
        return np.memmap(path, np.dtype("<f8"), "r+", shape=shape)
