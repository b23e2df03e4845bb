"""A party's own folder of a run: what was agreed, its journal, its log, and in the end its block of the model."""

from __future__ import annotations

import fcntl
import json
import os
from pathlib import Path
from time import time

from mtcd.errors import ConfigError, MtcdError
from mtcd.federation.node.opening import Agreed
from mtcd.federation.private_files import write_files

AGREED, TOLD, LOG, JOURNAL = "agreed.bin", "told.json", "log.jsonl", "journal"
VERDICT = "verdict.json"


class RunFolder:
    """For one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _refuse_links(path)
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = os.open(path / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"{path} is in use: this party runs already. Stop that one, or give another --out."
            ) from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be used ({error.strerror}): choose another folder (--out).") from None

    @property
    def log(self) -> Path:
        """Where the log goes."""
        return self.path / LOG

    @property
    def journal(self) -> Path:
        """Where the journal goes."""
        return self.path / JOURNAL

    def agreed(self) -> tuple[Agreed, float] | None:
        """What was agreed, and when; None before."""
        path = self.path / AGREED
        try:
            return Agreed.unpacked(path.read_bytes()), path.stat().st_mtime
        except FileNotFoundError:
            return None
        except (OSError, MtcdError):
            raise ConfigError(f"{path} cannot be read: start with a new folder (--out), all parties.") from None

    def agree(self, agreed: Agreed) -> float:
        """Keep what was agreed; returns when."""
        write_files(self.path, {AGREED: agreed.packed()}, private=True)
        return time()

    def told(self) -> set[str]:
        """Who has confirmed to start."""
        try:
            return set(json.loads((self.path / TOLD).read_text()))
        except FileNotFoundError:
            return set()
        except (OSError, ValueError, TypeError):
            raise ConfigError(
                f"{self.path / TOLD} cannot be read: start with a new folder (--out), all parties."
            ) from None

    def tell(self, told: set[str]) -> None:
        """Keep it."""
        write_files(self.path, {TOLD: json.dumps(sorted(told)).encode()}, private=True)

    def verdict(self) -> tuple[bool, set[str]] | None:
        """Whether the training has diverged, and who has confirmed to know; None while it is not known."""
        path = self.path / VERDICT
        try:
            kept = json.loads(path.read_text())
            return bool(kept["diverged"]), set(kept["told"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, TypeError, KeyError):
            raise ConfigError(
                f"{path} cannot be read: remove it and start all parties again, so that they evaluate the objective."
            ) from None

    def keep_verdict(self, diverged: bool, told: set[str]) -> None:
        """Keep it."""
        content = json.dumps({"diverged": diverged, "told": sorted(told)}) + "\n"
        write_files(self.path, {VERDICT: content.encode()}, private=True)

    def close(self) -> None:
        """Let another process have it."""
        os.close(self._lock)


def _refuse_links(path: Path) -> None:
    """A run folder may have come with a kit: a link in it would have log or journal written over another file."""
    for one in path.iterdir() if path.is_dir() else ():
        if one.is_symlink():
            raise ConfigError(f"{one} is a symbolic link, which a run folder never has: give another folder (--out).")
