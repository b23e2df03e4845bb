"""Where a party keeps what it must not forget: the last commit, whole or not at all."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.errors import MtcdError
from mtcd.federation.custody.mapped import Array, mapped_numbers
from mtcd.federation.custody.records import pack, unpack

MAGIC = b"MTCDJRN1"
DIGEST = 16


class Journal(ABC):
    """Keeps the last value committed. What is read back shares nothing with what was written."""

    def commit(self, value: Any) -> None:
        """From now on this is what a restart finds."""
        self._write(pack(value))

    def last(self) -> Any:
        """The last value committed; None before the first."""
        kept = self._read()
        return None if kept is None else unpack(kept)

    sync = False
    """Whether a commit waits for the disk."""

    @abstractmethod
    def numbers(self, name: str, shape: tuple[int, ...]) -> Array:
        """Numbers that lie beside the journal and are changed in place; zeros before the first commit."""

    @abstractmethod
    def _write(self, content: bytes) -> None: ...

    @abstractmethod
    def _read(self) -> bytes | None: ...


class MemoryJournal(Journal):
    """For simulations: it outlives the party, not the process."""

    def __init__(self) -> None:
        self.content: bytes | None = None
        self.commits = 0
        self.beside: dict[str, Array] = {}

    def numbers(self, name: str, shape: tuple[int, ...]) -> Array:
        if self.content is None:
            self.beside[name] = np.zeros(shape)
        return self.beside[name]

    def _write(self, content: bytes) -> None:
        self.content = content
        self.commits += 1

    def _read(self) -> bytes | None:
        return self.content


class FileJournal(Journal):
    """One file, replaced at each commit, with a checksum.

    A killed process leaves the last commit or the one before. With ``sync`` so does a loss of power: every commit
    then waits for the disk.
    """

    def __init__(self, path: Path, sync: bool = False) -> None:
        self.path, self.sync = path, sync
        self._aside = path.with_name(path.name + ".new")

    def numbers(self, name: str, shape: tuple[int, ...]) -> Array:
        path = self.path.with_name(f"{self.path.name}.{name}")
        return mapped_numbers(path, shape, anew=self._read() is None)

    def _write(self, content: bytes) -> None:
        try:
            descriptor = os.open(self._aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(MAGIC + blake2b(content, digest_size=DIGEST).digest() + content)
                if self.sync:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(self._aside, self.path)
            if self.sync:
                _sync_folder(self.path.parent)
        except OSError as error:
            raise MtcdError(f"{self.path} could not be written: {error.strerror or error}.") from None

    def _read(self) -> bytes | None:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise MtcdError(f"{self.path} cannot be read: {error.strerror or error}.") from None
        start = len(MAGIC) + DIGEST
        content = data[start:]
        if data[:start] != MAGIC + blake2b(content, digest_size=DIGEST).digest():
            raise MtcdError(
                f"{self.path} is damaged: the party cannot know what it has told the others. Put back a copy of the "
                "same moment, or start the federation anew."
            )
        return content


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
