"""A party's folder of a run: the agreed settings, the journal, the log and, after the end, the
block of the model."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from time import time
from typing import Any

from mtcd.core.errors import ConfigError, MtcdError
from mtcd.core.version import JOURNAL_FORMAT, PROTOCOL, VERSION
from mtcd.federation.credentials.private_files import write_files
from mtcd.federation.node.opening import Agreed

AGREED, CONFIRMED, LOG, JOURNAL = "agreed.bin", "told.json", "log.jsonl", "journal"
FINAL_CHECK, WRITTEN_BY, LOCK = "final_check.json", "version.json", ".lock"
VERSIONS = {"mtcd": VERSION, "protocol": PROTOCOL, "journal": JOURNAL_FORMAT}
BEFORE = {"mtcd": "0.1.0", "protocol": 6, "journal": 8}
"""The versions of folders that say nothing about them."""


class FolderInUseError(ConfigError):
    """Another process of the same party uses the run folder."""


class RunFolder:
    """A run folder, locked for one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Before the folder is made or locked: both would follow a link.
        _refuse_links(path)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            # Held until the process ends, however it does: the system releases it.
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FolderInUseError(
                f"{path} is in use: this party is already running. Stop that process, or give "
                "another folder (--out)."
            ) from None
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be used ({error.strerror}): choose another folder (--out)."
            ) from None

    @property
    def log(self) -> Path:
        """The path of the log."""
        return self.path / LOG

    @property
    def journal(self) -> Path:
        """The path of the journal, without its suffix."""
        return self.path / JOURNAL

    @property
    def has_run(self) -> bool:
        """Whether a run was agreed in this folder."""
        return (self.path / AGREED).exists()

    def agreed(self) -> tuple[Agreed, float] | None:
        """The agreed settings and the time of the agreement; None before it."""
        path = self.path / AGREED
        if path.exists():
            # Before it is read: of another version the bytes may mean something else.
            self._check_versions()
        try:
            return Agreed.unpacked(path.read_bytes()), path.stat().st_mtime
        except FileNotFoundError:
            return None
        except (OSError, MtcdError):
            raise ConfigError(
                f"{path} cannot be read: start all parties with new folders (--out)."
            ) from None

    def agree(self, agreed: Agreed) -> float:
        """Write the agreed settings; returns the time."""
        versions = json.dumps(VERSIONS).encode()
        # The versions first: a folder with an agreement says by which version it is.
        write_files(self.path, {WRITTEN_BY: versions, AGREED: agreed.packed()}, private=True)
        return time()

    def _check_versions(self) -> None:
        """Refuse the run of a version that speaks another protocol, or has another format of
        journals."""
        path = self.path / WRITTEN_BY
        try:
            written = BEFORE | json.loads(path.read_text())
        except FileNotFoundError:
            written = BEFORE
        except (OSError, ValueError, TypeError):
            raise ConfigError(
                f"{path} cannot be read: start all parties with new folders (--out)."
            ) from None
        if any(written[key] != VERSIONS[key] for key in ("protocol", "journal")):
            raise ConfigError(
                f"{self.path} is the folder of a run of mtcd {_versions(written)}, and this is "
                f"mtcd {_versions(VERSIONS)}. A run ends with the protocol that it began with: end "
                f"it with mtcd {written['mtcd']}, or start all parties with the new version, new "
                "bundles and new folders (--out)."
            )
        # The same protocol and journal: this version goes on with it, and says so.
        if written != VERSIONS:
            write_files(self.path, {WRITTEN_BY: json.dumps(VERSIONS).encode()}, private=True)

    def confirmed(self) -> set[str]:
        """The parties that have confirmed the start of the run."""
        try:
            return set(json.loads((self.path / CONFIRMED).read_text()))
        except FileNotFoundError:
            return set()
        except (OSError, ValueError, TypeError):
            raise ConfigError(
                f"{self.path / CONFIRMED} cannot be read: start all parties with new folders "
                "(--out)."
            ) from None

    def confirm(self, confirmed: set[str]) -> None:
        """Write the parties that have confirmed the start of the run."""
        # Sorted, so that the same parties are the same file.
        write_files(self.path, {CONFIRMED: json.dumps(sorted(confirmed)).encode()}, private=True)

    def final_check(self) -> tuple[bool, set[str]] | None:
        """Whether the training has diverged, and the parties that have confirmed it; None while it
        is unknown."""
        path = self.path / FINAL_CHECK
        try:
            kept = json.loads(path.read_text())
            return bool(kept["diverged"]), set(kept["told"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            raise ConfigError(
                f"{path} cannot be read: remove it and restart all parties, which then evaluate "
                "the objective again."
            ) from None

    def keep_final_check(self, diverged: bool, confirmed: set[str]) -> None:
        """Write the result of the final check, and the parties that have confirmed it."""
        content = json.dumps({"diverged": diverged, "told": sorted(confirmed)}) + "\n"
        write_files(self.path, {FINAL_CHECK: content.encode()}, private=True)

    def close(self) -> None:
        """Release the lock, so that another process may continue this run."""
        os.close(self._lock)


def _versions(one: Mapping[str, Any]) -> str:
    return f"{one['mtcd']} (protocol {one['protocol']}, journal format {one['journal']})"


def _refuse_links(path: Path) -> None:
    """Refuse symbolic links: a run folder may have come with a bundle, and a link would redirect
    log or journal."""
    for one in path.iterdir() if path.is_dir() else ():
        if one.is_symlink():
            raise ConfigError(
                f"{one} is a symbolic link, which no run folder contains: give another folder "
                "(--out)."
            )
