"""A cache of optimal values on disk, by data and model."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def cached_optimum(key: str, compute: Callable[[], float]) -> float:
    """The value stored under ``key``, or ``compute()``, which is then stored.

    A file that cannot be read, or holds no finite number for this key, is recomputed; a folder that
    cannot be written is ignored.
    """
    # A digest, as keys hold fingerprints and settings and would be too long for the name of a file.
    # The key itself is in the file, so that a collision is noticed.
    path = _folder() / f"optimum-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.json"
    stored = _read(path, key)
    if stored is not None:
        return stored
    value = float(compute())
    # An optimum that was not found must be searched again, and not be remembered.
    if math.isfinite(value):
        _write(path, key, value)
    return value


def _folder() -> Path:
    """$MTCD_CACHE, or $XDG_CACHE_HOME/mtcd, or ~/.cache/mtcd; an empty variable counts as unset."""
    if own := os.environ.get("MTCD_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "mtcd"
    return Path(os.path.expanduser("~")) / ".cache" / "mtcd"


def _read(path: Path, key: str) -> float | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):  # ValueError: not JSON, or not even text
        return None
    if not isinstance(record, dict) or record.get("key") != key:
        return None
    value = record.get("value")
    return value if isinstance(value, float) and math.isfinite(value) else None


def _write(path: Path, key: str, value: float) -> None:
    """Write a temporary file and rename it, so that readers never see half a file."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".tmp")
    except OSError:
        return
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"key": key, "value": value}, file)
        os.replace(name, path)
    except OSError:
        # Another process may have removed it, or the disk may be full: the cache is only a help.
        with contextlib.suppress(OSError):
            os.unlink(name)
