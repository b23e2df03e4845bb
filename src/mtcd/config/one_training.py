"""One training by its config, as a worker does it: progress is reported, checkpoints of split
networks are kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import monotonic

from mtcd.config.build import Setup, build
from mtcd.config.read import table_files
from mtcd.config.schema import Config
from mtcd.core.files import CHECKPOINT
from mtcd.core.own_code import running_code
from mtcd.core.version import VERSION
from mtcd.training.history import Measurement
from mtcd.training.run import Run

PATIENCE = 0.3  # seconds between two reports of progress
FORMAT = 1  # count up when a checkpoint cannot be resumed by this version


def train_one(
    config: Config,
    tell: Callable[[float], None] = lambda fraction: None,
    unfinished: Unfinished | None = None,
) -> tuple[Setup, Run]:
    """Train by the config. Names of code in it are run, as in the process that sent it.

    Parameters
    ----------
    config
        The config of one training.
    tell
        Called with the share of the training that is done, a few times a second.
    unfinished
        Where checkpoints of interrupted trainings are kept.
    """
    reported = monotonic()

    def watch(now: Measurement, fraction: float) -> None:
        nonlocal reported
        # each report is a message between processes
        if monotonic() - reported >= PATIENCE:
            reported = monotonic()
            tell(float(fraction))

    with running_code(config.code):
        setup = build(config)
        with (unfinished or Unfinished()).folder(config) as (folder, resume):
            return setup, setup.train(watch, folder, resume)


@dataclass(frozen=True)
class Unfinished:
    """The place for their checkpoints; without one they are not kept. With ``fresh``, those from
    before are removed."""

    place: Path | None = None
    fresh: bool = False

    @contextmanager
    def folder(self, config: Config) -> Iterator[tuple[Path | None, bool]]:
        """The folder of one training and whether there is anything in it to go on from; gone when
        it has ended well."""
        if self.place is None or not config.model.keeps_unfinished:
            yield None, False
            return
        folder = self.place / identity(config, FORMAT)
        if self.fresh:
            shutil.rmtree(folder, ignore_errors=True)
        yield folder, (folder / CHECKPOINT).exists()
        shutil.rmtree(folder, ignore_errors=True)
        with suppress(OSError):  # others may be in it
            self.place.rmdir()


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
