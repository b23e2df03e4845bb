"""Interrupted trainings of split networks: each resumes from its last epoch on the next run."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from mtcd.config.identity import identity
from mtcd.config.schema import Config
from mtcd.core.files import CHECKPOINT

FORMAT = 1  # count up when a checkpoint cannot be resumed by this version


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
