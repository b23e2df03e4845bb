"""The identity of a training: equal for two configs only if they give the same numbers."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from mtcd.config.read import table_files
from mtcd.config.schema import Config
from mtcd.core.version import VERSION


def identity(config: Config, form: int) -> str:
    """A file name without ending: the method, the seed, and a digest of the config and of the files
    that it names.

    ``form`` is the number of the format in which the training is kept.
    """
    # a new key with a default changes nothing
    given = config.model_dump(mode="json", exclude_defaults=True)
    said = f"{form} {VERSION} {json.dumps(given, sort_keys=True)} {_files(config)}"
    # short, for names of files: two of a few thousand trainings will not meet
    digest = hashlib.blake2b(said.encode(), digest_size=8).hexdigest()
    return f"{config.method.kind.replace(':', '-')}-seed{config.seed}-{digest}"


def _files(config: Config) -> str:
    """What is in the files that the config names: other content is another training."""
    paths = table_files(config)
    if config.network.edges is not None:
        paths.insert(0, config.network.edges)

    for name in config.own_parts.values():
        module = name.partition(":")[0].replace(".", "/")
        paths.append((config.code or Path()) / f"{module}.py")

    return "".join(_digest(path, *_state(path)) for path in paths)


def _state(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return 0, 0  # the training will say what is wrong with it
    # so that a large table is read once, as long as it does not change
    return found.st_mtime_ns, found.st_size


@lru_cache(maxsize=64)
def _digest(path: Path, changed: int, size: int) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""
